/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces a view to as many cells as a picture has dots. Each cell has the least, greatest and mean
 * value of its elements. The extremes are kept because a mean would hide a single outlier among
 * millions of elements. NaN and infinite elements are left out. */
#ifndef CLI_RASTER_H
#define CLI_RASTER_H

#include <stddef.h>

#include <shmview/view.h>

struct raster {
    size_t rows, columns;       /* of cells, not more than elements; rows is 1 for one dimension */
    uint64_t n_rows, n_columns; /* of elements */
    double *least, *most;       /* of each cell, in C order; NaN if it has no finite elements */
    double *mean;               /* likewise */
    double min, max;            /* of all elements; NaN if none is finite */
};

/* Reads all elements of a view of one or two dimensions into at most rows x columns cells. The
 * caller owes raster_deinit() on failure too. Returns 0, or -SHMVIEW_ERR_CONVERSION (the elements
 * are not real numbers), _BOUNDS or _NO_MEMORY. */
int raster_init(struct raster *r, const struct shmview_view *view, size_t rows, size_t columns);
void raster_deinit(struct raster *r);

/* Returns the position of x between min and max: 0 to 1, and 0.5 if these are equal. NaN stays NaN.
 */
double raster_part(const struct raster *r, double x);

#endif
