/* SPDX-License-Identifier: Apache-2.0 */
/* A view of one dimension as a line: the least and the greatest value for each column of pixels.
 *
 * A view of a hundred million elements takes longer to read than an update may cost. So a line is
 * read in parts: each request reads as many columns as its time allows, from a given column on, and
 * the page keeps the others until their turn comes. */
#ifndef WEB_LINE_H
#define WEB_LINE_H

#include "web/memory/look.h"

#define LINE_COLUMNS_MOST 4096

struct line {
    uint64_t n;         /* elements */
    size_t columns;     /* not more than elements */
    size_t first;       /* the first column that was read */
    size_t n_read;      /* how many columns, from first on and again from 0 */
    double *low, *high; /* of each of these; NaN where no element is a number; owned */
};

/* Reads at most `columns` columns from column `first` on, for about budget_ns of processor time,
 * but one part at least. The view must have one dimension. The caller owes line_deinit(), on
 * failure too. Returns 0 or an error of the library: _CONVERSION if elements are no real
 * numbers. */
int line_init(struct line *line, struct look *look, size_t columns, size_t first,
              int64_t budget_ns);
void line_deinit(struct line *line);
#define CLEANUP_LINE CLEANUP(line_deinit)

#endif
