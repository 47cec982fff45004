/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on whole views beside plain loops over rows, on the same bytes: 1000 x 1000 elements.
 * The strided ones are every other column of a matrix with twice as many columns. Also one element
 * at a time, of a type that is known only at run time, beside SHMVIEW_AT2. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shmview/view.h>

#include "bench.h"
#include "bulk_raw.h"

#define SIDE   1000
#define N      (SIDE * SIDE)
#define PASSES 4

enum walk {
    ROWS,
    STRIDED,
    TRANSPOSED,
    WALKS
};

/* Each with room for twice the columns. */
struct matrices {
    struct shmview_view to[WALKS];              /* float32, written */
    struct shmview_view from[WALKS], as[WALKS]; /* float32, the same numbers in both */
    struct shmview_view doubles[WALKS], ints[WALKS];
    struct raw_summary told; /* by the raw loop */
};

static struct raw_matrix raw(const struct shmview_view *v)
{
    return (struct raw_matrix){v->data, v->shape[0], v->shape[1], v->strides[0], v->strides[1]};
}

/* --- What is measured ---------------------------------------------------- */

static int finish(int64_t start, bool wrong, const char *name, double *ret)
{
    *ret = (double)(now_ns() - start) / PASSES / N;
    return wrong ? failed("%s: %s", name, shmview_error_text()) : 0;
}

/* Sides of a contest: call, of which wrong must not be true. */
#define SIDE_OF(name, call, wrong)                                                                 \
    static int name(void *arg, double *ret)                                                        \
    {                                                                                              \
        struct matrices *m = arg;                                                                  \
        bool bad = false;                                                                          \
        int64_t start = now_ns();                                                                  \
        for (int pass = 0; pass < PASSES; pass++) {                                                \
            call;                                                                                  \
            bad |= wrong;                                                                          \
        }                                                                                          \
        return finish(start, bad, #name, ret);                                                     \
    }
#define COPY(name, raw_name, to, from)                                                             \
    SIDE_OF(name, int r = shmview_copy(&m->to, &m->from), r != 0)                                  \
    SIDE_OF(name##_raw, raw_name(raw(&m->to), raw(&m->from)), false)

COPY(copy_rows, raw_copy_rows, to[ROWS], from[ROWS])
COPY(copy_strided, raw_copy_strided, to[STRIDED], from[STRIDED])
COPY(copy_transposed, raw_copy_strided, to[ROWS], from[TRANSPOSED])
COPY(int32_to_float32_rows, raw_int32_to_float32_rows, to[ROWS], ints[ROWS])
COPY(float64_to_float32_rows, raw_float64_to_float32_rows, to[ROWS], doubles[ROWS])
COPY(float64_to_float32_strided, raw_float64_to_float32_strided, to[STRIDED], doubles[STRIDED])

SIDE_OF(fill_rows, int r = shmview_fill_double(&m->to[ROWS], pass), r != 0)
SIDE_OF(fill_rows_raw, raw_fill_rows(raw(&m->to[ROWS]), (float)pass), false)
SIDE_OF(fill_strided, int r = shmview_fill_double(&m->to[STRIDED], pass), r != 0)
SIDE_OF(fill_strided_raw, raw_fill_strided(raw(&m->to[STRIDED]), (float)pass), false)

SIDE_OF(equal_rows, int r = shmview_equal(&m->from[ROWS], &m->as[ROWS], NULL), r != 1)
SIDE_OF(equal_rows_raw, int r = raw_equal_rows(raw(&m->from[ROWS]), raw(&m->as[ROWS])), r != 1)

/* Called through a pointer, because the compiler would call it once for all passes. */
static int (*volatile compare)(const void *, const void *, size_t) = memcmp;
SIDE_OF(memcmp_rows, int r = compare(m->from[ROWS].data, m->as[ROWS].data, N * sizeof(float)),
        r != 0)

static bool differ(const struct shmview_summary *s, const struct raw_summary *told)
{
    return s->min != told->min || s->max != told->max || s->n_nan != told->n_nan ||
           fabs(s->sum - told->sum) > 1e-9 * fabs(told->sum);
}
#define SUMMARIZE(type, view)                                                                      \
    SIDE_OF(summarize_##type, struct shmview_summary s;                                            \
            int r = shmview_summarize(&m->view, &s),                                               \
            r != 0 || (m->told.max != 0 && differ(&s, &m->told)))                                  \
    SIDE_OF(summarize_##type##_raw, raw_summarize_##type##_rows(raw(&m->view), &m->told), false)
SUMMARIZE(float32, from[ROWS])
SUMMARIZE(int32, ints[ROWS])

SIDE_OF(get_strided, volatile double sum = sum_by_get(&m->from[STRIDED]), sum == 0)
SIDE_OF(get_strided_raw, volatile float sum = sum_by_at(&m->from[STRIDED]), sum == 0)

#define AS_FAST                                                                                    \
    {                                                                                              \
        TARGET_RATIO, 1.11                                                                         \
    }
#define RAW "plain loops over rows"
static const struct {
    const char *what;
    int (*ours)(void *, double *);
    const char *reference_name;
    int (*reference)(void *, double *);
    struct target target;
} rows[] = {
    {"copy", copy_rows, RAW, copy_rows_raw, AS_FAST},
    {"copy, strided", copy_strided, RAW, copy_strided_raw, AS_FAST},
    {"copy, transposed", copy_transposed, RAW, copy_transposed_raw, AS_FAST},
    {"copy int32 to float32", int32_to_float32_rows, RAW, int32_to_float32_rows_raw, AS_FAST},
    {"copy float64 to float32", float64_to_float32_rows, RAW, float64_to_float32_rows_raw, AS_FAST},
    {"copy float64 to float32, strided",
     float64_to_float32_strided,
     RAW,
     float64_to_float32_strided_raw,
     {0}},
    {"fill", fill_rows, RAW, fill_rows_raw, AS_FAST},
    {"fill, strided", fill_strided, RAW, fill_strided_raw, AS_FAST},
    {"equal", equal_rows, RAW, equal_rows_raw, {TARGET_RATIO, 0.8}},
    {"summarize float32", summarize_float32, RAW, summarize_float32_raw, AS_FAST},
    {"summarize int32", summarize_int32, RAW, summarize_int32_raw, {TARGET_RATIO, 0.6}},
    {"sum by shmview_get_double", get_strided, "SHMVIEW_AT2", get_strided_raw, {TARGET_RATIO, 4}},
};

static bool has_avx2(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* Only the library's AVX2 code is faster than a plain loop by so much. Without AVX2 it must still
 * be as fast. */
static struct target target_of(size_t i)
{
    static const struct target as_fast = AS_FAST;
    struct target t = rows[i].target;
    return t.kind == TARGET_RATIO && t.bound < 1 && !has_avx2() ? as_fast : t;
}

/* --- The data ------------------------------------------------------------ */

/* Adds a matrix after *offset. */
static int make_views(struct shmview_segment *s, const char *format, int64_t size, uint64_t *offset,
                      struct shmview_view *ret)
{
    const int64_t square[] = {SIDE, SIDE};
    const int64_t strides[WALKS][2] = {
        [ROWS] = {SIDE * size, size},
        [STRIDED] = {2 * SIDE * size, 2 * size},
        [TRANSPOSED] = {size, SIDE * size},
    };
    for (int i = 0; i < WALKS; i++) {
        const struct shmview_view_spec spec = {
            .format = format, .offset = *offset, .ndim = 2, .shape = square, .strides = strides[i]};
        if (shmview_view_make(s, &spec, &ret[i]))
            return failed("a view: %s", shmview_error_text());
    }
    *offset += 2 * N * (uint64_t)size;
    return 0;
}

static int matrices_init(struct matrices *m, struct bench *bench, struct shmview_segment **ret)
{
    const uint64_t bytes = 2 * N * (4 * sizeof(float) + sizeof(double));
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .flags = SHMVIEW_POPULATE,
    };
    uint64_t offset = 0;
    if (shmview_create(bench->connection, "bulk", bytes, &options, ret))
        return failed("create: %s", shmview_error_text());
    if (make_views(*ret, "f", sizeof(float), &offset, m->to) ||
        make_views(*ret, "f", sizeof(float), &offset, m->from) ||
        make_views(*ret, "f", sizeof(float), &offset, m->as) ||
        make_views(*ret, "i", sizeof(int32_t), &offset, m->ints) ||
        make_views(*ret, "d", sizeof(double), &offset, m->doubles))
        return -1;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)2 * N; i++) {
        SHMVIEW_DATA(float, m->from)[i] = SHMVIEW_DATA(float, m->as)[i] = 1 + (float)(i % 7);
        SHMVIEW_DATA(int32_t, m->ints)[i] = (int32_t)(1 + i % 7);
        SHMVIEW_DATA(double, m->doubles)[i] = 1 + (double)(i % 7);
    }
    return 0;
}

void bench_bulk(struct bench *bench)
{
    static struct matrices m;
    struct shmview_segment *segment = NULL;
    bool wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        wanted |= bench_wants(bench, rows[i].what);
    if (!wanted)
        return;
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    if (matrices_init(&m, bench, &segment))
        bench->n_failed++;
    else
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct contest contest = {
                .unit = "ns/elem",
                .scale = 1,
                .rounds = 41,
                .rounds_quick = 7,
                .n = 2,
                .list = {{"shmview", rows[i].ours, &m, {0}},
                         {rows[i].reference_name, rows[i].reference, &m, target_of(i)}},
            };
            snprintf(contest.what, sizeof contest.what, "%s", rows[i].what);
            if (rows[i].ours == equal_rows) /* the time of the memory alone */
                contest.list[contest.n++] = (struct contestant){"memcmp", memcmp_rows, &m, {0}};
            m.told.max = 0;
            contest_run(bench, &contest);
        }
    shmview_detach(segment);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}
