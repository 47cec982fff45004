/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/line.h"

#include <math.h>

#include "web/memory/numbers.h"

#define PART_ELEMENTS 16384 /* converted at once, where columns have few elements */
#define MANY_ELEMENTS 512   /* of a column: from here on the library summarizes it in place */

/* One part of a line: the columns from `column` on. */
struct part {
    struct line *line;
    struct look *look;
    struct numbers *numbers;
    size_t column, n_columns;
    double *low, *high;
};

static uint64_t begin_of(const struct line *line, size_t column)
{
    return (uint64_t)((unsigned __int128)line->n * column / line->columns);
}

/* Summarizes the elements of one column in place. */
static int summarize(void *arg)
{
    const struct part *p = arg;
    struct shmview_view column;
    struct shmview_summary s;
    int r = shmview_view_slice(&p->look->view, 0, (int64_t)begin_of(p->line, p->column),
                               (int64_t)begin_of(p->line, p->column + 1), 1, &column);
    r = r ? r : shmview_summarize(&column, &s);
    if (r)
        return r;
    p->low[0] = s.min;
    p->high[0] = s.max;
    return 0;
}

/* Converts the elements of several columns. */
static int convert(void *arg)
{
    const struct part *p = arg;
    uint64_t begin = begin_of(p->line, p->column),
             end = begin_of(p->line, p->column + p->n_columns);
    struct shmview_view columns;
    int r = shmview_view_slice(&p->look->view, 0, (int64_t)begin, (int64_t)end, 1, &columns);
    return r ? r : numbers_load(p->numbers, &columns, (size_t)(end - begin));
}

/* Finds the extremes of each column among the numbers that convert() has made. */
static void reduce(const struct part *p)
{
    uint64_t start = begin_of(p->line, p->column);
    for (size_t c = 0; c < p->n_columns; c++) {
        uint64_t end = begin_of(p->line, p->column + c + 1) - start;
        double low = (double)NAN, high = (double)NAN;
        for (uint64_t i = begin_of(p->line, p->column + c) - start; i < end; i++) {
            double x = p->numbers->values[i];
            low = !(x >= low) ? (isnan(x) ? low : x) : low;
            high = !(x <= high) ? (isnan(x) ? high : x) : high;
        }
        p->low[c] = low;
        p->high[c] = high;
    }
}

/* Reads one part. Returns 0 or an error. */
static int read_part(struct part *p, uint64_t per_column)
{
    if (per_column >= MANY_ELEMENTS)
        return look_read(p->look, summarize, p);
    int r = look_read(p->look, convert, p);
    if (r == 0)
        reduce(p);
    return r;
}

int line_init(struct line *line, struct look *look, size_t columns, size_t first, int64_t budget_ns)
{
    CLEANUP_NUMBERS struct numbers numbers = {.n = 0};
    uint64_t n = (uint64_t)look->view.shape[0];
    int64_t end = thread_ns() + budget_ns;
    *line = (struct line){.n = n, .columns = (size_t)least((int64_t)n, (int64_t)columns)};
    line->low = calloc(line->columns + 1, sizeof *line->low);
    line->high = calloc(line->columns + 1, sizeof *line->high);
    if (!line->low || !line->high)
        return -SHMVIEW_ERR_NO_MEMORY;
    if (line->columns == 0)
        return 0;
    line->first = first % line->columns;
    uint64_t per_column = n / line->columns;
    size_t together = per_column >= MANY_ELEMENTS ? 1 : (size_t)(PART_ELEMENTS / (per_column + 1));
    int r = numbers_init(&numbers, PART_ELEMENTS);
    while (r == 0 && line->n_read < line->columns) {
        size_t column = (line->first + line->n_read) % line->columns;
        size_t left = (column < line->first ? line->first : line->columns) - column;
        struct part p = {.line = line,
                         .look = look,
                         .numbers = &numbers,
                         .column = column,
                         .n_columns = left < together ? left : together,
                         .low = line->low + line->n_read,
                         .high = line->high + line->n_read};
        r = read_part(&p, per_column);
        line->n_read += p.n_columns;
        if (thread_ns() > end)
            break;
    }
    return r;
}

void line_deinit(struct line *line)
{
    free(line->low);
    free(line->high);
}
