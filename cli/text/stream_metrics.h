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

/* The figures of some streams. A struct of zeroes has none; its owner frees figures. */
struct stream_metrics {
    struct stream_figures *figures;
    size_t n, n_omitted; /* omitted: segments that may be streams, without figures */
    size_t n_looks, n_described;
};

void stream_figures_of(const struct stream_facts *facts, const char *name,
                       struct stream_figures *ret);

/* Gets the figures of the streams among the segments: if is_bounded, of STREAMS_MOST at most, so
 * that the cost has a limit. Omits a stream that the user may not read or whose memory is gone.
 * Returns 0 or the exit status. */
int stream_metrics_get(struct context *c, const struct shmview_segment_stats *const *segments,
                       size_t n, bool is_bounded, struct stream_metrics *ret);

/* The caller must check the file for errors. */
void stream_metrics_print(FILE *file, const struct stream_metrics *metrics);

#endif
