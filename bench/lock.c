/* SPDX-License-Identifier: Apache-2.0 */
/* The lock where nobody else wants it: what a pair costs, and that it makes no
 * system call. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"

#define PAIRS        LOCKS_PAIRS
#define PAIRS_STRICT 100000

/* --- What a pair costs --------------------------------------------------- */

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / PAIRS;
    return 0;
}

static int run_shmview(void *arg, double *ret)
{
    struct shmview_segment *s = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (shmview_lock(s) || shmview_unlock(s))
            return failed("lock: %s", shmview_error_text());
    return finish(start, ret);
}

static int run_semaphore(void *arg, double *ret)
{
    sem_t *m = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (sem_wait(m) || sem_post(m))
            return failed("sem_wait: %s", strerror(errno));
    return finish(start, ret);
}

static void run_uncontended(struct bench *bench, struct shmview_segment *segment,
                            struct locks *locks)
{
    struct contest contest = {
        .what = "lock+unlock, uncontended",
        .unit = "ns",
        .scale = 1,
        .rounds = 41,
        .rounds_quick = 11,
        .list = {{"shmview", run_shmview, segment, {0}}},
        .n = 1,
    };
    for (enum mutex_kind k = 0; k < MUTEX_KINDS; k++)
        contest.list[contest.n++] =
            (struct contestant){mutex_name(k), run_mutex_pairs, &locks->mutex[k].mutex, {0}};
    contest.list[MUTEX_ROBUST_RECURSIVE + 1].target = (struct target){TARGET_RATIO, 0.9};
    contest.list[contest.n++] = (struct contestant){"sem_t", run_semaphore, &locks->semaphore, {0}};
    contest.list[contest.n++] = (struct contestant){TWO_LOCKED, run_two_locked, NULL, {0}};
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    contest_run(bench, &contest);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

/* --- No system call ------------------------------------------------------ */

struct strict {
    struct shmview_segment *segment;
    int out;
};

/* In strict mode the kernel kills whoever calls anything but read, write, exit. */
static void pairs_strict(void *arg)
{
    const struct strict *strict = arg;
    struct shmview_segment *s = strict->segment;
    char verdict = 'y';
    /* the first pair of a new process attaches it */
    if (shmview_lock(s) || shmview_unlock(s) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        verdict = '?';
    for (int i = 0; i < PAIRS_STRICT && verdict == 'y'; i++)
        if (shmview_lock(s) || shmview_unlock(s))
            verdict = 'n';
    syscall(SYS_write, strict->out, &verdict, 1);
    syscall(SYS_exit, 0); /* exit_group is not allowed */
}

/* Returns how many system calls were seen, 0 or 1 since the first one kills, or -1. */
static int count_calls(struct shmview_segment *segment)
{
    int ends[2], status = 0;
    char verdict = 0;
    if (pipe(ends))
        return failed("pipe: %s", strerror(errno));
    struct strict strict = {segment, ends[1]};
    pid_t pid = child_start(pairs_strict, &strict);
    close(ends[1]);
    ssize_t n = pid < 0 ? -1 : read(ends[0], &verdict, 1);
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (n == 1)
        return verdict == 'y' ? 0 : failed("a process in seccomp's strict mode cannot lock");
    if (n == 0 && WIFSIGNALED(status))
        return 1;
    return failed("no process in seccomp's strict mode");
}

static void run_strict(struct bench *bench, struct shmview_segment *segment)
{
    struct row row = {
        .what = "system calls of 100000 such pairs",
        .unit = "calls",
        .target = {TARGET_VALUE, 0},
    };
    if (!bench_wants(bench, row.what))
        return;
    int n = count_calls(segment);
    row.ours = n;
    if (n < 0 || table_add(&bench->table, &row))
        bench->n_failed++;
}

void bench_lock(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    struct locks *locks = locks_new();
    if (!locks || shmview_create(bench->connection, "lock", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        run_uncontended(bench, segment, locks);
        run_strict(bench, segment);
    }
    shmview_detach(segment);
    locks_free(locks);
}
