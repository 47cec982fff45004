/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/draw/picture.h"

#include <inttypes.h>
#include <string.h>

#include <shmview/value.h>

#define TYPE_BYTES 128
#define TYPE_MOST  24 /* columns; a longer type is cut */
#define BAR_LEAST  16
#define BAR_MOST   160
#define EIGHTHS    8 /* of a column: block characters have this resolution */
#define GAP        2 /* columns between a label and its bar */

/* The widths of the parts of a line, in columns. */
struct picture {
    const struct shmview_description *d;
    const char *current;
    size_t layout, view, type; /* widths of the labels: as the longest needs */
    size_t bar;
    bool utf8, color;
};

const char *type_text(const struct shmview_view_description *v)
{
    /* a format cannot name a pointer type, so the user could not write the name */
    const bool has_name = shmview_dtype_kind(v->dtype) > SHMVIEW_VALUE_BYTES &&
                          !(v->dtype & SHMVIEW_SWAPPED) && v->dtype != SHMVIEW_POINTER;
    return has_name ? shmview_dtype_name(v->dtype) : v->format;
}

void picture_type(const struct shmview_view_description *v, char *ret, size_t bytes)
{
    size_t n = (size_t)snprintf(ret, bytes, "%s", type_text(v));
    for (uint32_t i = 0; i < v->ndim && n < bytes; i++)
        n += (size_t)snprintf(ret + n, bytes - n, "%s%" PRId64, i ? "," : "[", v->shape[i]);
    if (v->ndim && n < bytes)
        snprintf(ret + n, bytes - n, "]");
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Sets the widths. The bar gets the columns that the labels leave. */
static void measure(struct picture *p, size_t width)
{
    for (size_t i = 0; i < p->d->n_layouts; i++) {
        const struct shmview_layout_description *l = p->d->layouts[i];
        p->layout = larger(p->layout, strlen(l->name));
        for (size_t k = 0; k < l->n_views; k++) {
            char type[TYPE_BYTES];
            picture_type(l->views[k], type, sizeof type);
            p->view = larger(p->view, strlen(l->views[k]->name));
            p->type = larger(p->type, strlen(type));
        }
    }
    if (p->type > TYPE_MOST)
        p->type = TYPE_MOST;
    /* "* layout  view  type  |bar|" */
    size_t labels = 2 + p->layout + GAP + p->view + GAP + p->type + GAP + 2;
    p->bar = width > labels + BAR_LEAST ? width - labels : BAR_LEAST;
    if (p->bar > BAR_MOST)
        p->bar = BAR_MOST;
}

/* Whether the view skips bytes between its first and its last one, as a strided view does. */
static bool has_gaps(const struct shmview_view_description *v)
{
    return v->nbytes < v->end - v->begin;
}

/* Prints one character of a bar, of which the view covers the eighths from `from` to `to`. Unicode
 * has blocks for the left eighths, but only a half for the right side. */
static void print_cell(const struct picture *p, uint64_t from, uint64_t to, bool gaps)
{
    static const char *const left[EIGHTHS] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (from >= to)
        fputs(p->utf8 ? "·" : ".", stdout);
    else if (!p->utf8)
        putchar(gaps ? '+' : '#');
    else if (gaps)
        fputs("▒", stdout);
    else if (from == 0 && to < EIGHTHS)
        fputs(left[to], stdout);
    else if (from >= EIGHTHS / 2 && to == EIGHTHS)
        fputs("▐", stdout);
    else
        fputs("█", stdout);
}

/* Returns (byte * eighths + more) / size. The product may need more than 64 bits. */
static uint64_t scale(uint64_t byte, uint64_t eighths, uint64_t size, uint64_t more)
{
    return (uint64_t)(((unsigned __int128)byte * eighths + more) / size);
}

/* Prints the bar of a view. Rounds its begin down and its end up, so that the smallest view is
 * still visible. */
static void print_bar(const struct picture *p, const struct shmview_view_description *v,
                      const char *color)
{
    uint64_t eighths = p->bar * EIGHTHS, size = (uint64_t)p->d->size;
    uint64_t from = scale(v->begin, eighths, size, 0), to = scale(v->end, eighths, size, size - 1);
    if (v->begin == v->end)
        to = from;
    fputs(p->utf8 ? "│" : "|", stdout);
    if (p->color)
        fputs(color, stdout);
    for (uint64_t cell = 0; cell < p->bar; cell++) {
        uint64_t begin = cell * EIGHTHS, end = begin + EIGHTHS;
        uint64_t first = from > begin ? from - begin : 0;
        uint64_t last = to < begin ? 0 : to > end ? EIGHTHS : to - begin;
        print_cell(p, first, last, has_gaps(v));
    }
    if (p->color)
        fputs("\033[0m", stdout);
    puts(p->utf8 ? "│" : "|");
}

/* Prints the offsets at each quarter above the bars. Leaves out those for which there is no room.
 */
static void print_scale(const struct picture *p)
{
    char line[BAR_MOST + HUMAN_BYTES + 1], label[HUMAN_BYTES];
    memset(line, ' ', sizeof line);
    size_t end = 0;
    for (size_t quarter = 0; quarter <= 4; quarter++) {
        human_bytes(label, p->d->size * (int64_t)quarter / 4);
        size_t n = strlen(label), at = quarter == 4 ? p->bar - n : p->bar * quarter / 4;
        if (quarter && at < end + 1)
            continue;
        if (quarter && quarter < 4 && p->bar < 40 && quarter != 2)
            continue;
        memcpy(line + at, label, n);
        end = at + n;
    }
    line[end] = '\0';
    printf("%*s%s\n", (int)(2 + p->layout + GAP + p->view + GAP + p->type + GAP + 1), "", line);
}

void picture_print(const struct shmview_description *d, const char *current, size_t width)
{
    static const char *const colors[] = {"\033[36m", "\033[33m", "\033[32m",
                                         "\033[35m", "\033[34m", "\033[31m"};
    struct picture p = {.d = d, .current = current, .utf8 = has_utf8(), .color = wants_color()};
    measure(&p, width);
    print_scale(&p);
    for (size_t i = 0; i < d->n_layouts; i++) {
        const struct shmview_layout_description *l = d->layouts[i];
        for (size_t k = 0; k < l->n_views; k++) {
            char type[TYPE_BYTES];
            picture_type(l->views[k], type, sizeof type);
            if (strlen(type) > p.type)
                strcpy(type + p.type - 2, "..");
            printf("%s%-*s%*s%-*s%*s%-*s%*s", k == 0 && strcmp(l->name, current) == 0 ? "* " : "  ",
                   (int)p.layout, k ? "" : l->name, GAP, "", (int)p.view, l->views[k]->name, GAP,
                   "", (int)p.type, type, GAP, "");
            print_bar(&p, l->views[k], colors[i % ARRAY_LEN(colors)]);
        }
    }
}
