/* SPDX-License-Identifier: Apache-2.0 */
/* Converts values of the command line, and stores them. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include <shmview/view.h>

#include "cli/shell/problem.h"

/* Sets the element at index of a writable view from text: 12, 0xff, 2.5, -inf, nan, true, 1+2j.
 * If the elements are strings, stores the text as it is. Refuses a number that the type cannot
 * hold, so that a mistake does not store another value; only floats are rounded to their type. The
 * caller holds the lock. Returns 0, or -1 with *problem and no byte changed. */
int value_set(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
              struct problem *problem);

#endif
