/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of values are computed in halves (max / 2 - min / 2), because the difference of two
 * doubles may be infinite. */
#include "cli/draw/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/shmview.h>

#define LABEL_BYTES 16
#define LABEL_WIDTH 10 /* columns of the numbers at the left */
#define BELOW       2  /* lines below the plot: the edge, and its numbers */
#define SCALE_STEPS 20 /* characters of the scale of colours */
#define DOTS_ACROSS 2  /* dots of a braille character */
#define DOTS_DOWN   4

/* Returns n - by, but at least `least`, so that a narrow terminal gets a small plot. */
static size_t less(size_t n, size_t by, size_t least)
{
    return n > by + least ? n - by : least;
}

static size_t plot_width(const struct draw_style *style)
{
    return less(style->width, LABEL_WIDTH + 3, 8);
}

static size_t plot_height(const struct draw_style *style)
{
    return less(style->height, BELOW, 2);
}

void draw_line_cells(const struct draw_style *style, size_t *ret_columns)
{
    *ret_columns = plot_width(style) * (style->utf8 ? DOTS_ACROSS : 1);
}

/* --- Lines --------------------------------------------------------------------- */

/* The dots of a line plot; the height counts from the top. */
struct canvas {
    size_t width, height; /* dots */
    unsigned char *dots;
};

static void set(struct canvas *c, size_t x, size_t y)
{
    if (x < c->width && y < c->height)
        c->dots[y * c->width + x] = 1;
}

/* Returns the row of dots for value. */
static size_t height_of(const struct canvas *c, const struct raster *r, double value)
{
    return (size_t)lround((1 - raster_part(r, value)) * (double)(c->height - 1));
}

static void set_column(struct canvas *c, size_t x, size_t from, size_t to)
{
    for (size_t y = from < to ? from : to; y <= (from < to ? to : from); y++)
        set(c, x, y);
}

/* Draws each cell as a column of dots from its least to its greatest value, and a line from the
 * mean of one cell to that of the next. A cell without numbers interrupts the line. */
static void trace(struct canvas *c, const struct raster *r)
{
    bool has_last = false;
    size_t last_x = 0, last_y = 0;
    for (size_t i = 0; i < r->columns; i++) {
        if (isnan(r->least[i])) {
            has_last = false;
            continue;
        }
        size_t x = r->columns > 1 ? i * (c->width - 1) / (r->columns - 1) : c->width / 2;
        size_t top = height_of(c, r, r->most[i]), bottom = height_of(c, r, r->least[i]);
        size_t y = height_of(c, r, r->mean[i]), from = last_y;
        set_column(c, x, top, bottom);
        for (size_t k = last_x + 1; has_last && k <= x; k++) {
            double part = (double)(k - last_x) / (double)(x - last_x);
            size_t to = (size_t)lround((double)last_y + part * ((double)y - (double)last_y));
            set_column(c, k, from, to);
            from = to;
        }
        last_x = x;
        last_y = y;
        has_last = true;
    }
}

/* Prints one character. Braille starts at U+2800; the code has one bit for each dot. */
static void put_braille(const struct canvas *c, size_t column, size_t row, FILE *out)
{
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    unsigned code = 0;
    for (size_t y = 0; y < DOTS_DOWN; y++)
        for (size_t x = 0; x < DOTS_ACROSS; x++)
            if (c->dots[(row * DOTS_DOWN + y) * c->width + column * DOTS_ACROSS + x])
                code |= bits[y][x];
    if (code == 0)
        fputc(' ', out);
    else
        fprintf(out, "\xe2%c%c", (int)(0xa0 + (code >> 6)), (int)(0x80 + (code & 0x3f)));
}

/* Prints the left edge of a row, with a number in the first and last row, and in the middle of a
 * high plot. */
static void put_label(const struct raster *r, size_t row, size_t height, bool utf8, FILE *out)
{
    char label[LABEL_BYTES] = "";
    bool is_marked = row == 0 || row + 1 == height || (height >= 9 && row == height / 2);
    if (is_marked) {
        double part = 1 - (double)row / (double)(height - 1);
        snprintf(label, sizeof label, "%.4g", r->min + part * (r->max / 2 - r->min / 2) * 2);
    }
    fprintf(out, "%*s %s", LABEL_WIDTH, label,
            utf8 ? (is_marked ? "┤" : "│") : (is_marked ? "+" : "|"));
}

/* Prints the lower edge, and below it the indices at its ends: 0 and n - 1. */
static void put_below(uint64_t n, size_t width, bool utf8, FILE *out)
{
    char last[32];
    int digits = snprintf(last, sizeof last, "%" PRIu64, n ? n - 1 : 0);
    fprintf(out, "%*s %s", LABEL_WIDTH, "", utf8 ? "└" : "+");
    for (size_t i = 0; i < width; i++)
        fputs(utf8 ? "─" : "-", out);
    fprintf(out, "\n%*s0%*s\n", LABEL_WIDTH + 2, "",
            n > 1 ? (int)less(width, 1, (size_t)digits + 1) : 0, n > 1 ? last : "");
}

int draw_line(const struct raster *r, const struct draw_style *style, FILE *out)
{
    const size_t width = plot_width(style), height = plot_height(style);
    struct canvas c = {
        .width = width * (style->utf8 ? DOTS_ACROSS : 1),
        .height = height * (style->utf8 ? DOTS_DOWN : 1),
    };
    c.dots = calloc(c.width * c.height, 1);
    if (!c.dots)
        return -SHMVIEW_ERR_NO_MEMORY;
    trace(&c, r);
    for (size_t y = 0; y < height; y++) {
        put_label(r, y, height, style->utf8, out);
        for (size_t x = 0; x < width; x++)
            if (style->utf8)
                put_braille(&c, x, y, out);
            else
                fputc(c.dots[y * c.width + x] ? '*' : ' ', out);
        fputc('\n', out);
    }
    put_below(r->n_columns, width, style->utf8, out);
    free(c.dots);
    return 0;
}

/* --- Images -------------------------------------------------------------------- */

/* A character is about twice as high as wide, so a cell is half a character high. put_shades()
 * shows the mean of two cells in one character. */
void draw_image_cells(const struct draw_style *style, uint64_t n_rows, uint64_t n_columns,
                      size_t *ret_rows, size_t *ret_columns)
{
    const size_t width = plot_width(style), height = 2 * plot_height(style);
    double scale = fmin((double)width / (double)n_columns, (double)height / (double)n_rows);
    double rows = (double)n_rows * scale, columns = (double)n_columns * scale;
    *ret_columns = columns < 1 ? 1 : (size_t)(columns + 0.5);
    *ret_rows = rows < 1 ? 1 : (size_t)(rows + 0.5);
}

void draw_color(double part, unsigned char ret_rgb[3])
{
    static const unsigned char viridis[][3] = {
        {68, 1, 84},    {71, 44, 122}, {59, 81, 139},  {44, 113, 142}, {33, 144, 141},
        {39, 173, 129}, {92, 200, 99}, {170, 220, 50}, {253, 231, 37},
    };
    const size_t last = sizeof viridis / sizeof viridis[0] - 1;
    double at = part * (double)last;
    size_t i = at >= (double)last ? last - 1 : (size_t)at;
    for (int k = 0; k < 3; k++)
        ret_rgb[k] = (unsigned char)lround(viridis[i][k] +
                                           (at - (double)i) * (viridis[i + 1][k] - viridis[i][k]));
}

/* Selects a colour of the terminal for value; layer is 38 (text) or 48 (background). */
static void put_color(const struct raster *r, double value, enum draw_colors colors, int layer,
                      FILE *out)
{
    unsigned char rgb[3];
    if (isnan(value)) {
        fprintf(out, "\033[%dm", layer + 1); /* not a number: the terminal's default colour */
        return;
    }
    draw_color(raster_part(r, value), rgb);
    if (colors == DRAW_TRUE_COLOR)
        fprintf(out, "\033[%d;2;%u;%u;%um", layer, rgb[0], rgb[1], rgb[2]);
    else
        fprintf(out, "\033[%d;5;%um", layer,
                16 + 36 * (rgb[0] * 5u / 255) + 6 * (rgb[1] * 5u / 255) + rgb[2] * 5u / 255);
}

/* Returns the value of dot (x, y) of an image of rows x columns dots; NaN below the last row, which
 * may be half a character high. An image has more dots than cells if the view is small. */
static double dot(const struct raster *r, size_t x, size_t y, size_t rows, size_t columns)
{
    return y < rows ? r->mean[y * r->rows / rows * r->columns + x * r->columns / columns]
                    : (double)NAN;
}

/* Prints a row of characters with two dots each: the upper half block in the colour of the upper
 * dot, on a background of the lower one. */
static void put_colored(const struct raster *r, const struct draw_style *style, size_t row,
                        size_t rows, size_t columns, FILE *out)
{
    for (size_t x = 0; x < columns; x++) {
        double above = dot(r, x, 2 * row, rows, columns),
               below = dot(r, x, 2 * row + 1, rows, columns);
        if (isnan(above) && !isnan(below)) {
            fputs("\033[0m", out);
            put_color(r, below, style->colors, 38, out);
            fputs("▄", out);
        } else if (isnan(above)) {
            fputs("\033[0m ", out);
        } else {
            put_color(r, above, style->colors, 38, out);
            put_color(r, below, style->colors, 48, out);
            fputs("▀", out);
        }
    }
    fputs("\033[0m", out);
}

/* Prints a row of characters with one of five shades each. */
static void put_shades(const struct raster *r, bool utf8, size_t row, size_t rows, size_t columns,
                       FILE *out)
{
    static const char *const shades[2][5] = {{".", ":", "+", "#", "@"}, {"·", "░", "▒", "▓", "█"}};
    for (size_t x = 0; x < columns; x++) {
        double above = dot(r, x, 2 * row, rows, columns),
               below = dot(r, x, 2 * row + 1, rows, columns);
        double value = isnan(below) ? above : isnan(above) ? below : above / 2 + below / 2;
        size_t i = (size_t)(raster_part(r, value) * 5);
        fputs(isnan(value) ? " " : shades[utf8][i < 5 ? i : 4], out);
    }
}

/* Prints the colours or shades from min to max. They are drawn as an image of one row. */
static void put_scale(const struct raster *r, const struct draw_style *style, FILE *out)
{
    double steps[SCALE_STEPS];
    char from[LABEL_BYTES], to[LABEL_BYTES];
    struct raster scale = *r;
    snprintf(from, sizeof from, "%.4g", r->min);
    snprintf(to, sizeof to, "%.4g", r->max);
    const size_t left = less(style->width, LABEL_WIDTH + 3 + strlen(from) + strlen(to), 2);
    const size_t n = left < SCALE_STEPS ? left : SCALE_STEPS;
    for (size_t i = 0; i < n; i++)
        steps[i] = r->min + (double)i / (double)(n - 1) * (r->max / 2 - r->min / 2) * 2;
    scale.mean = steps;
    scale.rows = 1;
    scale.columns = n;
    fprintf(out, "%*s %s ", LABEL_WIDTH, "", from);
    if (style->colors && style->utf8)
        put_colored(&scale, style, 0, 2, n, out);
    else
        put_shades(&scale, style->utf8, 0, 2, n, out);
    fprintf(out, " %s\n", to);
}

int draw_image(const struct raster *r, const struct draw_style *style, FILE *out)
{
    size_t rows, columns;
    draw_image_cells(style, r->n_rows, r->n_columns, &rows, &columns);
    const size_t height = (rows + 1) / 2;
    for (size_t y = 0; y < height; y++) {
        uint64_t last = r->n_rows - 1;
        if (y == 0)
            fprintf(out, "%*d ", LABEL_WIDTH, 0);
        else if (y + 1 == height)
            fprintf(out, "%*" PRIu64 " ", LABEL_WIDTH, last);
        else
            fprintf(out, "%*s ", LABEL_WIDTH, "");
        if (style->colors && style->utf8)
            put_colored(r, style, y, rows, columns, out);
        else
            put_shades(r, style->utf8, y, rows, columns, out);
        fputc('\n', out);
    }
    char last[32];
    int digits = snprintf(last, sizeof last, "%" PRIu64, r->n_columns - 1);
    fprintf(out, "%*s0%*s\n", LABEL_WIDTH + 1, "",
            r->n_columns > 1 ? (int)less(columns, 1, (size_t)digits + 1) : 0,
            r->n_columns > 1 ? last : "");
    put_scale(r, style, out);
    return 0;
}
