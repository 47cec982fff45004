/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as text: a window of a view of at most two dimensions, and setting one element. */
#ifndef WEB_GRID_H
#define WEB_GRID_H

#include "web/base/text.h"
#include "web/memory/look.h"

#define GRID_CELLS_MOST 8192
#define GRID_BYTES_MOST (1 << 20) /* of the elements of one window */

/* A window. In a view of one dimension, element [row * wrap + column]; in one without dimensions,
 * the element. */
struct grid {
    int64_t row, column;
    size_t rows, columns; /* cut to the view by grid_read() */
    int64_t wrap;         /* columns of a view of one dimension */
    int64_t all_rows, all_columns;
};

/* Writes the window as a JSON list of rows of strings; null is no element. The bytes are copied at
 * once, and become text afterwards. Returns 0, LOOK_WRONG with look->error, or an error of the
 * library. */
int grid_read(struct grid *grid, struct look *look, struct text *ret);

/* Sets the element at an index (view.ndim entries) to the number in text, under the exclusive lock
 * if the segment has one, and notifies those who wait for a change. Waits at most a second for the
 * lock. Returns 0, LOOK_WRONG with look->error, or an error of the library. */
int grid_set(struct look *look, const ptrdiff_t *index, const char *text);

#endif
