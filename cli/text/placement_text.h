/* SPDX-License-Identifier: Apache-2.0 */
/* Placement as text: the option --numa, and what a segment got. */
#ifndef CLI_PLACEMENT_TEXT_H
#define CLI_PLACEMENT_TEXT_H

#include <shmview/describe.h>
#include <shmview/placement.h>

#include "cli/shell/cli.h"

#define PLACEMENT_TEXT 320 /* even with all 63 nodes */

/* Reads "local", "interleaved" or the number of a node into a struct shmview_placement. Returns 0
 * or the exit status. */
int placement_parse(struct context *c, const char *value, void *to);

/* Writes what the segment got, as "4M huge (thp); nodes 0,1", or why not; "" if its creator wanted
 * nothing. buffer has PLACEMENT_TEXT bytes. Returns buffer. */
const char *placement_text(char *buffer, const struct shmview_placed *placed);

#endif
