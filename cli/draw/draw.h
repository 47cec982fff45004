/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a raster in characters: a line of dots for one dimension, an image for two.
 *
 * With UTF-8 a braille character has 2 x 4 dots, and half blocks make two coloured dots of one
 * character. Without it a character is one dot, or a shade. */
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
    size_t width, height; /* of the whole drawing with its labels, in characters */
    bool utf8;
    enum draw_colors colors; /* of an image; without UTF-8 it has shades instead */
};

/* Compute how many cells the raster should have at most, so that each cell is one dot. An image
 * keeps the ratio of rows to columns. */
void draw_line_cells(const struct draw_style *style, size_t *ret_columns);
void draw_image_cells(const struct draw_style *style, uint64_t n_rows, uint64_t n_columns,
                      size_t *ret_rows, size_t *ret_columns);

/* Print the raster to out, with the range of indices and of values. Return 0, or
 * -SHMVIEW_ERR_NO_MEMORY. */
int draw_line(const struct raster *r, const struct draw_style *style, FILE *out);
int draw_image(const struct raster *r, const struct draw_style *style, FILE *out);

/* Computes the colour of a part of 0 to 1: matplotlib's viridis, which people with any colour
 * vision can read, and which keeps its order when it is printed in grey. */
void draw_color(double part, unsigned char ret_rgb[3]);

#endif
