/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/values.h"

#include <math.h>
#include <string.h>

#include <shmview/shmview.h>

#include "cli/data/pieces.h"
#include "cli/data/scratch.h"

/* Returns the format to which shmview_copy() converts the elements. The copy refuses an integer
 * that a double cannot hold exactly, so integers of 64 bits stay integers and round_all() rounds
 * them. */
static const char *format_for(uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_INT64:
        return "q";
    case SHMVIEW_UINT64:
    case SHMVIEW_POINTER:
        return "Q";
    default:
        return "d";
    }
}

/* Rounds the integers of a copy to doubles in place; memcpy() because both types use one memory. */
static const double *round_all(const struct shmview_view *copy, size_t n)
{
    unsigned char *p = copy->data;
    for (size_t i = 0; i < n && copy->dtype != SHMVIEW_FLOAT64; i++, p += sizeof(double)) {
        int64_t s;
        uint64_t u;
        memcpy(&s, p, sizeof s);
        memcpy(&u, p, sizeof u);
        double x = copy->dtype == SHMVIEW_INT64 ? (double)s : (double)u;
        memcpy(p, &x, sizeof x);
    }
    return SHMVIEW_DATA(double, copy);
}

int values_each(const struct shmview_view *view, void *arg,
                void (*visit)(void *arg, uint64_t first, const double *values, size_t n))
{
    CLEANUP_SCRATCH struct scratch scratch = {0};
    struct pieces pieces;
    struct shmview_view piece, copy;
    uint64_t first = 0;
    int r = scratch_init(&scratch, view, format_for(view->dtype));
    pieces_begin(&pieces, view, SCRATCH_BYTES);
    while (r == 0 && (r = pieces_next(&pieces, &piece)) == PIECES_NEXT) {
        r = scratch_like(&scratch, &piece, &copy);
        r = r ? r : shmview_copy(&copy, &piece);
        if (r == 0) {
            size_t n = copy.nbytes / sizeof(double);
            visit(arg, first, round_all(&copy, n), n);
            first += n;
        }
    }
    return r;
}

/* Counts infinities, and finds the range of the finite values. The comparisons are false for NaN,
 * so the first finite value replaces the initial NaN. */
static void visit_range(void *arg, uint64_t first, const double *values, size_t n)
{
    struct values_summary *s = arg;
    (void)first;
    for (size_t i = 0; i < n; i++) {
        if (isinf(values[i]))
            s->n_infinite++;
        if (!isfinite(values[i]))
            continue;
        s->finite_min = s->finite_min <= values[i] ? s->finite_min : values[i];
        s->finite_max = s->finite_max >= values[i] ? s->finite_max : values[i];
    }
}

/* The sum of squares around the mean; a long double, because it adds all elements. */
struct deviation {
    double mean;
    long double sum;
};

static void visit_deviation(void *arg, uint64_t first, const double *values, size_t n)
{
    struct deviation *d = arg;
    (void)first;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i])) {
            long double x = (long double)values[i] - (long double)d->mean;
            d->sum += x * x;
        }
}

int values_summarize(const struct shmview_view *view, struct values_summary *ret)
{
    struct values_summary s = {.finite_min = (double)NAN, .finite_max = (double)NAN};
    struct deviation d = {0};
    int r = shmview_summarize(view, &s.of_library);
    const uint64_t n = s.of_library.n - s.of_library.n_nan;
    r = r ? r : values_each(view, &s, visit_range);
    s.mean = d.mean = n ? s.of_library.sum / (double)n : (double)NAN;
    r = r ? r : values_each(view, &d, visit_deviation);
    s.std = n ? (double)sqrtl(d.sum / (long double)n) : (double)NAN;
    if (r == 0)
        *ret = s;
    return r;
}
