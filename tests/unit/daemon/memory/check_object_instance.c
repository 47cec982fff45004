/* SPDX-License-Identifier: Apache-2.0 */
/* Checks object.c: sweeping, the lock of an instance, and system calls that fail. */
#include "unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/clients/instance.h"
#include "daemon/memory/directory.h"
#include "daemon/memory/object.h"
#include "daemon/memory/sealed.h"
#include "unit/faults.h"
#include "unit/whole.h"

static int lock(const char *name)
{
    return instance_lock_file(directory_fd(), name);
}

static void unlock(const char *name, int fd)
{
    unlinkat(directory_fd(), name, 0);
    close(fd);
}

static void touch(const char *name)
{
    int fd = open(unit_object(name), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static bool exists(const char *name)
{
    return faccessat(directory_fd(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- Sweeping ------------------------------------------------------------ */

static bool is_called(void *wanted, const char *name, ino_t inode)
{
    (void)inode;
    return wanted && strcmp(name, wanted) == 0;
}

static char lock_name[] = "+daemon";

START_TEST(sweep_keeps_what_it_is_told_to)
{
    touch("one");
    touch("+1.data");
    touch(lock_name);
    ck_assert_uint_eq(object_sweep(is_called, NULL, lock_name), 2);
    ck_assert(!exists("one") && !exists("+1.data") && exists(lock_name));
    ck_assert_uint_eq(object_sweep(is_called, NULL, lock_name), 0);
    ck_assert_uint_eq(object_sweep(is_called, NULL, NULL), 1);
}
END_TEST

START_TEST(sweep_takes_only_our_files)
{
    touch("file");
    touch("foreign");
    touch(lock_name);
    ck_assert_int_eq(mkdir(unit_object("dir"), 0700), 0);
    ck_assert_int_eq(symlink(lock_name, unit_object("link")), 0);
    unsigned expected = 2;
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(unit_object("foreign"), 12345, 12345), 0);
        expected = 1;
    }
    ck_assert_uint_eq(object_sweep(is_called, NULL, lock_name), expected);
    ck_assert(exists("dir") && exists("link") && exists(lock_name));
    ck_assert_int_eq(exists("foreign"), expected == 1);
    rmdir(unit_object("dir"));
    unlink(unit_object("link"));
    unlink(unit_object("foreign"));
    ck_assert_uint_eq(object_sweep(is_called, NULL, NULL), 1);
}
END_TEST

START_TEST(sweep_many)
{
    static char kept[] = "500";
    for (int i = 0; i < 1000; i++) {
        char part[32];
        snprintf(part, sizeof part, "%d", i);
        touch(part);
    }
    ck_assert_uint_eq(object_sweep(is_called, NULL, kept), 999);
    ck_assert_uint_eq(unit_objects(), 1);
    ck_assert_uint_eq(object_sweep(is_called, NULL, NULL), 1);
}
END_TEST

/* --- The lock of an instance --------------------------------------------- */

START_TEST(instance_lock_is_exclusive)
{
    const char *name = lock_name;
    int fd = lock(name);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(lock(name), -EBUSY);
    int other = lock("+other");
    ck_assert_int_ge(other, 0);
    unlock("+other", other);
    unlock(name, fd);
    ck_assert(!exists(lock_name));
    fd = lock(name);
    ck_assert_int_ge(fd, 0);
    unlock(name, fd);
}
END_TEST

START_TEST(instance_lock_of_a_dead_process)
{
    const char *name = lock_name;
    pid_t pid = fork();
    if (pid == 0)
        _exit(lock(name) >= 0 ? 0 : 1);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(exists(lock_name)); /* the name outlives the process; the lock does not */
    int fd = lock(name);
    ck_assert_int_ge(fd, 0);
    unlock(name, fd);
}
END_TEST

static int holder_end;
static unsigned n_attempts;

/* Starts a process that takes the lock; either it or its child has the lock until holder_end is
 * closed. Returns the id of the process when it has the lock. */
static pid_t holder(bool in_child)
{
    int end[2], done[2];
    char byte;
    ck_assert_int_eq(pipe2(end, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(done, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        if (lock(lock_name) < 0 || (in_child && fork() > 0))
            _exit(0);
        _exit(write(done[1], "", 1) != 1 || read(end[0], &byte, 1) < 0);
    }
    close(end[0]);
    close(done[1]);
    ck_assert_int_eq(read(done[0], &byte, 1), 1);
    close(done[0]);
    holder_end = end[1];
    n_attempts = 0;
    return pid;
}

static void attempt(void)
{
    if (++n_attempts == 2)
        close(holder_end);
    else
        faults_hook("flock", attempt);
}

/* The child of a daemon that was killed has the lock until its exec. */
START_TEST(instance_lock_of_a_child_of_a_dead_process)
{
    pid_t pid = holder(true);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(lock(lock_name), -EBUSY);
    faults_hook("flock", attempt);
    int fd = instance_lock_when_free(directory_fd(), lock_name);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(n_attempts, 2);
    unlock(lock_name, fd);
}
END_TEST

START_TEST(instance_lock_of_a_living_process)
{
    pid_t pid = holder(false);
    faults_hook("flock", attempt);
    ck_assert_int_eq(instance_lock_when_free(directory_fd(), lock_name), -EBUSY);
    ck_assert_uint_eq(n_attempts, 1);
    faults_hook(NULL, NULL);
    close(holder_end);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    int fd = instance_lock_when_free(directory_fd(), lock_name);
    ck_assert_int_ge(fd, 0);
    unlock(lock_name, fd);
}
END_TEST

START_TEST(instance_lock_through_a_symlink)
{
    ck_assert_int_eq(symlink("/etc/passwd", unit_object(lock_name)), 0);
    ck_assert_int_eq(lock(lock_name), -ELOOP);
    unlink(unit_object(lock_name));
}
END_TEST

struct contender {
    char name[128];
    unsigned rounds, won;
    atomic_int *inside;
    atomic_bool *broken;
};

static void *contend(void *arg)
{
    struct contender *c = arg;
    for (unsigned i = 0; i < c->rounds; i++) {
        int fd = lock(c->name);
        if (fd < 0)
            continue;
        if (atomic_fetch_add(c->inside, 1) != 0)
            *c->broken = true;
        c->won++;
        atomic_fetch_sub(c->inside, 1);
        unlock(c->name, fd);
    }
    return NULL;
}

/* flock() locks open files, so two threads contend as two processes would. The name appears and
 * disappears all the time. */
START_TEST(instance_lock_under_contention)
{
    atomic_int inside = 0;
    atomic_bool broken = false;
    struct contender c[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        c[i] = (struct contender){.rounds = 3000, .inside = &inside, .broken = &broken};
        snprintf(c[i].name, sizeof c[i].name, "%s", lock_name);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, contend, &c[i]), 0);
    }
    unsigned won = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        won += c[i].won;
    }
    ck_assert(!broken);
    ck_assert_uint_gt(won, 0);
    ck_assert(!exists(lock_name));
}
END_TEST

static void remove_name(void)
{
    ck_assert_uint_eq(object_sweep(is_called, NULL, NULL), 1);
}

static void replace_name(void)
{
    remove_name();
    touch(lock_name);
}

/* Its owner leaves between the open and the lock. Only the lock of the object that has the name
 * counts. */
START_TEST(instance_lock_that_was_removed_meanwhile)
{
    void (*const hooks[])(void) = {remove_name, replace_name};
    const char *name = lock_name;
    for (int i = 0; i < 2; i++) {
        faults_hook("flock", hooks[i]);
        int fd = lock(name);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(lock(name), -EBUSY);
        unlock(name, fd);
    }
    int fd = lock(name);
    ck_assert_int_eq(lock(name), -EBUSY);
    unlock(name, fd);
}
END_TEST

/* One descriptor is left, which is enough. Then none is left, which is an error and no reason to
 * try again and again. */
START_TEST(instance_lock_with_one_descriptor_left)
{
    const char *name = lock_name;
    pid_t pid = fork();
    if (pid == 0) {
        int next = dup(0);
        struct rlimit limit = {(rlim_t)next + 1, (rlim_t)next + 1};
        close(next);
        signal(SIGALRM, SIG_DFL); /* check has set a handler */
        alarm(3);
        setrlimit(RLIMIT_NOFILE, &limit);
        _exit(lock(name) >= 0 && lock(name) == -EMFILE ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    object_sweep(is_called, NULL, NULL);
    ck_assert_msg(!WIFSIGNALED(status), "instance_lock_file() does not return");
    ck_assert_int_eq(status, 0);
}
END_TEST

/* --- Calls that fail ----------------------------------------------------- */

static int create(const char *part, uint64_t bytes, struct object *o)
{
    struct object_space space;
    *o = (struct object){0};
    snprintf(o->name, sizeof o->name, "%s", part);
    return whole_object(o, bytes, NULL, &space);
}

START_TEST(every_call_of_a_creation_fails)
{
    const int errors[] = {EIO, ENOSPC, EMFILE, ENOMEM};
    for (size_t i = 0; i < 4; i++) {
        struct object o;
        unsigned before = unit_fds();
        int fd = 0;
        faults_errno(errors[i]);
        for (unsigned n = 1;
             faults_begin(FAULTS_SYSTEM, n), fd = create("data", 100, &o), faults_end(); n++) {
            if (fd >= 0) { /* it works without the figures of memory and of /dev/shm */
                close(fd);
                object_remove(&o);
            } else {
                ck_assert_int_eq(fd, -errors[i]);
            }
            ck_assert_uint_eq(unit_fds(), before);
            ck_assert_msg(unit_objects() == 0, "%s() fails and an object is left", faults_name());
            object_sweep(is_called, NULL, NULL);
        }
        ck_assert_int_ge(fd, 0);
        close(fd);
        object_remove(&o);
    }
}
END_TEST

/* Nothing is left of a sealed object either, whose descriptor is kept in a table. */
START_TEST(every_call_of_a_sealed_creation_fails)
{
    const int errors[] = {EIO, ENOSPC, EMFILE, ENOMEM};
    for (size_t i = 0; i < 4; i++) {
        struct object_space space;
        struct object o = {.kind = OBJECT_SEALED, .name = "data"};
        unsigned before = unit_fds();
        int fd = -1;
        faults_errno(errors[i]);
        for (unsigned n = 1; faults_begin(FAULTS_SYSTEM | FAULTS_MEMORY, n),
                      fd = whole_object(&o, 100, NULL, &space), faults_end();
             n++) {
            if (fd >= 0) { /* it works without the figures of memory */
                close(fd);
                object_remove(&o);
                snprintf(o.name, sizeof o.name, "data");
            }
            ck_assert_uint_eq(unit_fds(), before);
            ck_assert_uint_eq(sealed_room().most - sealed_room().free, 0);
        }
        ck_assert_int_ge(fd, 0);
        close(fd);
        object_remove(&o);
        ck_assert_uint_eq(unit_fds(), before);
    }
}
END_TEST

START_TEST(sealed_objects)
{
    struct object_space space;
    struct object o = {.kind = OBJECT_SEALED_FULLY, .name = "data"}, other;
    struct stat st;
    object_name to = "moved";
    ck_assert_int_eq(object_promise(o.kind, 4096, &space), 0);
    int fd = object_create_promised(&o, 20000, 4096, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(object_stat(&o, &st), 0);
    ck_assert_int_eq(st.st_size, 20000);
    ck_assert_int_eq(st.st_blocks * 512, 4096);
    ck_assert_int_eq(object_grow(fd, 4096, 12000), 0);
    ck_assert_int_eq(object_stat(&o, &st), 0);
    ck_assert_int_eq(st.st_blocks * 512, 12288);
    ck_assert_int_eq(object_grow(fd, 4096, 30000), -EPERM);
    /* a client of this user may do this */
    ck_assert_int_eq(fchmod(fd, 0), 0);
    int again = object_open(&o, O_RDONLY);
    ck_assert_int_eq(fcntl(again, F_GETFL) & O_ACCMODE, O_RDONLY);
    close(again);
    ck_assert_int_eq(object_rename(&o, to), 0);
    ck_assert_str_eq(o.name, "moved");
    other = o;
    other.device++;
    ck_assert_int_eq(object_stat(&other, &st), -ESTALE);
    other.inode++;
    ck_assert_int_eq(object_open(&other, O_RDWR), -ENOENT);
    ck_assert_int_eq(object_stat(&other, &st), -ENOENT);
    close(fd);
    object_remove(&o);
    object_remove(&other);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(interrupted_allocations_are_repeated)
{
    struct object o;
    faults_begin_call("posix_fallocate", 1, EINTR, false);
    int fd = create("data", 100, &o);
    ck_assert(faults_end());
    ck_assert_int_ge(fd, 0);
    faults_begin_call("posix_fallocate", 1, EINTR, false);
    ck_assert_int_eq(object_grow(fd, 0, 10000), 0);
    ck_assert(faults_end());
    close(fd);
    object_remove(&o);
}
END_TEST

START_TEST(every_call_of_the_others_fails)
{
    struct object o;
    object_name to;
    int fd = create("data", 100, &o), got = 0;
    ck_assert_int_ge(fd, 0);
    snprintf(to, sizeof to, "%s", "moved");
    faults_errno(EIO);
    for (unsigned n = 1;
         faults_begin(FAULTS_SYSTEM, n), got = object_open(&o, O_RDONLY), faults_end(); n++)
        ck_assert_int_lt(got, 0);
    close(got);
    for (unsigned n = 1;
         faults_begin(FAULTS_SYSTEM, n), got = object_grow(fd, 0, 9000), faults_end(); n++)
        ck_assert_int_eq(got, -EIO);
    ck_assert_int_eq(got, 0);
    for (unsigned n = 1; faults_begin(FAULTS_SYSTEM, n), got = object_rename(&o, to), faults_end();
         n++) {
        ck_assert_int_lt(got, 0);
        ck_assert_str_eq(o.name, "data");
        ck_assert(exists("data") && !exists("moved"));
    }
    ck_assert_int_eq(got, 0);
    ck_assert(!exists("data") && exists("moved"));
    faults_begin(FAULTS_SYSTEM, 1);
    ck_assert_uint_eq(object_sweep(is_called, NULL, NULL), 0);
    ck_assert(faults_end());
    object_remove(&o);
    close(fd);
}
END_TEST

START_TEST(every_call_of_the_instance_lock_fails)
{
    const char *name = lock_name;
    unsigned before = unit_fds();
    int fd = 0;
    faults_errno(EIO);
    for (unsigned n = 1; faults_begin(FAULTS_SYSTEM, n), fd = lock(name), faults_end(); n++) {
        if (fd >= 0)
            unlock(name, fd);
        ck_assert_uint_eq(unit_fds(), before);
    }
    ck_assert_int_ge(fd, 0);
    unlock(name, fd);
}
END_TEST

UNIT_MAIN("object_instance", UNIT_TEST(sweep_keeps_what_it_is_told_to),
          UNIT_TEST(sweep_takes_only_our_files), UNIT_TEST(sweep_many),
          UNIT_TEST(instance_lock_is_exclusive), UNIT_TEST(instance_lock_of_a_dead_process),
          UNIT_TEST(instance_lock_of_a_child_of_a_dead_process),
          UNIT_TEST(instance_lock_of_a_living_process), UNIT_TEST(instance_lock_through_a_symlink),
          UNIT_TEST(instance_lock_under_contention),
          UNIT_TEST(instance_lock_that_was_removed_meanwhile),
          UNIT_TEST(instance_lock_with_one_descriptor_left),
          UNIT_TEST(every_call_of_a_creation_fails),
          UNIT_TEST(every_call_of_a_sealed_creation_fails), UNIT_TEST(sealed_objects),
          UNIT_TEST(interrupted_allocations_are_repeated),
          UNIT_TEST(every_call_of_the_others_fails),
          UNIT_TEST(every_call_of_the_instance_lock_fails))
