/* SPDX-License-Identifier: Apache-2.0 */
/* Element access beside raw pointers, beside what Cython makes of it, and checked beside
 * unchecked, on the same bytes: 1,000,000 float32 in one dimension, 1000 x 1000 in two. The
 * strided matrices are every other column of one with twice as many. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    struct places places;
    const struct kernels *k; /* the level that is measured */
    float sums[2];           /* ours and the last of the others, which must agree */
};

/* The first element, N of them, and the matrices as others have them. */
static float *first_of(const struct shmview_view *v)
{
    return SHMVIEW_DATA(float, v);
}

static struct raw_matrix raw_of(const struct shmview_view *v)
{
    return (struct raw_matrix){v->data, v->shape[0], v->shape[1], v->strides[0], v->strides[1]};
}

static struct cython_slice slice_of(const struct shmview_view *v)
{
    struct cython_slice s = {.data = (char *)v->data};
    memcpy(s.shape, v->shape, sizeof s.shape);
    memcpy(s.strides, v->strides, sizeof s.strides);
    return s;
}

/* --- What is measured ---------------------------------------------------- */

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / PASSES / N;
    return 0;
}

static int finish_sum(struct elements *e, int side, float sum, int64_t start, double *ret)
{
    finish(start, ret);
    e->sums[side] = sum;
    if (side == 0 || fabsf(e->sums[0] - e->sums[1]) < 1e-3f * fabsf(sum))
        return 0;
    return failed("the sums differ: %g and %g", (double)e->sums[0], (double)e->sums[1]);
}

/* Sides 0 (ours) and 1 (others) of a contest: a call of a kernel of level k. */
#define SUM(name, side, call)                                                                      \
    static int name(void *arg, double *ret)                                                        \
    {                                                                                              \
        struct elements *e = arg;                                                                  \
        const struct kernels *k = e->k;                                                            \
        volatile float sum = 0;                                                                    \
        int64_t start = now_ns();                                                                  \
        for (int i = 0; i < PASSES; i++)                                                           \
            sum = k->call;                                                                         \
        return finish_sum(e, side, sum, start, ret);                                               \
    }
#define AXPY(name, call)                                                                           \
    static int name(void *arg, double *ret)                                                        \
    {                                                                                              \
        struct elements *e = arg;                                                                  \
        const struct kernels *k = e->k;                                                            \
        int64_t start = now_ns();                                                                  \
        for (int i = 0; i < PASSES; i++)                                                           \
            k->call;                                                                               \
        return finish(start, ret);                                                                 \
    }

SUM(sum_contiguous, 0, view_sum_contiguous(&e->x[CONTIGUOUS]))
SUM(sum_rows, 0, view_sum_rows(&e->x[ROWS]))
SUM(sum_strided, 0, view_sum_strided(&e->x[STRIDED]))
SUM(sum_at, 0, view_sum_at(&e->x[STRIDED]))
SUM(raw_contiguous, 1, raw_sum_contiguous(first_of(&e->x[CONTIGUOUS]), N))
SUM(raw_rows, 1, raw_sum_rows(raw_of(&e->x[ROWS])))
SUM(raw_strided, 1, raw_sum_strided(raw_of(&e->x[STRIDED])))
SUM(cython, 1, cython_sum(slice_of(&e->x[STRIDED])))

AXPY(axpy_contiguous, view_axpy_contiguous(factor, &e->x[CONTIGUOUS], &e->y[CONTIGUOUS]))
AXPY(axpy_rows, view_axpy_rows(factor, &e->x[ROWS], &e->y[ROWS]))
AXPY(axpy_strided, view_axpy_strided(factor, &e->x[STRIDED], &e->y[STRIDED]))
AXPY(axpy_at, view_axpy_at(factor, &e->x[STRIDED], &e->y[STRIDED]))
AXPY(axpy_raw_contiguous,
     raw_axpy_contiguous(factor, first_of(&e->x[CONTIGUOUS]), first_of(&e->y[CONTIGUOUS]), N))
AXPY(axpy_raw_rows, raw_axpy_rows(factor, raw_of(&e->x[ROWS]), raw_of(&e->y[ROWS])))
AXPY(axpy_raw_strided, raw_axpy_strided(factor, raw_of(&e->x[STRIDED]), raw_of(&e->y[STRIDED])))
AXPY(axpy_raw_compared, raw_axpy_compared(factor, raw_of(&e->x[STRIDED]), raw_of(&e->y[STRIDED]),
                                          e->x[STRIDED].shape[0], e->y[STRIDED].shape[0]))
AXPY(axpy_cython, cython_axpy(factor, slice_of(&e->x[STRIDED]), slice_of(&e->y[STRIDED])))

SUM(checked_rows, 0, checked_sum_rows(&e->x[ROWS]))
SUM(checked_at, 0, checked_sum_at(&e->x[STRIDED]))
SUM(checked_places, 0, checked_sum_places(&e->x[STRIDED], e->places))
SUM(unchecked_rows, 1, view_sum_rows(&e->x[ROWS]))
SUM(unchecked_at, 1, view_sum_at(&e->x[STRIDED]))
SUM(unchecked_places, 1, view_sum_places(&e->x[STRIDED], e->places))
AXPY(axpy_checked_strided, checked_axpy_strided(factor, &e->x[STRIDED], &e->y[STRIDED]))
AXPY(axpy_checked_at, checked_axpy_at(factor, &e->x[STRIDED], &e->y[STRIDED]))

/* --- The rows ------------------------------------------------------------ */

#define AT_MOST(bound)                                                                             \
    {                                                                                              \
        TARGET_RATIO, bound                                                                        \
    }
/* Two runs of the same instructions differ by so much. */
#define NOT_SLOWER AT_MOST(1.02)
static const struct {
    const char *what;
    int (*ours)(void *, double *);
    struct contestant others[2];
} kernels[] = {
    {"sum, contiguous", sum_contiguous, {{"raw pointers", raw_contiguous, 0, AT_MOST(1.05)}}},
    {"axpy, contiguous",
     axpy_contiguous,
     {{"raw pointers", axpy_raw_contiguous, 0, AT_MOST(1.05)}}},
    {"sum, rows", sum_rows, {{"raw pointers", raw_rows, 0, AT_MOST(1.05)}}},
    {"axpy, rows", axpy_rows, {{"raw pointers", axpy_raw_rows, 0, AT_MOST(1.05)}}},
    {"sum, strided rows",
     sum_strided,
     {{"raw pointers", raw_strided, 0, {0}}, {"Cython's form", cython, 0, NOT_SLOWER}}},
    {"axpy, strided rows",
     axpy_strided,
     {{"raw pointers", axpy_raw_strided, 0, AT_MOST(1.25)},
      {"Cython's form", axpy_cython, 0, NOT_SLOWER}}},
    {"sum, SHMVIEW_AT2",
     sum_at,
     {{"raw pointers", raw_strided, 0, {0}}, {"Cython's form", cython, 0, NOT_SLOWER}}},
    {"axpy, SHMVIEW_AT2",
     axpy_at,
     {{"raw pointers", axpy_raw_strided, 0, AT_MOST(1.25)},
      {"Cython's form", axpy_cython, 0, NOT_SLOWER}}},
    {"sum, SHMVIEW_CHECKED_ROW", checked_rows, {{"unchecked", unchecked_rows, 0, AT_MOST(1.15)}}},
    {"axpy, SHMVIEW_CHECKED_STRIDED",
     axpy_checked_strided,
     {{"unchecked", axpy_strided, 0, AT_MOST(1.15)}}},
    {"sum, SHMVIEW_TRY2", checked_at, {{"unchecked", unchecked_at, 0, AT_MOST(1.15)}}},
    {"sum, SHMVIEW_TRY2 anywhere",
     checked_places,
     {{"unchecked", unchecked_places, 0, AT_MOST(1.15)}}},
    {"axpy, SHMVIEW_TRY2",
     axpy_checked_at,
     {{"unchecked", axpy_at, 0, AT_MOST(1.15)},
      {"raw, two comparisons", axpy_raw_compared, 0, AT_MOST(1.15)}}},
};

static void name_row(char ret[64], size_t i, const struct kernels *k)
{
    snprintf(ret, 64, "%s, -%s", kernels[i].what, k->level);
}

static void run_row(struct bench *bench, struct elements *e, size_t i)
{
    struct contest contest = {
        .unit = "ns/elem",
        .scale = 1,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 1,
        .list = {{"shmview", kernels[i].ours, e, {0}}},
    };
    name_row(contest.what, i, e->k);
    for (size_t o = 0; o < ARRAY_LEN(kernels[i].others) && kernels[i].others[o].name; o++) {
        contest.list[contest.n] = kernels[i].others[o];
        contest.list[contest.n++].arg = e;
    }
    contest_run(bench, &contest);
}

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

/* N places in a fixed order that looks like none, within 64 rows and columns, so that their
 * elements stay in the cache: the checks are what is measured. */
static int make_places(struct places *ret)
{
    uint32_t *list = malloc(2 * N * sizeof *list), state = 1;
    if (!list)
        return failed("out of memory");
    for (size_t i = 0; i < 2 * (size_t)N; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes, 1992 */
        list[i] = state >> 26;
    }
    *ret = (struct places){.rows = list, .columns = list + N, .n = N};
    return 0;
}

static int elements_init(struct elements *e, struct bench *bench, struct shmview_segment **ret)
{
    const uint64_t bytes = 2 * N * sizeof(float); /* of a matrix with twice the columns */
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .flags = SHMVIEW_POPULATE,
    };
    if (make_places(&e->places))
        return -1;
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
    static const struct kernels *const levels[] = {
        &kernels_O2,
        &kernels_O3,
#ifdef BENCH_NATIVE
        &kernels_native,
#endif
    };
    struct shmview_segment *segment = NULL;
    char name[64];
    bool wanted = false;
    for (size_t l = 0; l < ARRAY_LEN(levels); l++)
        for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
            name_row(name, i, levels[l]);
            wanted |= bench_wants(bench, name);
        }
    if (!wanted)
        return;
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    if (elements_init(&e, bench, &segment))
        bench->n_failed++;
    else
        for (size_t l = 0; l < ARRAY_LEN(levels); l++)
            for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
                e.k = levels[l];
                run_row(bench, &e, i);
            }
    shmview_detach(segment);
    free((void *)(uintptr_t)e.places.rows);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}
