/* SPDX-License-Identifier: Apache-2.0 */
/* Values from the command line. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include <shmview/view.h>

#include "cli/shell/problem.h"

/* Sets the element at index of a view that may be written, from text: 12, 0xff, 2.5, -inf, nan,
 * true, 1+2j; text as it is where elements are text. Nothing is rounded but floats to their type.
 * Returns 0; or -1, and nothing is changed. */
int value_set(const struct shmview_view *view, const ptrdiff_t *index, const char *text,
              struct problem *problem);

#endif
