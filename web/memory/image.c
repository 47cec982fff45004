/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/image.h"

#include <math.h>
#include <string.h>

#include "web/memory/numbers.h"

#define LEVELS 254.0

/* The image while it is read. Rows of one pixel are added up before they are scaled. */
struct work {
    struct image *image;
    struct look *look;
    struct numbers row; /* of elements */
    double *sums;       /* of one row of pixels */
    uint32_t *counts;
    float *means; /* of all pixels; NULL if the scale is known */
    size_t pixel_row;
};

static uint64_t begin_of(uint64_t n, size_t parts, size_t i)
{
    return n * i / parts;
}

/* Adds one row of elements to the sums. */
static void add_row(const struct work *w)
{
    const struct image *m = w->image;
    const double *values = w->row.values;
    for (size_t c = 0; c < m->columns; c++) {
        uint64_t end = begin_of(m->n_columns, m->columns, c + 1);
        for (uint64_t i = begin_of(m->n_columns, m->columns, c); i < end; i++) {
            bool is_finite = isfinite(values[i]);
            w->sums[c] += is_finite ? values[i] : 0;
            w->counts[c] += is_finite;
        }
    }
}

/* Reads the elements of one row of pixels. */
static int read_row(void *arg)
{
    const struct work *w = arg;
    const struct image *m = w->image;
    uint64_t end = begin_of(m->n_rows, m->rows, w->pixel_row + 1);
    memset(w->sums, 0, m->columns * sizeof *w->sums);
    memset(w->counts, 0, m->columns * sizeof *w->counts);
    for (uint64_t i = begin_of(m->n_rows, m->rows, w->pixel_row); i < end; i++) {
        struct shmview_view row;
        int r = shmview_view_index(&w->look->view, 0, (int64_t)i, &row);
        r = r ? r : shmview_copy(&w->row.view, &row);
        if (r)
            return r;
        add_row(w);
    }
    return 0;
}

static unsigned char level(const struct image *m, double factor, double x)
{
    if (isnan(x))
        return 0;
    double part = (x - m->low) * factor;
    return (unsigned char)(1.5 + (part <= 0 ? 0 : part >= LEVELS ? LEVELS : part));
}

/* Returns the factor of level(); 0 if all values are one. */
static double factor_of(const struct image *m)
{
    return m->high > m->low ? LEVELS / (m->high - m->low) : 0;
}

/* Makes pixels of the sums of one row, or means if the scale is not known yet. */
static void finish_row(const struct work *w)
{
    struct image *m = w->image;
    double factor = factor_of(m);
    size_t at = w->pixel_row * m->columns;
    for (size_t c = 0; c < m->columns; c++) {
        double mean = w->counts[c] ? w->sums[c] / w->counts[c] : (double)NAN;
        m->min = fmin(m->min, mean);
        m->max = fmax(m->max, mean);
        if (w->means)
            w->means[at + c] = (float)mean;
        else
            m->pixels[at + c] = level(m, factor, mean);
    }
}

/* Allocates what reading needs. Returns 0 or an error. */
static int prepare(struct work *w)
{
    struct image *m = w->image;
    size_t n = m->rows * m->columns;
    m->pixels = calloc(n + 1, 1);
    w->sums = calloc(m->columns + 1, sizeof *w->sums);
    w->counts = calloc(m->columns + 1, sizeof *w->counts);
    if (isnan(m->low) && !(w->means = malloc((n + 1) * sizeof *w->means)))
        return -SHMVIEW_ERR_NO_MEMORY;
    if (!m->pixels || !w->sums || !w->counts)
        return -SHMVIEW_ERR_NO_MEMORY;
    return numbers_init(&w->row, (size_t)m->n_columns);
}

int image_init(struct image *m, struct look *look, size_t rows, size_t columns, double low,
               double high)
{
    struct work w = {.image = m, .look = look};
    *m = (struct image){.n_rows = (uint64_t)look->view.shape[0],
                        .n_columns = (uint64_t)look->view.shape[1],
                        .low = low,
                        .high = high,
                        .min = (double)NAN,
                        .max = (double)NAN};
    m->rows = (size_t)least((int64_t)m->n_rows, (int64_t)rows);
    m->columns = (size_t)least((int64_t)m->n_columns, (int64_t)columns);
    int r = prepare(&w);
    for (; r == 0 && m->columns && w.pixel_row < m->rows; w.pixel_row++) {
        r = look_read(look, read_row, &w);
        if (r == 0)
            finish_row(&w);
    }
    if (r == 0 && w.means) {
        m->low = m->min;
        m->high = m->max;
        double factor = factor_of(m);
        for (size_t i = 0; i < m->rows * m->columns; i++)
            m->pixels[i] = level(m, factor, (double)w.means[i]);
    }
    numbers_deinit(&w.row);
    free(w.sums);
    free(w.counts);
    free(w.means);
    return r;
}

void image_deinit(struct image *image)
{
    free(image->pixels);
}
