/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/image.h"

#include <math.h>
#include <string.h>

#include "web/memory/numbers.h"

#define LEVELS        254.0F
#define LANES         4
#define COLORS        3
#define ROWS_ELEMENTS 16384 /* converted at once, where rows are short */

/* The image while it is read. Rows of one pixel are added up before they are scaled. */
struct work {
    struct image *image;
    struct look *look;
    struct numbers row; /* of elements, or several rows if they are short */
    uint64_t *edges;    /* of columns + 1: where each pixel of a row begins */
    size_t width;       /* elements of a row */
    double *sums;       /* of one row of pixels */
    uint32_t *counts;
    double *means; /* of all pixels; NULL if the scale is known */
    size_t pixel_row;
    bool wants_range;
};

static uint64_t begin_of(uint64_t n, size_t parts, size_t i)
{
    return n * i / parts;
}

/* Adds one row of elements to the sums. */
static void add_row(const struct work *w, const double *values)
{
    for (size_t c = 0; c < w->image->columns; c++)
        for (uint64_t i = w->edges[c]; i < w->edges[c + 1]; i++) {
            bool is_finite = isfinite(values[i]);
            w->sums[c] += is_finite ? values[i] : 0;
            w->counts[c] += is_finite;
        }
}

/* Like add_row(), for colours, which are finite. */
static void add_colors(const struct work *w, const double *values)
{
    for (size_t c = 0; c < w->image->columns; c++)
        for (uint64_t i = w->edges[c]; i < w->edges[c + 1]; i++)
            for (size_t k = 0; k < COLORS; k++) {
                w->sums[c * COLORS + k] += values[i * COLORS + k];
                w->counts[c * COLORS + k]++;
            }
}

/* Whether each pixel has one element, so that nothing needs to be added up. */
static bool is_exact(const struct image *m)
{
    return m->rows == m->n_rows && m->columns == m->n_columns;
}

/* Reads the elements of one row of pixels. */
static int read_row(void *arg)
{
    const struct work *w = arg;
    const struct image *m = w->image;
    uint64_t end = begin_of(m->n_rows, m->rows, w->pixel_row + 1);
    if (is_exact(m)) {
        struct shmview_view row;
        int r = shmview_view_index(&w->look->view, 0, (int64_t)w->pixel_row, &row);
        return r ? r : numbers_load(&w->row, &row, w->width);
    }
    memset(w->sums, 0, m->columns * m->channels * sizeof *w->sums);
    memset(w->counts, 0, m->columns * m->channels * sizeof *w->counts);
    uint64_t most = w->row.n / w->width, step;
    for (uint64_t i = begin_of(m->n_rows, m->rows, w->pixel_row); i < end; i += step) {
        struct shmview_view rows;
        step = end - i < most ? end - i : most;
        int r = shmview_view_slice(&w->look->view, 0, (int64_t)i, (int64_t)(i + step), 1, &rows);
        r = r ? r : numbers_load(&w->row, &rows, (size_t)step * w->width);
        if (r)
            return r;
        for (uint64_t k = 0; k < step; k++)
            (m->channels == 1 ? add_row : add_colors)(w, w->row.values + k * w->width);
    }
    return 0;
}

/* Returns the factor of set_levels(); 0 if all values are one. */
static double factor_of(const struct image *m)
{
    return m->high > m->low ? (double)LEVELS / (m->high - m->low) : 0;
}

/* Sets n pixels. The loop has no branch, so that the compiler can do several at a time; x - x is 0
 * for a finite x only. */
static void set_levels(const struct image *m, const double *restrict values, size_t n,
                       unsigned char *restrict pixels)
{
    const double low = m->low, factor = factor_of(m);
    for (size_t i = 0; i < n; i++) {
        double x = values[i];
        float part = (float)((x - low) * factor);
        part = part > 0 ? part : 0;
        part = part < LEVELS ? part : LEVELS;
        int level = (int)(part + 1.5F);
        pixels[i] = (unsigned char)(x - x == 0 ? level : 0);
    }
}

static void set_colors(const double *values, size_t n, unsigned char *pixels)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = (unsigned char)(values[i] + 0.5);
}

static inline void widen_one(double *min, double *max, double x)
{
    double low = x - x == 0 ? x : (double)INFINITY;
    double high = x - x == 0 ? x : -(double)INFINITY;
    *min = low < *min ? low : *min;
    *max = high > *max ? high : *max;
}

/* Widens the range of all pixels by n values. Has LANES ranges, so that the compiler can compute
 * them at once. */
static void widen(struct image *m, const double *values, size_t n)
{
    double min[LANES], max[LANES];
    for (size_t k = 0; k < LANES; k++) {
        min[k] = (double)INFINITY;
        max[k] = -(double)INFINITY;
    }
    for (size_t i = 0; i < n / LANES * LANES; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            widen_one(&min[k], &max[k], values[i + k]);
    for (size_t i = n / LANES * LANES; i < n; i++)
        widen_one(&min[0], &max[0], values[i]);
    for (size_t k = 0; k < LANES; k++)
        if (min[k] <= max[k]) {
            m->min = fmin(m->min, min[k]);
            m->max = fmax(m->max, max[k]);
        }
}

/* Makes pixels of one row, or keeps its values if the scale is not known yet. */
static void finish_row(const struct work *w)
{
    struct image *m = w->image;
    size_t n = m->columns * m->channels, at = w->pixel_row * n;
    const double *values = w->row.values;
    if (!is_exact(m)) {
        for (size_t c = 0; c < n; c++)
            w->sums[c] = w->counts[c] ? w->sums[c] / w->counts[c] : (double)NAN;
        values = w->sums;
    }
    if (w->wants_range)
        widen(m, values, n);
    if (m->channels == COLORS)
        set_colors(values, n, m->pixels + at);
    else if (w->means)
        memcpy(w->means + at, values, n * sizeof *values);
    else
        set_levels(m, values, n, m->pixels + at);
}

/* Allocates what reading needs. Returns 0 or an error. */
static int prepare(struct work *w)
{
    struct image *m = w->image;
    size_t row = m->columns * m->channels, n = m->rows * row;
    m->pixels = calloc(n + 1, 1);
    w->sums = calloc(row + 1, sizeof *w->sums);
    w->counts = calloc(row + 1, sizeof *w->counts);
    if (isnan(m->low) && !(w->means = malloc((n + 1) * sizeof *w->means)))
        return -SHMVIEW_ERR_NO_MEMORY;
    w->edges = calloc(m->columns + 1, sizeof *w->edges);
    if (!m->pixels || !w->sums || !w->counts || !w->edges)
        return -SHMVIEW_ERR_NO_MEMORY;
    for (size_t c = 0; m->columns && c <= m->columns; c++)
        w->edges[c] = begin_of(m->n_columns, m->columns, c);
    w->width = (size_t)m->n_columns * m->channels;
    return numbers_init(&w->row, w->width > ROWS_ELEMENTS ? w->width : ROWS_ELEMENTS);
}

/* Reads the image whose scale and channels are set. */
static int read_image(struct image *m, struct look *look, size_t rows, size_t columns,
                      bool wants_range)
{
    struct work w = {.image = m, .look = look, .wants_range = wants_range};
    m->n_rows = (uint64_t)look->view.shape[0];
    m->n_columns = (uint64_t)look->view.shape[1];
    m->min = m->max = (double)NAN;
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
        set_levels(m, w.means, m->rows * m->columns, m->pixels);
    }
    numbers_deinit(&w.row);
    free(w.edges);
    free(w.sums);
    free(w.counts);
    free(w.means);
    return r;
}

int image_init(struct image *m, struct look *look, size_t rows, size_t columns, double low,
               double high, bool wants_range)
{
    *m = (struct image){.channels = 1, .low = low, .high = high};
    return read_image(m, look, rows, columns, wants_range || isnan(low));
}

int image_init_colors(struct image *m, struct look *look, size_t rows, size_t columns)
{
    *m = (struct image){.channels = COLORS, .low = 0, .high = 255};
    return read_image(m, look, rows, columns, false);
}

bool image_has_colors(const struct shmview_view *view)
{
    return view->ndim == 3 && view->shape[2] == COLORS && view->dtype == SHMVIEW_UINT8;
}

void image_deinit(struct image *image)
{
    free(image->pixels);
}
