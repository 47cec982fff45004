/* SPDX-License-Identifier: Apache-2.0 */
/* One segment, with everything that is known of it. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/shell/cli.h"

/* Prints it as "show --json" does. c is connected. Returns an exit status. */
int describe_json(struct context *c, const char *name);

#endif
