/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which process waits for which, for the page of a segment in top.
 *
 * The tree begins with the holders of the segment's lock. Below each holder are the segments whose
 * locks it waits for, below these their holders, and so on. A holder that appears below itself is a
 * cycle, and perhaps a deadlock. Perhaps, because the daemon's figures distinguish processes and
 * not threads: one thread of a process may wait while another one releases the lock. */
#ifndef CLI_WAITS_H
#define CLI_WAITS_H

#include <shmview/stats.h>

#include "cli/shell/cli.h"

#define WAITS_TEXT 160

/* A line of the tree: a process that holds a lock or waits for one. */
struct waits_line {
    unsigned depth; /* 0: it holds or waits for the lock of the segment itself */
    bool is_cycle;  /* the process waits, through others, for itself */
    char text[WAITS_TEXT];
};

/* Writes the tree of the segment's holders, and then its waiters, to lines, which has room for
 * `room`. now_us is of CLOCK_REALTIME. Returns the number of lines. A branch ends at a cycle or
 * after 8 levels; the tree ends when lines are full. */
size_t waits_tree(const struct shmview_stats *stats, const struct shmview_segment_stats *segment,
                  int64_t now_us, struct waits_line *lines, size_t room);

#endif
