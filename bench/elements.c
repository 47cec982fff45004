/* SPDX-License-Identifier: Apache-2.0 */
/* Element access beside raw pointers, on the same bytes: 1,000,000 float32 in one
 * dimension, 1000 x 1000 in two. The strided matrices are every other column of
 * one with twice as many. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "kernels.h"

#define SIDE   1000
#define N      (SIDE * SIDE)
#define PASSES 8

enum {
    CONTIGUOUS,
    ROWS,
    STRIDED,
    WALKS
};

static const float factor = 0x1p-20f; /* small: the numbers stay what they are */

struct elements {
    struct shmview_view x[WALKS], y[WALKS];
    float sums[2]; /* of the raw kernel and of the other, which must agree */
};

static struct raw_matrix raw_of(const struct shmview_view *v)
{
    return (struct raw_matrix){v->data, v->shape[0], v->shape[1], v->strides[0], v->strides[1]};
}

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / PASSES / N;
    return 0;
}

/* The two sides of a contest keep their last sum; both are then compared. */
static int finish_sum(struct elements *e, int side, float sum, int64_t start, double *ret)
{
    finish(start, ret);
    e->sums[side] = sum;
    if (side == 0 || fabsf(e->sums[0] - e->sums[1]) < 1e-3f * fabsf(sum))
        return 0;
    return failed("the sums differ: %g and %g", (double)e->sums[0], (double)e->sums[1]);
}

/* Sides 0 (ours) and 1 (raw) of a contest, with the calls that are measured. */
#define SUM(name, side, call)                                                                      \
    static int name(void *arg, double *ret)                                                        \
    {                                                                                              \
        struct elements *e = arg;                                                                  \
        volatile float sum = 0;                                                                    \
        int64_t start = now_ns();                                                                  \
        for (int i = 0; i < PASSES; i++)                                                           \
            sum = call;                                                                            \
        return finish_sum(e, side, sum, start, ret);                                               \
    }
#define AXPY(name, call)                                                                           \
    static int name(void *arg, double *ret)                                                        \
    {                                                                                              \
        struct elements *e = arg;                                                                  \
        int64_t start = now_ns();                                                                  \
        for (int i = 0; i < PASSES; i++)                                                           \
            call;                                                                                  \
        return finish(start, ret);                                                                 \
    }

SUM(sum_contiguous, 0, view_sum_contiguous(&e->x[CONTIGUOUS]))
SUM(sum_rows, 0, view_sum_rows(&e->x[ROWS]))
SUM(sum_strided, 0, view_sum_strided(&e->x[STRIDED]))
SUM(sum_at, 0, view_sum_at(&e->x[STRIDED]))
SUM(raw_contiguous, 1, raw_sum_contiguous((const float *)(void *)e->x[CONTIGUOUS].data, N))
SUM(raw_rows, 1, raw_sum_rows(raw_of(&e->x[ROWS])))
SUM(raw_strided, 1, raw_sum_strided(raw_of(&e->x[STRIDED])))

AXPY(axpy_contiguous, view_axpy_contiguous(factor, &e->x[CONTIGUOUS], &e->y[CONTIGUOUS]))
AXPY(axpy_rows, view_axpy_rows(factor, &e->x[ROWS], &e->y[ROWS]))
AXPY(axpy_strided, view_axpy_strided(factor, &e->x[STRIDED], &e->y[STRIDED]))
AXPY(axpy_at, view_axpy_at(factor, &e->x[STRIDED], &e->y[STRIDED]))
AXPY(axpy_raw_contiguous, raw_axpy_contiguous(factor, (const float *)(void *)e->x[CONTIGUOUS].data,
                                              (float *)(void *)e->y[CONTIGUOUS].data, N))
AXPY(axpy_raw_rows, raw_axpy_rows(factor, raw_of(&e->x[ROWS]), raw_of(&e->y[ROWS])))
AXPY(axpy_raw_strided, raw_axpy_strided(factor, raw_of(&e->x[STRIDED]), raw_of(&e->y[STRIDED])))

static const struct {
    const char *what;
    int (*view)(void *, double *);
    int (*raw)(void *, double *);
    struct target target;
} kernels[] = {
    {"sum, contiguous", sum_contiguous, raw_contiguous, {TARGET_RATIO, 1.05}},
    {"axpy, contiguous", axpy_contiguous, axpy_raw_contiguous, {TARGET_RATIO, 1.05}},
    {"sum, rows", sum_rows, raw_rows, {TARGET_RATIO, 1.05}},
    {"axpy, rows", axpy_rows, axpy_raw_rows, {TARGET_RATIO, 1.05}},
    {"sum, strided rows", sum_strided, raw_strided, {0}},
    {"axpy, strided rows", axpy_strided, axpy_raw_strided, {TARGET_RATIO, 1.25}},
    {"sum, SHMVIEW_AT2 strided", sum_at, raw_strided, {0}},
    {"axpy, SHMVIEW_AT2 strided", axpy_at, axpy_raw_strided, {TARGET_RATIO, 1.25}},
};

/* --- The data ------------------------------------------------------------ */

static int make_views(struct shmview_segment *s, uint64_t offset, struct shmview_view *ret)
{
    const int64_t flat[] = {N}, square[] = {SIDE, SIDE};
    const int64_t every_other[] = {2 * SIDE * (int64_t)sizeof(float), 2 * sizeof(float)};
    const struct shmview_view_spec specs[WALKS] = {
        [CONTIGUOUS] = {.format = "f", .offset = offset, .ndim = 1, .shape = flat},
        [ROWS] = {.format = "f", .offset = offset, .ndim = 2, .shape = square},
        [STRIDED] =
            {.format = "f", .offset = offset, .ndim = 2, .shape = square, .strides = every_other},
    };
    for (int i = 0; i < WALKS; i++)
        if (shmview_view_make(s, &specs[i], &ret[i]))
            return failed("a view: %s", shmview_error_text());
    return 0;
}

static int elements_init(struct elements *e, struct bench *bench, struct shmview_segment **ret)
{
    const uint64_t bytes = 2 * N * sizeof(float); /* of a matrix with twice the columns */
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .flags = SHMVIEW_POPULATE,
    };
    if (shmview_create(bench->connection, "elements", 2 * bytes, &options, ret))
        return failed("create: %s", shmview_error_text());
    float *f = shmview_data(*ret);
    for (size_t i = 0; i < 4 * (size_t)N; i++)
        f[i] = 1 + (float)(i % 7);
    return make_views(*ret, 0, e->x) || make_views(*ret, bytes, e->y) ? -1 : 0;
}

void bench_elements(struct bench *bench)
{
    static struct elements e;
    struct shmview_segment *segment = NULL;
    bool wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        wanted |= bench_wants(bench, kernels[i].what);
    if (!wanted)
        return;
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    if (elements_init(&e, bench, &segment))
        bench->n_failed++;
    else
        for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
            struct contest contest = {
                .unit = "ns/elem",
                .scale = 1,
                .rounds = 41,
                .rounds_quick = 7,
                .n = 2,
                .list = {{"shmview", kernels[i].view, &e, {0}},
                         {"raw pointers", kernels[i].raw, &e, kernels[i].target}},
            };
            snprintf(contest.what, sizeof contest.what, "%s", kernels[i].what);
            contest_run(bench, &contest);
        }
    shmview_detach(segment);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}
