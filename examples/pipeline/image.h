/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - images of three bytes for each pixel, in views, and PPM files.
 *
 * If a file is not what these functions need, they end the program with a message that names it. */
#ifndef PIPELINE_IMAGE_H
#define PIPELINE_IMAGE_H

#include <stdint.h>

#include <shmview/shmview.h>

/* An image is a view of uint8 with the shape {height, width, 3}, without gaps in its rows. */
#define IMAGE_SIDE_MAX 4096

struct image_size {
    int64_t height;
    int64_t width;
};

/* Reads the size of a PPM file (P6, 8 bits). */
struct image_size image_size_of(const char *path);

/* Reads a PPM file into a view, which must have the size of the file. */
void image_load(const char *path, const struct shmview_view *image);

/* Writes a PPM file. */
void image_save(const char *path, const struct shmview_view *image);

/* Draws image number i of a film: a ball that rests, crosses the image, and rests. */
void image_draw(const struct shmview_view *image, int i);

/* Returns how many pixels differ between two images of one size. */
int64_t image_difference(const struct shmview_view *a, const struct shmview_view *b);

/* Returns the column of the middle of the bright pixels, or -1 if there are none. */
int64_t image_bright_column(const struct shmview_view *image);

#endif
