/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of many views: of attaching their segment, and of opening one of them. */
#include <stdio.h>

#include <shmview/view.h>

#include "bench.h"

#define VIEWS_MOST   256
#define LAYOUTS_MOST 64
#define VIEWS_SMALL  50 /* about as many as the reply to an attachment holds */
#define ATTACHES     100
#define OPENS        20000

/* A segment whose layouts are called "0", "1" and so on, and their views likewise. */
struct subject {
    struct shmview_connection *connection;
    const char *name;
    struct shmview_segment *segment; /* keeps it alive */
    struct shmview_segment *other;   /* another attachment, which opens views */
    char layout[11], view[11];       /* the last ones */
    unsigned n_layouts, n_views;
};

static int define(struct shmview_segment *segment, unsigned layout, unsigned n)
{
    static const int64_t shape[] = {4};
    static char names[VIEWS_MOST][11]; /* an unsigned number in decimal */
    struct shmview_view_spec views[VIEWS_MOST];
    char name[11];
    for (unsigned i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        views[i] = (struct shmview_view_spec){
            .name = names[i], .format = "f", .offset = 8 * i, .ndim = 1, .shape = shape};
    }
    snprintf(name, sizeof name, "%u", layout);
    return shmview_define(segment, name, views, n) ? failed("define: %s", shmview_error_text()) : 0;
}

static int subject_open(struct subject *s, struct shmview_connection *connection)
{
    s->connection = connection;
    if (shmview_create(connection, s->name, 4096, NULL, &s->segment))
        return failed("create: %s", shmview_error_text());
    for (unsigned i = 0; i < s->n_layouts; i++)
        if (define(s->segment, i, s->n_views))
            return -1;
    snprintf(s->layout, sizeof s->layout, "%u", s->n_layouts - 1);
    snprintf(s->view, sizeof s->view, "%u", s->n_views - 1);
    return shmview_attach(connection, s->name, SHMVIEW_READ, 0, &s->other)
               ? failed("attach: %s", shmview_error_text())
               : 0;
}

static int run_attach(void *arg, double *ret)
{
    const struct subject *subject = arg;
    int64_t start = now_ns();
    for (int i = 0; i < ATTACHES; i++) {
        struct shmview_segment *s;
        if (shmview_attach(subject->connection, subject->name, SHMVIEW_READ, 0, &s) ||
            shmview_detach(s))
            return failed("attach: %s", shmview_error_text());
    }
    *ret = (double)(now_ns() - start) / ATTACHES;
    return 0;
}

static int run_first(void *arg, double *ret)
{
    const struct subject *subject = arg;
    int64_t start = now_ns();
    for (int i = 0; i < ATTACHES; i++) {
        struct shmview_segment *s;
        struct shmview_view v;
        if (shmview_attach(subject->connection, subject->name, SHMVIEW_READ, 0, &s) ||
            shmview_view_open(s, subject->layout, subject->view, &v) || shmview_detach(s))
            return failed("open: %s", shmview_error_text());
    }
    *ret = (double)(now_ns() - start) / ATTACHES;
    return 0;
}

static int run_open(void *arg, double *ret)
{
    const struct subject *subject = arg;
    struct shmview_view v;
    int64_t start = now_ns();
    for (int i = 0; i < OPENS; i++)
        if (shmview_view_open(subject->other, subject->layout, subject->view, &v))
            return failed("open: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / OPENS;
    return 0;
}

enum {
    ONE,
    SMALL,
    LARGE,
    LAYOUTS,
    N_SUBJECTS,
};

static const struct {
    const char *what;
    int (*run)(void *, double *);
    int subject;
    double bound; /* 0: none */
} rows[] = {
    {"attach+detach, 50 views", run_attach, SMALL, 1.2},
    {"attach+detach, 256 views", run_attach, LARGE, 1.2},
    {"attach+detach, 64 x 256 views", run_attach, LAYOUTS, 1.5},
    {"attach and first view, 256 views", run_first, LARGE, 0},
    {"open the last view of 256", run_open, LARGE, 1.2},
    {"open the last view of 64 x 256", run_open, LAYOUTS, 1.2},
};

static void run_rows(struct bench *bench, struct subject *subjects)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const bool opens = rows[i].run == run_open;
        struct contest contest = {
            .unit = opens ? "ns" : "us",
            .scale = opens ? 1 : 1e-3,
            .rounds = 41,
            .rounds_quick = 15,
            .n = 2,
            .list = {{"shmview", rows[i].run, &subjects[rows[i].subject], {0}},
                     {"the only view", rows[i].run, &subjects[ONE], {0}}},
        };
        snprintf(contest.what, sizeof contest.what, "%s", rows[i].what);
        if (rows[i].bound > 0)
            contest.list[1].target = (struct target){TARGET_RATIO, rows[i].bound};
        contest_run(bench, &contest);
    }
}

void bench_views(struct bench *bench)
{
    struct subject subjects[N_SUBJECTS] = {
        [ONE] = {.name = "views-one", .n_layouts = 1, .n_views = 1},
        [SMALL] = {.name = "views-small", .n_layouts = 1, .n_views = VIEWS_SMALL},
        [LARGE] = {.name = "views-large", .n_layouts = 1, .n_views = VIEWS_MOST},
        [LAYOUTS] = {.name = "views-layouts", .n_layouts = LAYOUTS_MOST, .n_views = VIEWS_MOST},
    };
    bool wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        wanted |= bench_wants(bench, rows[i].what);
    if (!wanted)
        return;
    int r = 0;
    for (int i = 0; r == 0 && i < N_SUBJECTS; i++)
        r = subject_open(&subjects[i], bench->connection);
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    place_process(&bench->cpus, PLACE_SAME, 1, bench->instance->daemon);
    if (r == 0)
        run_rows(bench, subjects);
    else
        bench->n_failed++;
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
    for (int i = 0; i < N_SUBJECTS; i++) {
        shmview_detach(subjects[i].other);
        shmview_detach(subjects[i].segment);
    }
}
