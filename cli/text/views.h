/* SPDX-License-Identifier: Apache-2.0 */
/* The views of a segment as a table. */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include <shmview/describe.h>

#include "cli/shell/table.h"

/* As table_new(). */
int views_table(struct context *c, const struct table_options *how, struct table **ret_table,
                int *ret_status);

/* Prints all views; current is the layout that is current, or "". Returns an exit status. */
int views_print(struct table *table, const struct shmview_description *d, const char *current);

#endif
