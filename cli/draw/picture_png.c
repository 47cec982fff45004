/* SPDX-License-Identifier: Apache-2.0 */
/* Draws into an image of cairo in memory, which is then written through struct outfile: the file
 * thus appears complete or not at all. Cairo keeps its own error; put_all() checks it once. */
#include "cli/draw/picture_png.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <cairo.h>
#include <fontconfig/fontconfig.h>

#include "cli/draw/draw.h"

#define LEFT      80.0 /* margins in pixels */
#define RIGHT     24.0
#define RIGHT_BAR 96.0 /* margin of an image, for the scale of colours */
#define TOP       36.0
#define BOTTOM    36.0
#define TICK      5.0
#define TICKS     6 /* approximate number on an axis */
#define FONT      12.0
#define BAR_WIDTH 16
#define BAR_GAP   16.0
#define BAR_STEPS 256
#define LEAST     16.0 /* smallest side of the plot */

/* A rectangle of the picture, in pixels from its upper left corner. */
struct box {
    double x, y, width, height;
};

/* Returns the rectangle between the axes. */
static struct box axes_of(const struct png_style *style, bool is_image)
{
    const double right = is_image ? RIGHT_BAR : RIGHT;
    return (struct box){LEFT, TOP, fmax((double)style->width - LEFT - right, LEAST),
                        fmax((double)style->height - TOP - BOTTOM, LEAST)};
}

void png_cells(const struct png_style *style, size_t *ret_rows, size_t *ret_columns)
{
    const struct box b = axes_of(style, false);
    *ret_rows = (size_t)b.height;
    *ret_columns = (size_t)b.width;
}

/* Returns 1, 2 or 5 times a power of ten, so that at most about TICKS steps fit into range. */
static double tick_step(double range)
{
    double raw = range / TICKS, power = pow(10, floor(log10(raw)));
    double part = raw / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* Draws text. align 0: it begins at x; 1: it ends there; 0.5: it is centred there. */
static void put_text(cairo_t *cr, double x, double y, double align, const char *text)
{
    cairo_text_extents_t e;
    cairo_text_extents(cr, text, &e);
    cairo_move_to(cr, x - align * e.x_advance, y);
    cairo_show_text(cr, text);
}

/* Draws a line through the middle of pixels, because cairo would blur it otherwise. */
static void put_tick(cairo_t *cr, double x0, double y0, double x1, double y1)
{
    cairo_move_to(cr, floor(x0) + 0.5, floor(y0) + 0.5);
    cairo_line_to(cr, floor(x1) + 0.5, floor(y1) + 0.5);
    cairo_stroke(cr);
}

/* Draws the lower axis with indices up to n. In an image an index is the middle of its cell; in a
 * line plot the first and the last one are on the edges. */
static void put_x_axis(cairo_t *cr, const struct box *b, uint64_t n, bool is_image)
{
    char text[32];
    double step = n > 1 ? fmax(tick_step((double)(n - 1)), 1) : 1;
    for (double i = 0; i < (double)n; i += step) {
        double part = is_image ? (i + 0.5) / (double)n : n > 1 ? i / (double)(n - 1) : 0.5;
        double x = b->x + part * b->width;
        put_tick(cr, x, b->y + b->height, x, b->y + b->height + TICK);
        snprintf(text, sizeof text, "%.15g", i);
        put_text(cr, x, b->y + b->height + TICK + FONT + 2, 0.5, text);
    }
}

/* Draws an axis of values at x = at, from min at the bottom to max. The numbers are to its right if
 * is_right. The tolerance of 1e-9 of a step keeps the first and last tick in spite of rounding. */
static void put_value_axis(cairo_t *cr, const struct box *b, const struct raster *r, double at,
                           bool is_right)
{
    char text[32];
    const double range = r->max - r->min, align = is_right ? 0 : 1, out = is_right ? 1 : -1;
    const double step = range > 0 && isfinite(range) ? tick_step(range) : 0;
    double first = step > 0 ? ceil(r->min / step - 1e-9) * step : r->min;
    for (int i = 0; i <= 2 * TICKS; i++) {
        double value = first + i * step;
        if (value > r->max + step * 1e-9)
            break;
        double y = b->y + (1 - raster_part(r, value)) * b->height;
        put_tick(cr, at, y, at + out * TICK, y);
        snprintf(text, sizeof text, "%.6g", fabs(value) < step * 1e-9 ? 0 : value);
        put_text(cr, at + out * (TICK + 3), y + FONT / 3, align, text);
        if (step <= 0)
            break;
    }
}

/* Draws the left axis of an image with the indices of n rows, the first at the top. */
static void put_row_axis(cairo_t *cr, const struct box *b, uint64_t n)
{
    char text[32];
    double step = n > 1 ? fmax(tick_step((double)(n - 1)), 1) : 1;
    for (double i = 0; i < (double)n; i += step) {
        double y = b->y + (i + 0.5) / (double)n * b->height;
        put_tick(cr, b->x - TICK, y, b->x, y);
        snprintf(text, sizeof text, "%.15g", i);
        put_text(cr, b->x - TICK - 3, y + FONT / 3, 1, text);
    }
}

static void put_frame(cairo_t *cr, const struct box *b)
{
    cairo_set_source_rgb(cr, 0, 0, 0);
    cairo_set_line_width(cr, 1);
    cairo_rectangle(cr, floor(b->x) - 0.5, floor(b->y) - 0.5, floor(b->width) + 1,
                    floor(b->height) + 1);
    cairo_stroke(cr);
}

/* Draws a line through the least and greatest value of each cell. A cell without numbers makes a
 * gap. */
static void put_line(cairo_t *cr, const struct box *b, const struct raster *r)
{
    bool has_last = false;
    cairo_set_source_rgb(cr, 0.12, 0.35, 0.7);
    cairo_set_line_width(cr, 1.2);
    cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND); /* so that a single value becomes a dot */
    for (size_t i = 0; i < r->columns; i++) {
        if (isnan(r->least[i])) {
            has_last = false;
            continue;
        }
        double x = b->x + (r->columns > 1 ? (double)i / (double)(r->columns - 1) : 0.5) * b->width;
        double low = b->y + (1 - raster_part(r, r->least[i])) * b->height;
        double high = b->y + (1 - raster_part(r, r->most[i])) * b->height;
        if (has_last)
            cairo_line_to(cr, x, low);
        else
            cairo_move_to(cr, x, low);
        cairo_line_to(cr, x, high);
        has_last = true;
    }
    cairo_stroke(cr);
}

/* Draws the cells as an image with one pixel for each, which cairo scales to the box without
 * smoothing. Returns 0, or -1 if memory is short. */
static int put_cells(cairo_t *cr, const struct box *b, const struct raster *r, size_t rows,
                     size_t columns, const double *values)
{
    cairo_surface_t *cells =
        cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)columns, (int)rows);
    unsigned char *data = cairo_image_surface_get_data(cells);
    if (cairo_surface_status(cells) != CAIRO_STATUS_SUCCESS || !data) {
        cairo_surface_destroy(cells);
        return -1;
    }
    const size_t stride = (size_t)cairo_image_surface_get_stride(cells);
    for (size_t y = 0; y < rows; y++)
        for (size_t x = 0; x < columns; x++) {
            unsigned char rgb[3];
            uint32_t pixel = 0; /* transparent */
            if (!isnan(values[y * columns + x])) {
                draw_color(raster_part(r, values[y * columns + x]), rgb);
                pixel = 0xff000000u | (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
            }
            memcpy(data + y * stride + x * sizeof pixel, &pixel, sizeof pixel);
        }
    cairo_surface_mark_dirty(cells);
    cairo_save(cr);
    cairo_translate(cr, b->x, b->y);
    cairo_scale(cr, b->width / (double)columns, b->height / (double)rows);
    cairo_set_source_surface(cr, cells, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_NEAREST);
    cairo_paint(cr);
    cairo_restore(cr);
    cairo_surface_destroy(cells);
    return 0;
}

/* Draws the scale of colours, with its axis, to the right of an image. */
static int put_bar(cairo_t *cr, const struct box *axes, const struct raster *r)
{
    double values[BAR_STEPS];
    const struct box b = {axes->x + axes->width + BAR_GAP, axes->y, BAR_WIDTH, axes->height};
    for (int i = 0; i < BAR_STEPS; i++)
        values[i] = r->max - (double)i / (BAR_STEPS - 1) * (r->max / 2 - r->min / 2) * 2;
    if (put_cells(cr, &b, r, BAR_STEPS, 1, values))
        return -1;
    put_frame(cr, &b);
    put_value_axis(cr, &b, r, b.x + b.width, true);
    return 0;
}

/* Draws everything. An image keeps the ratio of rows to columns. Returns 0, or -1 on failure. */
static int put_all(cairo_t *cr, const struct raster *r, const struct png_style *style,
                   bool is_image)
{
    struct box b = axes_of(style, is_image);
    if (is_image && b.width / (double)r->n_columns > b.height / (double)r->n_rows)
        b.width = fmax(b.height * (double)r->n_columns / (double)r->n_rows, LEAST);
    else if (is_image)
        b.height = fmax(b.width * (double)r->n_rows / (double)r->n_columns, LEAST);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, FONT);
    if (is_image && (put_cells(cr, &b, r, r->rows, r->columns, r->mean) || put_bar(cr, &b, r)))
        return -1;
    put_frame(cr, &b);
    put_text(cr, b.x, b.y - FONT, 0, style->title);
    put_x_axis(cr, &b, r->n_columns, is_image);
    if (is_image) {
        put_row_axis(cr, &b, r->n_rows);
    } else {
        put_value_axis(cr, &b, r, b.x, false);
        put_line(cr, &b, r);
    }
    return cairo_status(cr) == CAIRO_STATUS_SUCCESS ? 0 : -1;
}

/* Passes the exit status of a failed write through cairo, which has only a code for errors. */
struct sink {
    struct outfile *file;
    int status;
};

static cairo_status_t write_some(void *arg, const unsigned char *data, unsigned length)
{
    struct sink *sink = arg;
    sink->status = outfile_write(sink->file, data, length);
    return sink->status ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

int png_write(const struct raster *r, const struct png_style *style, bool is_image,
              struct outfile *file)
{
    struct sink sink = {.file = file};
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)style->width, (int)style->height);
    cairo_t *cr = cairo_create(surface);
    int result = put_all(cr, r, style, is_image);
    cairo_destroy(cr);
    if (result == 0)
        result =
            cairo_surface_write_to_png_stream(surface, write_some, &sink) != CAIRO_STATUS_SUCCESS;
    cairo_surface_destroy(surface);
    /* Cairo and fontconfig keep fonts for the next text. There is none, and a leak checker would
     * report them. */
    cairo_debug_reset_static_data();
    FcFini();
    if (sink.status)
        return sink.status;
    return result ? fail_memory(file->c) : 0;
}
