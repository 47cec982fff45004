/* SPDX-License-Identifier: Apache-2.0 */
/* Describes one segment as JSON. The verb show has the code; create, define, switch and wait share
 * it for their --json, so that a script reads one form only. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/shell/cli.h"

/* Prints the segment like "show --json". c must be connected. Returns the exit status. */
int describe_json(struct context *c, const char *name);

#endif
