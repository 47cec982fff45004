/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/raster.h"

#include <math.h>
#include <stdlib.h>

#include <shmview/shmview.h>

#include "cli/data/values.h"

/* The raster while elements are added. */
struct filler {
    struct raster *r;
    uint64_t *counts; /* finite elements of each cell so far */
};

/* Adds one element to a cell. Updates the mean step by step, because a sum may overflow. */
static void add(struct filler *f, size_t cell, double x)
{
    struct raster *r = f->r;
    if (f->counts[cell]++ == 0) {
        r->least[cell] = r->most[cell] = r->mean[cell] = x;
    } else {
        r->least[cell] = x < r->least[cell] ? x : r->least[cell];
        r->most[cell] = x > r->most[cell] ? x : r->most[cell];
        r->mean[cell] += (x - r->mean[cell]) / (double)f->counts[cell];
    }
    r->min = r->min <= x ? r->min : x;
    r->max = r->max >= x ? r->max : x;
}

/* Receives the elements in C order, and distributes them to the cells. */
static void visit(void *arg, uint64_t first, const double *values, size_t n)
{
    struct filler *f = arg;
    struct raster *r = f->r;
    uint64_t row = first / r->n_columns, column = first % r->n_columns;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            size_t y = (size_t)((double)row * (double)r->rows / (double)r->n_rows);
            size_t x = (size_t)((double)column * (double)r->columns / (double)r->n_columns);
            add(f, y * r->columns + x, values[i]);
        }
        if (++column == r->n_columns) {
            column = 0;
            row++;
        }
    }
}

int raster_init(struct raster *r, const struct shmview_view *view, size_t rows, size_t columns)
{
    *r = (struct raster){
        .n_rows = view->ndim == 2 ? (uint64_t)view->shape[0] : 1,
        .n_columns = (uint64_t)view->shape[view->ndim - 1],
        .min = (double)NAN,
        .max = (double)NAN,
    };
    r->rows = rows < r->n_rows ? rows : r->n_rows;
    r->columns = columns < r->n_columns ? columns : r->n_columns;
    size_t cells = r->rows * r->columns;
    struct filler f = {.r = r, .counts = calloc(cells + 1, sizeof *f.counts)};
    r->least = calloc(cells + 1, sizeof *r->least);
    r->most = calloc(cells + 1, sizeof *r->most);
    r->mean = calloc(cells + 1, sizeof *r->mean);
    int result = -SHMVIEW_ERR_NO_MEMORY;
    if (f.counts && r->least && r->most && r->mean)
        result = values_each(view, &f, visit);
    for (size_t i = 0; result == 0 && i < cells; i++)
        if (f.counts[i] == 0)
            r->least[i] = r->most[i] = r->mean[i] = (double)NAN;
    free(f.counts);
    return result;
}

void raster_deinit(struct raster *r)
{
    free(r->least);
    free(r->most);
    free(r->mean);
    *r = (struct raster){0};
}

double raster_part(const struct raster *r, double x)
{
    /* halves, because the difference of two doubles may be infinite */
    double width = r->max / 2 - r->min / 2;
    double part = width > 0 ? (x / 2 - r->min / 2) / width : 0.5;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}
