/* SPDX-License-Identifier: Apache-2.0 */
/* A view of two dimensions as an image: one byte for each pixel, 0 where no element is a finite
 * number, otherwise 1 to 255 between two values. A pixel of several elements has their mean.
 *
 * A view of uint8 with a third dimension of 3 can be an image of colours: three bytes for each
 * pixel, its red, green and blue, which are the means of the elements. */
#ifndef WEB_IMAGE_H
#define WEB_IMAGE_H

#include "web/memory/look.h"

#define IMAGE_SIDE_MOST 2048

struct image {
    uint64_t n_rows, n_columns; /* of elements */
    size_t rows, columns;       /* of pixels, not more than elements */
    double low, high;           /* the scale: values of the bytes 1 and 255 */
    double min, max;            /* of all pixels; NaN if none is a number, or not wanted */
    size_t channels;            /* bytes of a pixel: 1 or 3 */
    unsigned char *pixels;      /* owned */
};

/* Reads an image of at most rows * columns pixels. With low and high NaN, the scale is that of the
 * pixels; otherwise the range of the pixels is found only with wants_range, which takes as long as
 * the rest. The view must have two dimensions. The caller owes image_deinit(), on failure
 * too. Returns 0 or an error of the library. */
int image_init(struct image *image, struct look *look, size_t rows, size_t columns, double low,
               double high, bool wants_range);
/* Reads an image of colours. The view must be one that image_has_colors() accepts. Otherwise like
 * image_init(). */
int image_init_colors(struct image *image, struct look *look, size_t rows, size_t columns);
bool image_has_colors(const struct shmview_view *view);
void image_deinit(struct image *image);
#define CLEANUP_IMAGE CLEANUP(image_deinit)

#endif
