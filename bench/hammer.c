/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes, and eight, that take one lock again and again: speed and fairness. */
#include <stdio.h>

#include "crowd.h"

#define SECONDS_TWO         0.04
#define SECONDS_EIGHT       10.0
#define SECONDS_EIGHT_QUICK 2.0

struct hammer {
    struct crowd crowd;
    struct crowd_lock ours, mutex;
    double (*figure)(const struct crowd *);
};

/* --- Two ----------------------------------------------------------------- */

/* The nanoseconds that a pair takes the two of them together. */
static double pair_ns(const struct crowd *crowd)
{
    return 1 / crowd_rate(crowd);
}

/* How often the other got the lock for each time that the luckier one got it. */
static double fairness(const struct crowd *crowd)
{
    uint64_t a = crowd->member[0].pairs, b = crowd->member[1].pairs;
    return (double)(a < b ? a : b) / (double)(a < b ? b : a);
}

static int run_lock(struct hammer *h, const struct crowd_lock *lock, double *ret)
{
    int r = crowd_run(&h->crowd, lock);
    if (r == 0)
        *ret = h->figure(&h->crowd);
    return r;
}

static int run_shmview(void *arg, double *ret)
{
    struct hammer *h = arg;
    return run_lock(h, &h->ours, ret);
}

static int run_mutex(void *arg, double *ret)
{
    struct hammer *h = arg;
    return run_lock(h, &h->mutex, ret);
}

static void run_place(struct bench *bench, struct hammer *h)
{
    static const struct {
        const char *what, *unit;
        double (*figure)(const struct crowd *);
        unsigned rounds;
    } kinds[] = {
        {"2 hammer", "ns/pair", pair_ns, 31},
        {"2 hammer, fairness", "min/max", fairness, 11},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct contest contest = {
            .unit = kinds[i].unit,
            .scale = 1,
            .rounds = kinds[i].rounds,
            .rounds_quick = 5,
            .n = 2,
            .list = {{"shmview", run_shmview, h, {0}}, {h->mutex.name, run_mutex, h, {0}}},
        };
        snprintf(contest.what, sizeof contest.what, "%s, %s", kinds[i].what,
                 place_name(h->crowd.place));
        h->figure = kinds[i].figure;
        if (h->figure == pair_ns && h->crowd.place == PLACE_TWO)
            contest.list[1].target = (struct target){TARGET_RATIO, 1.11};
        contest_run(bench, &contest);
    }
}

static void run_two(struct bench *bench, struct hammer *h)
{
    h->crowd.n = 2;
    h->crowd.seconds = SECONDS_TWO;
    h->crowd.timed = false;
    /* not PLACE_FREE: the scheduler puts them on one CPU or two as it likes */
    for (h->crowd.place = PLACE_TWO; h->crowd.place <= PLACE_SAME; h->crowd.place++)
        if (place_exists(&bench->cpus, h->crowd.place))
            run_place(bench, h);
}

/* --- Eight --------------------------------------------------------------- */

/* Runs each side once, for a long time, and not in rounds, because starvation shows only in long
 * runs. */
static int run_eight(struct bench *bench, struct hammer *h)
{
    struct row share = {.what = "8 hammer, least share, not pinned",
                        .unit = "of mean",
                        .target = {TARGET_LEAST, 0.5}};
    struct row longest = {
        .what = "8 hammer, longest wait, not pinned", .unit = "ms", .target = {TARGET_VALUE, 100}};
    double figures[2][2] = {{0}};
    const struct crowd_lock *locks[] = {&h->ours, &h->mutex};
    if (!bench_wants(bench, share.what) && !bench_wants(bench, longest.what))
        return 0;
    h->crowd.place = PLACE_FREE;
    h->crowd.n = 8;
    h->crowd.seconds = bench->quick ? SECONDS_EIGHT_QUICK : SECONDS_EIGHT;
    h->crowd.timed = true;
    for (int i = 0; i < 2; i++) {
        if (crowd_run(&h->crowd, locks[i]))
            return failed("not measured: 8 hammer");
        figures[0][i] = crowd_least_share(&h->crowd);
        for (int m = 0; m < h->crowd.n; m++)
            if ((double)h->crowd.member[m].longest_ns / 1e6 > figures[1][i])
                figures[1][i] = (double)h->crowd.member[m].longest_ns / 1e6;
    }
    struct row *rows[] = {&share, &longest};
    for (int i = 0; i < 2; i++) {
        struct row *row = rows[i];
        snprintf(row->reference_name, sizeof row->reference_name, "%s", h->mutex.name);
        row->ours = figures[i][0];
        row->reference = figures[i][1];
        row->ratio = row->ratio_min = row->ratio_max = row->ours / row->reference;
        if (bench_wants(bench, row->what) && table_add(&bench->table, row))
            return -1;
    }
    return 0;
}

void bench_hammer(struct bench *bench)
{
    struct hammer h = {0};
    struct shmview_segment *segment = NULL;
    if (!bench_wants_placed(bench, "2 hammer") &&
        !bench_wants_placed(bench, "2 hammer, fairness") &&
        !bench_wants_placed(bench, "8 hammer, least share") &&
        !bench_wants_placed(bench, "8 hammer, longest wait"))
        return;
    struct locks *locks = locks_new();
    if (!locks || crowd_init(&h.crowd, bench) ||
        shmview_create(bench->connection, "hammer", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        h.ours = crowd_shmview;
        h.ours.of = segment;
        h.mutex = crowd_robust;
        h.mutex.of = &locks->mutex[MUTEX_ROBUST_RECURSIVE].mutex;
        run_two(bench, &h);
        if (run_eight(bench, &h))
            bench->n_failed++;
    }
    shmview_detach(segment);
    crowd_deinit(&h.crowd);
    locks_free(locks);
}
