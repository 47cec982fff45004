/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a raster as a PNG file with axes. Needs cairo; a build without it has no such pictures. */
#ifndef CLI_PICTURE_PNG_H
#define CLI_PICTURE_PNG_H

#include "cli/data/outfile.h"
#include "cli/draw/raster.h"

struct png_style {
    size_t width, height; /* of the whole picture, in pixels */
    const char *title;    /* borrowed */
};

/* Computes how many cells the raster should have at most: one for each pixel between the axes. */
void png_cells(const struct png_style *style, size_t *ret_rows, size_t *ret_columns);

/* Draws a line, or an image with a scale of colours, and writes it to file, which the caller
 * commits. Returns 0, or the exit status. */
int png_write(const struct raster *r, const struct png_style *style, bool is_image,
              struct outfile *file);

#endif
