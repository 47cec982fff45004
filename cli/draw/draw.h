/* SPDX-License-Identifier: Apache-2.0 */
/* A raster in characters: a line of dots for one dimension, an image for two. */
#ifndef CLI_DRAW_H
#define CLI_DRAW_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/draw/raster.h"

enum draw_colors {
    DRAW_NO_COLOR,
    DRAW_256,
    DRAW_TRUE_COLOR,
};

struct draw_style {
    size_t width, height; /* of everything, in characters */
    bool utf8;
    enum draw_colors colors; /* of an image */
};

/* How many cells across and down a raster should have at most. */
void draw_line_cells(const struct draw_style *style, size_t *ret_columns);
void draw_image_cells(const struct draw_style *style, uint64_t n_rows, uint64_t n_columns,
                      size_t *ret_rows, size_t *ret_columns);

/* Print it, with the numbers that its edges stand for. Return 0 or -SHMVIEW_ERR_NO_MEMORY. */
int draw_line(const struct raster *r, const struct draw_style *style, FILE *out);
int draw_image(const struct raster *r, const struct draw_style *style, FILE *out);

/* The colour of a part of 0 to 1: matplotlib's viridis, which is seen by everybody. */
void draw_color(double part, unsigned char ret_rgb[3]);

#endif
