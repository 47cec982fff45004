/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/figures.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "web/memory/numbers.h"

#define PART_ELEMENTS 65536

struct work {
    struct figures *figures;
    const struct shmview_view *view;
    struct numbers *numbers;
};

static int summarize(void *arg)
{
    const struct work *w = arg;
    return shmview_summarize(w->view, &w->figures->summary);
}

/* Adds values to the bins. A value on an edge belongs to the bin that begins there, but the last
 * edge to the last bin. */
static void count(struct figures *f, const double *values, size_t n)
{
    double factor = f->high > f->low ? FIGURES_BINS / (f->high - f->low) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            f->n_infinite += isinf(values[i]) ? 1 : 0;
            continue;
        }
        double bin = (values[i] - f->low) * factor;
        if (bin >= 0 && bin <= FIGURES_BINS)
            f->counts[bin >= FIGURES_BINS ? FIGURES_BINS - 1 : (size_t)bin]++;
    }
}

/* Counts the elements of all rows of the last dimension. */
static int count_rows(const struct work *w, struct shmview_view view)
{
    if (view.ndim > 1) {
        for (ptrdiff_t i = 0; i < view.shape[0]; i++) {
            struct shmview_view row;
            int r = shmview_view_index(&view, 0, i, &row);
            r = r ? r : count_rows(w, row);
            if (r)
                return r;
        }
        return 0;
    }
    uint64_t n = (uint64_t)view.shape[0];
    for (uint64_t first = 0; first < n; first += PART_ELEMENTS) {
        size_t part = (size_t)least((int64_t)(n - first), PART_ELEMENTS);
        int r = numbers_load(w->numbers, &view, first, part);
        if (r)
            return r;
        count(w->figures, w->numbers->values, part);
    }
    return 0;
}

static int count_all(void *arg)
{
    const struct work *w = arg;
    struct shmview_view view = *w->view;
    const int64_t one = 1;
    memset(w->figures->counts, 0, sizeof w->figures->counts);
    w->figures->n_infinite = 0;
    int r = view.ndim ? 0 : shmview_view_reshape(&view, 1, &one, &view);
    return r ? r : count_rows(w, view);
}

int figures_read(struct figures *f, struct look *look)
{
    CLEANUP_NUMBERS struct numbers numbers = {.n = 0};
    struct work w = {.figures = f, .view = &look->view, .numbers = &numbers};
    *f = (struct figures){.low = 0};
    int r = numbers_init(&numbers, PART_ELEMENTS);
    r = r ? r : look_read(look, summarize, &w);
    if (r)
        return r;
    f->low = fmax(f->summary.min, -DBL_MAX / 4);
    f->high = fmin(f->summary.max, DBL_MAX / 4);
    if (isnan(f->summary.min))
        f->low = f->high = 0;
    if (f->low == f->high) {
        f->low -= 0.5;
        f->high += 0.5;
    }
    return look_read(look, count_all, &w);
}
