/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the streams among many segments. Only the first bytes of a segment decide, so each that may
 * be a stream is attached, with SHMVIEW_PEEK: many at once, because one exchange with the daemon
 * for each would take long. Monitors see these attachments, so the daemon is asked before whether
 * the segment has the layout of a stream. */
#ifndef CLI_STREAMS_H
#define CLI_STREAMS_H

#include <shmview/stats.h>

#include "cli/text/stream.h"

/* How many streams a verb looks into without an option. */
#define STREAMS_MOST 64

/* Whether a segment may be a stream, by its figures alone. */
bool streams_is_candidate(const struct shmview_segment_stats *segment);
/* Whether it may be one, by its figures and then its layouts, for which it asks the daemon. Returns
 * 0, or an error of the library if there is no daemon. */
int streams_may_be(struct context *c, const struct shmview_segment_stats *segment, bool *ret);

/* Sets ret_modes[i] to SHMVIEW_LATEST, SHMVIEW_LOSSLESS, or 0 if segments[i] is no stream, or may
 * not be read by the user. Returns 0, or an error of the library if there is no daemon. */
int streams_find(struct context *c, const struct shmview_segment_stats *const *segments, size_t n,
                 uint32_t *ret_modes);

#endif
