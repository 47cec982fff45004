/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a segment as bars, one a view, below each other at the same scale. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <shmview/describe.h>

#include "cli/shell/cli.h"

/* Draws d's layouts width columns wide; current is the layout that is current, or "". */
void picture_print(const struct shmview_description *d, const char *current, size_t width);

/* The name of the type of a view's elements, or their format where that says more. */
const char *type_text(const struct shmview_view_description *v);

/* A view's type as people write it: "float32[5,20]". Cut to bytes. */
void picture_type(const struct shmview_view_description *v, char *ret, size_t bytes);

#endif
