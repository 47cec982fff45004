/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which processes wait for which, from figures of segments.
 *
 * The graph begins with the processes that wait for the lock of one segment, and its holders. Below
 * each holder are the segments whose locks it waits for, below these their holders, and so on. A
 * process is followed once only, so the walk ends for any figures, also for those that clients have
 * forged.
 *
 * A cycle is a list of waits, in which each process waits for a lock that the next one holds, and
 * the last one for a lock of the first. The daemon does not read all locks at the same moment.
 * Therefore a cycle counts only if all of its waits began before the figures were requested:
 * then they all lasted at that moment. The figures distinguish processes and not threads, so
 * another thread of a process may still end such a cycle. */
#ifndef WEB_GRAPH_H
#define WEB_GRAPH_H

#include <shmview/stats.h>

#include "web/base/base.h"

#define GRAPH_LINES  200
#define GRAPH_LEVELS 16 /* holders below holders; also the processes of a cycle */
#define GRAPH_CYCLES 8

/* A process that holds the lock of a segment or waits for it. */
struct graph_line {
    unsigned depth;   /* 0: a waiter or holder of the first lock; 1: a wait of that holder; ... */
    bool is_holder;   /* or else it waits */
    bool is_repeated; /* a holder whose waits are listed at an earlier line */
    bool is_closing;  /* a holder that is above itself: it closes a cycle */
    const struct shmview_segment_stats *segment;
    const struct shmview_party_stats *party;
};

/* The wait of one process. */
struct graph_wait {
    const struct shmview_segment_stats *segment;
    const struct shmview_party_stats *party;
};

struct graph_cycle {
    struct graph_wait waits[GRAPH_LEVELS];
    size_t n;
};

/* Borrows from the figures. */
struct graph {
    struct graph_line lines[GRAPH_LINES];
    size_t n_lines;
    struct graph_cycle cycles[GRAPH_CYCLES];
    size_t n_cycles;
    bool is_cut; /* a limit has left something out */
};

/* Makes the graph of a segment of the figures. begun_us is the time of CLOCK_REALTIME before they
 * were requested. Never fails. */
void graph_make(const struct shmview_stats *stats, const struct shmview_segment_stats *segment,
                int64_t begun_us, struct graph *ret);

#endif
