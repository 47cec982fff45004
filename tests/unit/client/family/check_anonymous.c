/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory of a family: parent and child share it, and it works without /dev/shm. Every
 * system call fails once. */
#include "unit/unit.h"

#include <sys/wait.h>

#include <shmview/family.h>

#include "unit/faults.h"

START_TEST(a_family_shares_it)
{
    struct shmview_anonymous mine, others;
    int status;
    ck_assert_int_eq(shmview_anonymous_create(10000, &mine), 0);
    ck_assert_uint_eq(mine.bytes, 10000);
    unsigned char *bytes = mine.data;
    for (int i = 0; i < 10000; i++)
        ck_assert_uint_eq(bytes[i], 0);
    int fd = dup(mine.fd);
    ck_assert_int_eq(shmview_anonymous_open(fd, &others), 0);
    ck_assert_int_eq(others.fd, fd);
    ck_assert_uint_eq(others.bytes, 10000);
    pid_t pid = fork();
    if (pid == 0) {
        bytes[9999] = 7;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_uint_eq(((unsigned char *)others.data)[9999], 7);
    ck_assert_int_eq(fcntl(mine.fd, F_GETFD), FD_CLOEXEC);
    shmview_anonymous_close(&mine);
    shmview_anonymous_close(&mine);
    ck_assert_uint_eq(((unsigned char *)others.data)[9999], 7);
    shmview_anonymous_close(&others);
}
END_TEST

START_TEST(what_is_refused)
{
    struct shmview_anonymous untouched = {.bytes = 5}, *m = &untouched;
    int pipes[2];
    ck_assert_int_eq(shmview_anonymous_create(0, m), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(shmview_anonymous_create(UINT64_MAX, m), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(shmview_anonymous_create(UINT64_C(1) << 60, m), -SHMVIEW_ERR_NO_SPACE);
    ck_assert_int_eq(errno, ENOSPC);
    unit_assert_holds(shmview_error_text(), "in /dev/shm: no space left");
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(shmview_anonymous_open(pipes[0], m), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(fcntl(pipes[0], F_GETFD), 0);
    close(pipes[0]);
    close(pipes[1]);
    ck_assert_int_eq(shmview_anonymous_open(-1, m), -SHMVIEW_ERR_SYSTEM);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_uint_eq(untouched.bytes, 5);
}
END_TEST

START_TEST(without_files_in_dev_shm)
{
    struct shmview_anonymous m;
    faults_begin_call("open", 1, EOPNOTSUPP, false);
    ck_assert_int_eq(shmview_anonymous_create(4096, &m), 0);
    ck_assert(faults_end());
    ((char *)m.data)[4095] = 1;
    shmview_anonymous_close(&m);
    faults_begin_call("open", 1, EOPNOTSUPP, false);
    ck_assert_int_eq(shmview_anonymous_create(UINT64_C(1) << 60, &m), -SHMVIEW_ERR_NO_SPACE);
    faults_end();
    unit_assert_holds(shmview_error_text(),
                      "a memfd, because /dev/shm takes no file: no space left");
}
END_TEST

START_TEST(each_system_call_fails)
{
    struct shmview_anonymous m;
    unsigned n = 1;
    ck_assert_int_eq(shmview_anonymous_create(1, &m), 0); /* makes what a process makes only once */
    shmview_anonymous_close(&m);
    for (bool failed = true; failed; n++) {
        faults_begin(FAULTS_SYSTEM, n);
        int r = shmview_anonymous_create(4096, &m);
        failed = faults_end();
        ck_assert(failed ? r == -SHMVIEW_ERR_SYSTEM : r == 0);
    }
    ck_assert_uint_gt(n, 3);
    shmview_anonymous_close(&m);
}
END_TEST

static int end(void *n)
{
    return ++*(int *)n == 2;
}

START_TEST(the_caller_ends_an_interrupted_creation)
{
    struct shmview_anonymous m;
    int n = 0;
    shmview_on_wait(end, &n);
    faults_begin_call("posix_fallocate", 1, EINTR, false);
    ck_assert_int_eq(shmview_anonymous_create(4096, &m), -SHMVIEW_ERR_INTERRUPTED);
    faults_end();
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(n, 2);
}
END_TEST

static int go_on(void *n)
{
    ++*(int *)n;
    return 0;
}

/* A signal undoes a step, so the next ones are shorter. */
START_TEST(an_interrupted_creation_goes_on_in_steps)
{
    struct shmview_anonymous m;
    int n = 0;
    shmview_on_wait(go_on, &n);
    faults_begin_call("posix_fallocate", 1, EINTR, false);
    ck_assert_int_eq(shmview_anonymous_create(300000, &m), 0);
    ck_assert(faults_end());
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(n, 3);
    struct stat st;
    ck_assert_int_eq(fstat(m.fd, &st), 0);
    ck_assert_int_eq(st.st_size, 300000);
    ck_assert_int_ge(st.st_blocks * 512, 300000);
    shmview_anonymous_close(&m);
}
END_TEST

UNIT_MAIN("anonymous", UNIT_TEST(a_family_shares_it), UNIT_TEST(what_is_refused),
          UNIT_TEST(without_files_in_dev_shm), UNIT_TEST(each_system_call_fails),
          UNIT_TEST(the_caller_ends_an_interrupted_creation),
          UNIT_TEST(an_interrupted_creation_goes_on_in_steps))
