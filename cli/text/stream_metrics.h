/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the figures of streams for Prometheus, below those of metrics.h. */
#ifndef CLI_STREAM_METRICS_H
#define CLI_STREAM_METRICS_H

#include <shmview/stats.h>

#include "cli/text/stream_show.h"

/* The figures of one stream. */
struct stream_figures {
    const char *name; /* borrowed */
    uint32_t n_stages, deaths;
    struct {
        uint64_t published, readers, lag, missed; /* the largest lag; all that readers missed */
    } stages[SHMVIEW_STREAM_STAGES_MAX];
    uint32_t slots[4]; /* in each state, SHMVIEW_SLOT_* */
    bool sees_readers;
};

/* Finds the streams among the segments, and their figures. *ret is new, and the caller frees it. A
 * stream that the user may not read is left out. Returns 0 or the exit status. */
int stream_metrics_get(struct context *c, const struct shmview_segment_stats *const *segments,
                       size_t n, struct stream_figures **ret, size_t *ret_n);

/* Prints n figures. The caller must check the stream for errors. */
void stream_metrics_print(FILE *file, const struct stream_figures *figures, size_t n);

#endif
