/* SPDX-License-Identifier: Apache-2.0 */
/* A raster as a PNG, with axes, by cairo. */
#ifndef CLI_PICTURE_PNG_H
#define CLI_PICTURE_PNG_H

#include "cli/data/outfile.h"
#include "cli/draw/raster.h"

struct png_style {
    size_t width, height; /* pixels of the whole */
    const char *title;
};

/* How many cells a raster should have at most: pixels between the axes. */
void png_cells(const struct png_style *style, size_t *ret_rows, size_t *ret_columns);

/* Draws a line for one row, else an image with a scale of its colours, into file. Returns 0 or the
 * exit status. */
int png_write(const struct raster *r, const struct png_style *style, bool is_image,
              struct outfile *file);

#endif
