/* SPDX-License-Identifier: Apache-2.0 */
/* Checks object.c: creating, opening, growing and renaming objects, and the space that is left
 * for them. */
#include "unit/unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "daemon/memory/object.h"
#include "unit/faults.h"
#include "unit/whole.h"

static struct object named(const char *part)
{
    struct object o = {0};
    snprintf(o.name, sizeof o.name, "%s", part);
    return o;
}

static int create(struct object *o, uint64_t bytes)
{
    struct object_space space;
    int fd = whole_object(o, bytes, NULL, &space);
    ck_assert_msg(fd >= 0, "whole_object: %s", strerror(-fd));
    return fd;
}

static ino_t inode_at(const char *path)
{
    struct stat st;
    return lstat(path, &st) ? 0 : st.st_ino;
}

/* --- Creating ------------------------------------------------------------ */

START_TEST(create_and_remove)
{
    const uint64_t sizes[] = {1, 4095, 4096, 4097, 1000000};
    umask(0); /* others get no rights, whatever the umask */
    for (size_t i = 0; i < 5; i++) {
        struct object o = named("data");
        struct stat st;
        char *bytes = calloc(1, sizes[i]), *zero = calloc(1, sizes[i]);
        int fd = create(&o, sizes[i]);
        ck_assert_int_eq(fstat(fd, &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0600);
        ck_assert_uint_eq((uint64_t)st.st_size, sizes[i]);
        ck_assert_uint_ge((uint64_t)st.st_blocks * 512, sizes[i]); /* committed */
        ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
        ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
        ck_assert_uint_eq(o.inode, st.st_ino);
        ck_assert_uint_eq(o.device, st.st_dev);
        ck_assert_int_eq(pread(fd, bytes, sizes[i], 0), (ssize_t)sizes[i]);
        ck_assert_mem_eq(bytes, zero, sizes[i]);
        close(fd);
        ck_assert_uint_eq(unit_objects(), 1);
        object_remove(&o);
        ck_assert_str_eq(o.name, "");
        ck_assert_uint_eq(unit_objects(), 0);
        object_remove(&o); /* "" is none */
        free(bytes);
        free(zero);
    }
}
END_TEST

START_TEST(name_that_is_taken)
{
    struct object first = named("data"), second = named("data");
    struct object_space space;
    int fd = create(&first, 10);
    ck_assert_int_eq(whole_object(&second, 20, NULL, &space), -EEXIST);
    ck_assert_uint_eq(unit_objects(), 1);
    struct stat st;
    ck_assert_int_eq(stat(unit_object("data"), &st), 0);
    ck_assert_int_eq(st.st_size, 10); /* untouched */
    close(fd);
    object_remove(&first);
}
END_TEST

START_TEST(create_through_a_symlink)
{
    struct object o = named("data");
    struct object_space space;
    char target[128];
    snprintf(target, sizeof target, "%s/target", unit_directory());
    ck_assert_int_eq(symlink(target, unit_object("data")), 0);
    ck_assert_int_eq(whole_object(&o, 10, NULL, &space), -EEXIST);
    ck_assert_int_eq(access(target, F_OK), -1);
    object_remove(&o);
    ck_assert_uint_ne(inode_at(unit_object("data")), 0); /* it is not ours, so it is still there */
    unlink(unit_object("data"));
}
END_TEST

START_TEST(cancelled_before_it_begins)
{
    struct object o = named("data");
    struct object_space space;
    atomic_bool cancel = true;
    ck_assert_int_eq(whole_object(&o, 10 << 20, &cancel, &space), -ECANCELED);
    ck_assert_uint_eq(unit_objects(), 0);
    cancel = false;
    int fd = whole_object(&o, 10, &cancel, &space);
    ck_assert_int_ge(fd, 0);
    close(fd);
    object_remove(&o);
}
END_TEST

static atomic_bool cancel_now;

static void cancel_it(void)
{
    cancel_now = true;
}

/* A cancelled creation makes at most one more step, and leaves nothing of earlier ones. */
START_TEST(cancelled_on_the_way)
{
    struct object o = named("data");
    struct object_space space;
    faults_hook("posix_fallocate", cancel_it);
    ck_assert_int_eq(whole_object(&o, (uint64_t)256 << 20, &cancel_now, &space), -ECANCELED);
    ck_assert(cancel_now);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

/* --- Space --------------------------------------------------------------- */

static struct object_space space_now(void)
{
    struct object o = named("none");
    struct object_space space = {0};
    ck_assert_int_eq(whole_object(&o, (uint64_t)1 << 60, NULL, &space), -ENOSPC);
    return space;
}

START_TEST(more_than_is_free)
{
    struct statvfs fs;
    ck_assert_int_eq(statvfs("/dev/shm", &fs), 0);
    struct object_space space = space_now();
    if (fs.f_blocks)
        ck_assert_uint_eq(space.limit, (uint64_t)fs.f_blocks * fs.f_frsize);
    ck_assert_uint_gt(space.free, 0);
    ck_assert_uint_le(space.free, space.limit);
    struct object o = named("data");
    struct object_space again = {0};
    ck_assert_int_eq(whole_object(&o, space.limit + 1, NULL, &again), -ENOSPC);
    ck_assert_int_eq(whole_object(&o, INT64_MAX, NULL, &again), -ENOSPC);
    ck_assert_int_eq(whole_object(&o, UINT64_MAX, NULL, &again), -ENOSPC);
    ck_assert_uint_eq(again.limit, space.limit);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

/* A failure in the middle returns the rest of the promise; otherwise the figure would fall with
 * each round. */
START_TEST(promises_are_settled)
{
    const uint64_t bytes = (uint64_t)1 << 30;
    struct object_space before = space_now(), space;
    for (int i = 0; i < 40; i++) {
        struct object o = named("data");
        atomic_bool cancel = i % 2;
        faults_begin_call(i % 4 ? "posix_fallocate" : "openat", 1, ENOSPC, false);
        int fd = whole_object(&o, bytes, &cancel, &space);
        faults_end();
        ck_assert_int_lt(fd, 0);
        ck_assert_uint_eq(unit_objects(), 0);
    }
    struct object_space after = space_now();
    /* other programs use memory too, but not forty times as much */
    ck_assert_uint_gt(after.free + 20 * bytes, before.free);
    ck_assert_uint_gt(after.free, before.free / 4);
}
END_TEST

#define PROMISED ((uint64_t)1 << 30)

static struct object_space space_beside;

static void ask_beside(void)
{
    space_beside = space_now();
}

/* Memory promised to one creation and not yet committed is not free for another. Nothing is
 * allocated here. */
START_TEST(side_by_side)
{
    struct object_space before = space_now(), space;
    if (before.free < 2 * PROMISED)
        return;
    struct object o = named("data");
    faults_hook("posix_fallocate", ask_beside);
    faults_begin_call("posix_fallocate", 1, EIO, true);
    ck_assert_int_eq(whole_object(&o, PROMISED, NULL, &space), -EIO);
    ck_assert(faults_end());
    /* the machine has other users, so half of it is enough */
    ck_assert_uint_lt(space_beside.free, before.free - PROMISED / 2);
    ck_assert_uint_gt(space_now().free, before.free - PROMISED / 2);
}
END_TEST

#define LARGE (17 << 20) /* large enough to read the figures each time */

/* Without the figures the kernel decides. */
START_TEST(figures_that_cannot_be_had)
{
    struct object o = named("data");
    struct object_space space;
    faults_begin_call("fopen", 1, EMFILE, false);
    int fd = whole_object(&o, LARGE, NULL, &space);
    ck_assert(faults_end());
    ck_assert_int_ge(fd, 0);
    close(fd);
    object_remove(&o);
    o = named("data");
    faults_begin_call("statvfs", 1, ENOSYS, false);
    fd = whole_object(&o, LARGE, NULL, &space);
    ck_assert(faults_end());
    ck_assert_int_ge(fd, 0);
    close(fd);
    object_remove(&o);
}
END_TEST

/* Returns whether the figures are read for an allocation of this size. */
static bool looks(uint64_t bytes)
{
    struct object o = named("data");
    struct object_space space;
    faults_begin_call("statvfs", 1, ENOSYS, false);
    int fd = whole_object(&o, bytes, NULL, &space);
    bool looked = faults_end();
    ck_assert_int_ge(fd, 0);
    close(fd);
    object_remove(&o);
    return looked;
}

START_TEST(small_ones_go_by_what_was_seen_lately)
{
    space_now();
    ck_assert(looks(100));
    /* after a moment they are read again, but not each time */
    unsigned n = 0;
    for (int i = 0; i < 50; i++)
        n += looks(100);
    ck_assert_uint_lt(n, 50);
    ck_assert(looks(LARGE));
    ck_assert(looks(100));
}
END_TEST

/* --- Opening again ------------------------------------------------------- */

START_TEST(open_again)
{
    struct object o = named("data");
    close(create(&o, 100));
    int ro = object_open(&o, O_RDONLY), rw = object_open(&o, O_RDWR);
    ck_assert_int_ge(ro, 0);
    ck_assert_int_ge(rw, 0);
    ck_assert_int_eq(fcntl(ro, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_int_eq(fcntl(rw, F_GETFL) & O_ACCMODE, O_RDWR);
    ck_assert_int_eq(fcntl(ro, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(write(ro, "x", 1), -1);
    ck_assert_ptr_eq(mmap(NULL, 100, PROT_WRITE, MAP_SHARED, ro, 0), MAP_FAILED);
    close(ro);
    close(rw);
    object_remove(&o);
    ck_assert_int_lt(object_open(&o, O_RDONLY), 0);
}
END_TEST

/* Replaces the object that o names by another one. Returns the inode of the new one. */
static ino_t replace(const char *part)
{
    unlink(unit_object(part));
    int fd = open(unit_object(part), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    close(fd);
    return inode_at(unit_object(part));
}

START_TEST(replaced_by_another)
{
    struct object o = named("data"), renamed = named("other");
    int keep = create(&o, 100); /* keeps its inode in use */
    ino_t foreign = replace("data");
    ck_assert_int_eq(object_open(&o, O_RDONLY), -ESTALE);
    ck_assert_int_eq(object_open(&o, O_RDWR), -ESTALE);
    ck_assert_int_eq(object_rename(&o, renamed.name), -ESTALE);
    object_remove(&o);
    ck_assert_str_eq(o.name, "");
    ck_assert_uint_eq(inode_at(unit_object("data")), foreign); /* not the daemon's to remove */
    unlink(unit_object("data"));
    close(keep);
}
END_TEST

START_TEST(replaced_by_what_is_no_file)
{
    struct object o = named("data");
    int keep = create(&o, 100);
    /* a symlink, even to the same object under another name */
    char moved[128];
    snprintf(moved, sizeof moved, "%s", unit_object("moved"));
    ck_assert_int_eq(rename(unit_object("data"), moved), 0);
    ck_assert_int_eq(symlink(moved, unit_object("data")), 0);
    ck_assert_int_eq(object_open(&o, O_RDONLY), -ELOOP);
    struct object copy = o;
    object_remove(&copy);
    ck_assert_uint_ne(inode_at(unit_object("data")), 0);
    unlink(unit_object("data"));
    ck_assert_int_eq(mkdir(unit_object("data"), 0700), 0);
    ck_assert_int_lt(object_open(&o, O_RDONLY), 0);
    ck_assert_int_lt(object_open(&o, O_RDWR), 0);
    copy = o;
    object_remove(&copy);
    ck_assert_uint_ne(inode_at(unit_object("data")), 0);
    rmdir(unit_object("data"));
    ck_assert_int_eq(object_open(&o, O_RDONLY), -ENOENT);
    unlink(moved);
    close(keep);
}
END_TEST

/* A FIFO without a writer must not block the loop. */
START_TEST(replaced_by_a_fifo)
{
    struct object o = named("data");
    int keep = create(&o, 100);
    unlink(unit_object("data"));
    ck_assert_int_eq(mkfifo(unit_object("data"), 0600), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL); /* check has set a handler */
        alarm(3);
        _exit(object_open(&o, O_RDONLY) < 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    unlink(unit_object("data"));
    close(keep);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* --- Growing ------------------------------------------------------------- */

START_TEST(grow)
{
    struct object o = named("data");
    struct stat st;
    int fd = create(&o, 4096);
    ck_assert_int_eq(pwrite(fd, "keep", 4, 100), 4);
    const uint64_t sizes[] = {0, 1, 4096, 8192, 8192, 4096, 65536};
    uint64_t expected = 4096;
    for (size_t i = 0; i < 7; i++) {
        ck_assert_int_eq(object_grow(fd, expected, sizes[i]), 0);
        expected = sizes[i] > expected ? sizes[i] : expected;
        ck_assert_int_eq(fstat(fd, &st), 0);
        ck_assert_uint_eq((uint64_t)st.st_size, expected);
        ck_assert_uint_ge((uint64_t)st.st_blocks * 512, expected);
    }
    char bytes[4];
    ck_assert_int_eq(pread(fd, bytes, 4, 100), 4);
    ck_assert_mem_eq(bytes, "keep", 4);
    ck_assert_int_eq(object_grow(-1, 0, 10), -EBADF);
    int ro = object_open(&o, O_RDONLY);
    ck_assert_int_eq(object_grow(ro, 0, 1 << 20), -EBADF);
    close(ro);
    close(fd);
    object_remove(&o);
}
END_TEST

/* --- Renaming ------------------------------------------------------------ */

START_TEST(rename_once)
{
    const struct object from = named("data"), to = named("moved");
    struct object o = from, taken = named("taken");
    int fd = create(&o, 100);
    close(create(&taken, 5));
    ino_t inode = o.inode;
    ck_assert_int_eq(object_rename(&o, taken.name), -EEXIST);
    ck_assert_str_eq(o.name, from.name);
    ck_assert_int_eq(object_rename(&o, to.name), 0);
    ck_assert_str_eq(o.name, to.name);
    ck_assert_uint_eq(inode_at(unit_object("moved")), inode);
    ck_assert_uint_eq(inode_at(unit_object("data")), 0);
    int again = object_open(&o, O_RDWR);
    ck_assert_int_ge(again, 0);
    close(again);
    close(fd);
    object_remove(&o);
    object_remove(&taken);
    ck_assert_int_lt(object_rename(&o, to.name), 0); /* its name is gone */
}
END_TEST

UNIT_MAIN("object", UNIT_TEST(create_and_remove), UNIT_TEST(name_that_is_taken),
          UNIT_TEST(create_through_a_symlink), UNIT_TEST(cancelled_before_it_begins),
          UNIT_TEST(cancelled_on_the_way), UNIT_TEST(more_than_is_free),
          UNIT_TEST(promises_are_settled), UNIT_TEST(side_by_side),
          UNIT_TEST(figures_that_cannot_be_had), UNIT_TEST(small_ones_go_by_what_was_seen_lately),
          UNIT_TEST(open_again), UNIT_TEST(replaced_by_another),
          UNIT_TEST(replaced_by_what_is_no_file), UNIT_TEST(replaced_by_a_fifo), UNIT_TEST(grow),
          UNIT_TEST(rename_once))
