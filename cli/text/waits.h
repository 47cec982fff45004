/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom: from a segment to those who hold its lock, to what they wait for themselves,
 * and so on. What is known is processes, not threads. */
#ifndef CLI_WAITS_H
#define CLI_WAITS_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

#define WAITS_TEXT 160

struct waits_line {
    unsigned depth; /* 0: somebody who holds or waits for the segment itself */
    bool is_cycle;  /* it waits, in the end, for itself */
    char text[WAITS_TEXT];
};

/* Fills lines, of which there are room, with the tree of the segment's holders, and then those who
 * wait for it. Returns how many. Stops where it would go round, at 8 levels, and where lines end.
 */
size_t waits_tree(const struct shmview_stats *stats, const struct shmview_segment_stats *segment,
                  int64_t now_us, struct waits_line *lines, size_t room);

#endif
