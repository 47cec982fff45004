/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BRIGHT 200
#define RADIUS 6

/* --- Files --------------------------------------------------------------- */

/* Reads the header, after which the pixels begin. Comments in it are not supported. */
static FILE *open_ppm(const char *path, struct image_size *ret_size)
{
    int largest;
    FILE *file = fopen(path, "rb");
    if (!file)
        err(1, "%s", path);
    if (fscanf(file, "P6 %5" SCNd64 " %5" SCNd64 " %3d", &ret_size->width, &ret_size->height,
               &largest) != 3 ||
        fgetc(file) == EOF || largest != 255)
        errx(1, "%s: not a PPM file of 8 bits (P6)", path);
    if (ret_size->width < 1 || ret_size->width > IMAGE_SIDE_MAX || ret_size->height < 1 ||
        ret_size->height > IMAGE_SIDE_MAX)
        errx(1, "%s: %" PRId64 " x %" PRId64 " pixels, this program takes 1 to %d", path,
             ret_size->width, ret_size->height, IMAGE_SIDE_MAX);
    return file;
}

struct image_size image_size_of(const char *path)
{
    struct image_size size;
    fclose(open_ppm(path, &size));
    return size;
}

void image_load(const char *path, const struct shmview_view *image)
{
    struct image_size size;
    FILE *file = open_ppm(path, &size);
    if (size.height != image->shape[0] || size.width != image->shape[1])
        errx(1, "%s: %" PRId64 " x %" PRId64 " pixels, the first image has %td x %td", path,
             size.width, size.height, image->shape[1], image->shape[0]);
    size_t n = (size_t)image->nbytes;
    if (fread(image->data, 1, n, file) != n)
        errx(1, "%s: ends too early", path);
    fclose(file);
}

void image_save(const char *path, const struct shmview_view *image)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        err(1, "%s", path);
    size_t n = (size_t)image->nbytes;
    fprintf(file, "P6\n%td %td\n255\n", image->shape[1], image->shape[0]);
    if (fwrite(image->data, 1, n, file) != n || fclose(file) != 0)
        err(1, "%s", path);
}

/* --- Pixels -------------------------------------------------------------- */

/* The ball rests in the images 0 to 4, moves in 5 to 14, and rests from then on. */
static int64_t ball_column(int i, int64_t width)
{
    int step = i < 4 ? 0 : i > 14 ? 10 : i - 4;
    return RADIUS + 1 + step * (width - 2 * RADIUS - 2) / 10;
}

void image_draw(const struct shmview_view *image, int i)
{
    int64_t middle = image->shape[0] / 2, column = ball_column(i, image->shape[1]);
    for (int64_t y = 0; y < image->shape[0]; y++)
        for (int64_t x = 0; x < image->shape[1]; x++) {
            int64_t dx = x - column, dy = y - middle;
            int is_ball = dx * dx + dy * dy <= RADIUS * RADIUS;
            unsigned char *pixel = &SHMVIEW_AT3(unsigned char, image, y, x, 0);
            pixel[0] = (unsigned char)(is_ball ? 255 : x % 64);
            pixel[1] = (unsigned char)(is_ball ? 220 : y % 64);
            pixel[2] = (unsigned char)(is_ball ? 210 : 90);
        }
}

int64_t image_difference(const struct shmview_view *a, const struct shmview_view *b)
{
    int64_t n = 0;
    for (int64_t y = 0; y < a->shape[0]; y++)
        for (int64_t x = 0; x < a->shape[1]; x++)
            n += memcmp(&SHMVIEW_AT3(const unsigned char, a, y, x, 0),
                        &SHMVIEW_AT3(const unsigned char, b, y, x, 0), 3) != 0;
    return n;
}

int64_t image_bright_column(const struct shmview_view *image)
{
    int64_t n = 0, sum = 0;
    for (int64_t y = 0; y < image->shape[0]; y++)
        for (int64_t x = 0; x < image->shape[1]; x++) {
            const unsigned char *pixel = &SHMVIEW_AT3(const unsigned char, image, y, x, 0);
            if (pixel[0] < BRIGHT || pixel[1] < BRIGHT || pixel[2] < BRIGHT)
                continue;
            n++;
            sum += x;
        }
    return n ? sum / n : -1;
}
