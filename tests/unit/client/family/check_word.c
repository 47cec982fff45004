/* SPDX-License-Identifier: Apache-2.0 */
/* Words to wait on, and names of processes: bounded waits, deadlines, interruptions, and a process
 * that has ended. */
#include "unit/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <shmview/family.h>

static struct shmview_anonymous memory;
static _Atomic uint32_t *word;

static void set_up(void)
{
    ck_assert_int_eq(shmview_anonymous_create(4096, &memory), 0);
    word = memory.data;
}

static void tear_down(void)
{
    shmview_anonymous_close(&memory);
}

static int wait_on(uint32_t value, int64_t deadline)
{
    return shmview_word_wait((const uint32_t *)word, value, deadline);
}

START_TEST(a_wait_ends)
{
    set_up();
    ck_assert_int_eq(wait_on(1, 0), 0);
    ck_assert_int_eq(wait_on(0, 0), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(wait_on(0, shmview_deadline(-5)), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(wait_on(0, shmview_deadline(2000000)), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(wait_on(0, SHMVIEW_FOREVER), 0); /* nobody wakes it */
    ck_assert_int_eq(shmview_word_wake((uint32_t *)word, 1), 0);
    ck_assert_int_eq(shmview_word_wake((uint32_t *)word, 0), 0);
    tear_down();
}
END_TEST

/* Waits in the child until the parent has changed the word. */
START_TEST(another_process_wakes)
{
    int status;
    set_up();
    pid_t pid = fork();
    if (pid == 0) {
        while (*word == 0)
            if (wait_on(0, SHMVIEW_FOREVER))
                _exit(1);
        _exit(0);
    }
    *word = 1;
    shmview_word_wake((uint32_t *)word, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    tear_down();
}
END_TEST

static int end(void *n)
{
    ++*(int *)n;
    return 1;
}

START_TEST(the_caller_ends_a_wait)
{
    int n = 0;
    set_up();
    shmview_on_wait(end, &n);
    ck_assert_int_eq(wait_on(0, SHMVIEW_FOREVER), -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(n, 1);
    tear_down();
}
END_TEST

START_TEST(names_of_processes)
{
    uint64_t mine, again, others;
    int pipes[2], status;
    ck_assert_int_eq(shmview_process_name(&mine), 0);
    ck_assert_int_eq(shmview_process_name(&again), 0);
    ck_assert_uint_eq(mine, again);
    ck_assert_int_eq(shmview_process_has_ended(mine), 0);
    ck_assert_int_eq(shmview_process_has_ended(0), 0);
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool named =
            shmview_process_name(&mine) == 0 && write(pipes[1], &mine, sizeof mine) == sizeof mine;
        pause();
        _exit(!named);
    }
    ck_assert_int_eq(read(pipes[0], &others, sizeof others), sizeof others);
    ck_assert_uint_ne(mine, others);
    ck_assert_int_eq(shmview_process_has_ended(others), 0);
    /* a process with the same id that began at another time is not this one */
    ck_assert_int_eq(shmview_process_has_ended(others + (UINT64_C(1) << 32)), 1);
    kill(pid, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(shmview_process_has_ended(others), 1); /* a zombie */
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(shmview_process_has_ended(others), 1);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

UNIT_MAIN("word", UNIT_TEST(a_wait_ends), UNIT_TEST(another_process_wakes),
          UNIT_TEST(the_caller_ends_a_wait), UNIT_TEST(names_of_processes))
