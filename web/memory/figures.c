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
    double width = f->high - f->low; /* figures_read() has cut the bounds, so that it is finite */
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            f->n_infinite += isinf(values[i]) ? 1 : 0;
            continue;
        }
        /* 64 / width would be infinite for a very small width */
        double bin = width > 0 ? (values[i] - f->low) / width * FIGURES_BINS : 0;
        if (bin >= 0 && bin <= FIGURES_BINS)
            f->counts[bin >= FIGURES_BINS ? FIGURES_BINS - 1 : (size_t)bin]++;
    }
}

/* Counts the elements of a view of at least one dimension, in parts of any dimensions, because a
 * row may have few elements. */
static int count_parts(const struct work *w, const struct shmview_view *view)
{
    struct shmview_view part;
    uint64_t n = view->itemsize ? view->nbytes / view->itemsize : 0;
    if (n == 0)
        return 0; /* the other dimensions may have any lengths */
    if (n <= PART_ELEMENTS) {
        int r = numbers_load(w->numbers, view, (size_t)n);
        if (r == 0)
            count(w->figures, w->numbers->values, (size_t)n);
        return r;
    }
    int64_t rows = view->shape[0], per_row = (int64_t)n / rows;
    int64_t step = per_row < PART_ELEMENTS ? PART_ELEMENTS / per_row : 1;
    for (int64_t i = 0; i < rows; i += step) {
        int r = step > 1 ? shmview_view_slice(view, 0, i, least(i + step, rows), 1, &part)
                         : shmview_view_index(view, 0, i, &part);
        r = r ? r : count_parts(w, &part);
        if (r)
            return r;
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
    return r ? r : count_parts(w, &view);
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
