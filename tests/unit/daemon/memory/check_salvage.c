/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that salvage.c finds missing objects in other processes, and takes nothing else. */
#include "daemon/memory/salvage.h"

#include "unit/unit.h"

#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/memory/sealed.h"
#include "unit/faults.h"

#define OUR_NAME   "shmview:unit"
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct salvage salvage;

/* Makes a memfd and fills in *ret. */
static int make(const char *name, unsigned flags, int seals, struct stat *ret)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (fd < 0)
        return fd;
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    ck_assert_int_eq(sealed_mark(fd, ret), 0);
    return fd;
}

/* Returns a process that has the descriptors of this one. */
static pid_t fork_holder(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    ck_assert_int_gt(pid, 0);
    return pid;
}

static void end_holder(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Passes fd to a new process that holds it, and closes it here. */
static pid_t pass(int fd)
{
    pid_t pid = fork_holder();
    close(fd);
    return pid;
}

static void want(const struct stat *st)
{
    ck_assert_int_eq(salvage_want(&salvage, st->st_dev, st->st_ino), 0);
}

static void look_in(pid_t pid)
{
    ck_assert_int_eq(salvage_ask(&salvage, (uint32_t)pid), 0);
}

/* Runs, and forgets the objects that are wanted. Returns the result. */
static int run(void)
{
    int r = salvage_run(&salvage);
    salvage_deinit(&salvage);
    memset(&salvage, 0, sizeof salvage);
    return r;
}

/* Asserts that the object is here, with these bytes, and ends it. */
static void assert_taken(const struct stat *want)
{
    struct stat st;
    ck_assert(sealed_has(want->st_ino));
    ck_assert_int_eq(sealed_stat(want->st_ino, &st), 0);
    ck_assert(st.st_dev == want->st_dev && st.st_ino == want->st_ino);
    ck_assert_int_eq(close(sealed_take(want->st_ino)), 0);
}

/* Asserts that the process does not have the object, which is in no list. */
static void assert_left(pid_t pid, const struct stat *st)
{
    want(st);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    ck_assert(!sealed_has(st->st_ino));
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
}

START_TEST(found_in_a_process)
{
    struct stat a, b, c;
    pid_t without = fork_holder();
    int fds[] = {make(OUR_NAME, 0, SIZE_SEALS, &a), make(OUR_NAME, 0, SIZE_SEALS, &b)};
    pid_t with = fork_holder();
    close(fds[0]);
    close(fds[1]);
    pid_t last = pass(make(OUR_NAME, 0, SIZE_SEALS, &c));
    want(&c);
    want(&a);
    look_in(without);
    look_in(with);
    look_in(last);
    ck_assert_int_eq(run(), 0);
    ck_assert(!sealed_has(b.st_ino)); /* it is not missing */
    assert_taken(&a);
    assert_taken(&c);
    end_holder(without);
    end_holder(with);
    end_holder(last);
}
END_TEST

START_TEST(nothing_to_do)
{
    struct stat st;
    pid_t pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st));
    ck_assert_int_eq(run(), 0);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    want(&st);
    look_in(0); /* no process */
    ck_assert_uint_eq(salvage.n_pids, 0);
    ck_assert_int_eq(run(), 0);
    ck_assert(!sealed_has(st.st_ino));
    end_holder(pid);
}
END_TEST

/* The other processes are looked at all the same. */
START_TEST(a_process_has_ended)
{
    struct stat st;
    pid_t ended = fork_holder(), pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st));
    end_holder(ended);
    want(&st);
    look_in(ended);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    assert_taken(&st);
    end_holder(pid);
}
END_TEST

START_TEST(a_process_may_not_be_looked_at)
{
    struct stat st;
    pid_t pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st));
    for (unsigned n = 1; n <= 2; n++) {
        faults_begin_call(n == 1 ? "opendir" : "openat", 1, EACCES, false);
        want(&st);
        look_in(pid);
        ck_assert_int_eq(run(), 0);
        ck_assert(faults_end());
        ck_assert(!sealed_has(st.st_ino));
    }
    faults_begin_call("openat", 2, EACCES, false); /* this one opens it for writing */
    want(&st);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    ck_assert(faults_end());
    ck_assert(!sealed_has(st.st_ino));
    faults_begin_call("fstat", 1, EIO, false);
    want(&st);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    ck_assert(faults_end());
    ck_assert(!sealed_has(st.st_ino));
    end_holder(pid);
}
END_TEST

/* A name, an inode and a device are not enough. */
START_TEST(what_is_not_taken)
{
    struct stat st;
    pid_t pid = pass(make(OUR_NAME, 0, F_SEAL_SHRINK, &st)); /* seals are missing */
    assert_left(pid, &st);
    end_holder(pid);
    pid = pass(make("unit", 0, SIZE_SEALS, &st)); /* another name */
    assert_left(pid, &st);
    end_holder(pid);
    pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st));
    struct stat other = st;
    other.st_dev++;
    assert_left(pid, &other);
    other = st;
    other.st_ino++;
    assert_left(pid, &other);
    end_holder(pid);
}
END_TEST

static int swapped, in_place;

static void swap(void)
{
    ck_assert_int_eq(dup3(in_place, swapped, O_CLOEXEC), swapped);
}

static void swap_at_next(void)
{
    faults_hook("openat", swap);
}

/* The process puts something else in place of the object after it was found. To open that neither
 * waits nor takes it over. */
START_TEST(replaced_while_it_is_looked_at)
{
    struct stat st, other;
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const int replacements[] = {ends[0], ends[1], make(OUR_NAME, 0, F_SEAL_GROW, &other)};
    for (int i = 0; i < 3; i++) {
        swapped = make(OUR_NAME, 0, SIZE_SEALS, &st);
        in_place = replacements[i];
        want(&st);
        look_in(getpid());
        faults_hook("openat", swap_at_next);
        unsigned n = unit_fds();
        ck_assert_int_eq(run(), 0);
        ck_assert(!sealed_has(st.st_ino) && !sealed_has(other.st_ino));
        ck_assert_uint_eq(unit_fds(), n);
        close(swapped);
    }
    for (int i = 0; i < 3; i++)
        close(replacements[i]);
}
END_TEST

/* The process has a lease. Then open() would wait for 45 s. */
START_TEST(a_lease_makes_nobody_wait)
{
    struct stat st;
    int fd = make(OUR_NAME, 0, SIZE_SEALS, &st);
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    close(fd); /* there is a lease for readers only while nobody can write */
    signal(SIGIO, SIG_IGN);
    if (fcntl(reader, F_SETLEASE, F_RDLCK)) { /* this kernel knows none of a memfd */
        close(reader);
        return;
    }
    want(&st);
    look_in(getpid());
    int64_t begin = now_ns();
    ck_assert_int_eq(run(), 0);
    ck_assert_int_lt(now_ns() - begin, 2000000000);
    ck_assert(!sealed_has(st.st_ino));
    close(reader);
}
END_TEST

/* An object of huge pages has another device, and a number of its own. */
START_TEST(huge_pages)
{
    struct stat huge, small;
    int fd = make(OUR_NAME, MFD_HUGETLB | MFD_HUGE_2MB, SIZE_SEALS, &huge);
    if (fd < 0)
        return; /* this kernel has none */
    ck_assert(huge.st_ino & SEALED_HUGE);
    pid_t pid = pass(fd), other = pass(make(OUR_NAME, 0, SIZE_SEALS, &small));
    want(&small);
    want(&huge);
    look_in(pid);
    look_in(other);
    ck_assert_int_eq(run(), 0);
    assert_taken(&huge);
    assert_taken(&small);
    huge.st_ino &= ~SEALED_HUGE; /* another object, which does not exist */
    assert_left(pid, &huge);
    end_holder(pid);
    end_holder(other);
}
END_TEST

/* Without descriptors or memory the daemon does not go on as if the objects had ended. */
START_TEST(a_lack_is_an_error)
{
    static const struct {
        const char *call;
        unsigned n;
    } calls[] = {{"opendir", 1}, {"openat", 1}, {"openat", 2}};
    static const int errors[] = {EMFILE, ENFILE, ENOMEM};
    struct stat st;
    pid_t pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st)), other = fork_holder();
    for (unsigned i = 0; i < 9; i++) {
        want(&st);
        look_in(pid);
        look_in(other);
        faults_begin_call(calls[i / 3].call, calls[i / 3].n, errors[i % 3], false);
        ck_assert_int_eq(run(), -errors[i % 3]);
        ck_assert(faults_end());
        ck_assert(!sealed_has(st.st_ino));
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
    want(&st);
    look_in(pid);
    faults_begin_call("malloc", 1, ENOMEM, false);
    ck_assert_int_eq(run(), -ENOMEM);
    ck_assert(faults_end());
    sealed_limit(0);
    want(&st);
    look_in(pid);
    ck_assert_int_eq(run(), -EMFILE);
    sealed_limit(UINT_MAX);
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
    want(&st);
    look_in(pid);
    ck_assert_int_eq(run(), 0);
    assert_taken(&st);
    end_holder(pid);
    end_holder(other);
}
END_TEST

/* The objects and processes that were noted before stay. */
START_TEST(no_memory_to_note)
{
    struct stat st;
    pid_t pid = pass(make(OUR_NAME, 0, SIZE_SEALS, &st));
    faults_begin_call("realloc", 1, ENOMEM, true);
    ck_assert_int_eq(salvage_want(&salvage, st.st_dev, st.st_ino), -ENOMEM);
    ck_assert_int_eq(salvage_ask(&salvage, (uint32_t)pid), -ENOMEM);
    faults_end();
    want(&st);
    look_in(pid);
    faults_begin_call("realloc", 1, ENOMEM, true);
    int r = 0;
    for (ino_t i = 1; r == 0; i++)
        r = salvage_want(&salvage, st.st_dev, st.st_ino + i);
    ck_assert_int_eq(r, -ENOMEM);
    r = 0;
    for (uint32_t i = 1; r == 0; i++)
        r = salvage_ask(&salvage, INT_MAX - i);
    ck_assert_int_eq(r, -ENOMEM);
    ck_assert(faults_end());
    ck_assert_int_eq(run(), 0);
    assert_taken(&st);
    end_holder(pid);
}
END_TEST

/* Many are missing, and many segments name the same processes. Each process is looked at once. */
START_TEST(many)
{
    struct stat st[40];
    int fds[40];
    for (int i = 0; i < 40; i++)
        fds[i] = make(OUR_NAME, 0, SIZE_SEALS, &st[i]);
    pid_t a = fork_holder();
    for (int i = 0; i < 40; i++)
        close(fds[i]);
    pid_t b = fork_holder();
    for (int i = 0; i < 200; i++) {
        want(&st[(39 + i * 7) % 40]);
        ck_assert_int_eq(salvage_want(&salvage, st[0].st_dev, UINT64_MAX / 2 - (uint64_t)i), 0);
        look_in(i % 3 ? a : b);
    }
    faults_begin_call("opendir", 3, EMFILE, false);
    ck_assert_int_eq(run(), 0);
    ck_assert(!faults_end());
    for (int i = 0; i < 40; i++)
        assert_taken(&st[i]);
    end_holder(a);
    end_holder(b);
}
END_TEST

UNIT_MAIN("salvage", UNIT_TEST(found_in_a_process), UNIT_TEST(nothing_to_do),
          UNIT_TEST(a_process_has_ended), UNIT_TEST(a_process_may_not_be_looked_at),
          UNIT_TEST(what_is_not_taken), UNIT_TEST(replaced_while_it_is_looked_at),
          UNIT_TEST(a_lease_makes_nobody_wait), UNIT_TEST(huge_pages),
          UNIT_TEST(a_lack_is_an_error), UNIT_TEST(no_memory_to_note), UNIT_TEST(many))
