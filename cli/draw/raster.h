/* SPDX-License-Identifier: Apache-2.0 */
/* A view as few enough numbers to be drawn: each cell stands for many elements, or many cells for
 * one. What is no number, or infinite, is left out. */
#ifndef CLI_RASTER_H
#define CLI_RASTER_H

#include <stddef.h>

#include <shmview/view.h>

struct raster {
    size_t rows, columns;       /* of cells; rows is 1 for a view of one dimension */
    uint64_t n_rows, n_columns; /* of elements */
    double *least, *most; /* of the elements of each cell, C order; NaN where there are none */
    double *mean;
    double min, max; /* of all; NaN where there is nothing to be drawn */
};

/* Reads a view of one or two dimensions into rows x columns cells, of which there are no more than
 * elements in that dimension. Returns 0; -SHMVIEW_ERR_CONVERSION (no real numbers), _BOUNDS or
 * _NO_MEMORY. It owes raster_deinit() in any case. */
int raster_init(struct raster *r, const struct shmview_view *view, size_t rows, size_t columns);
void raster_deinit(struct raster *r);

/* Where x lies between min and max: 0 to 1. Never NaN for a number. */
double raster_part(const struct raster *r, double x);

#endif
