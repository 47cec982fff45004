/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the memory of a segment: one bar for each view, below each other and at one scale, so that
 * views which overlap are visible. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <shmview/describe.h>

#include "cli/shell/cli.h"

/* Prints all layouts of d in width columns. current is the name of the current layout, or ""; it is
 * marked. */
void picture_print(const struct shmview_description *d, const char *current, size_t width);

/* Returns the name of the type of a view's elements, or their format if the name would lose
 * information: structs, strings, swapped bytes. */
const char *type_text(const struct shmview_view_description *v);

/* Writes a view's type and shape: "float32[5,20]". Cuts the text to `bytes`. */
void picture_type(const struct shmview_view_description *v, char *ret, size_t bytes);

#endif
