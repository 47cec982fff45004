/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the views of a segment as a table, for show --views. */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include <shmview/describe.h>

#include "cli/shell/table.h"

/* Begins the table, like table_new(), with the columns of views. It is separate from views_print(),
 * because "-o help" needs no segment. */
int views_table(struct context *c, const struct table_options *how, struct table **ret_table,
                int *ret_status);

/* Adds a row for each view of each layout, and prints the table. `current` is the name of the
 * current layout, or "". Returns the exit status. */
int views_print(struct table *table, const struct shmview_description *d, const char *current);

#endif
