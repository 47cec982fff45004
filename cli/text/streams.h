/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the streams among many segments. Only the first bytes of a segment decide, so each that may
 * be a stream is attached, with SHMVIEW_PEEK: many at once, because one exchange with the daemon
 * for each would take long. Monitors see these attachments, so the daemon is asked before whether
 * the segment has the layout of a stream. */
#ifndef CLI_STREAMS_H
#define CLI_STREAMS_H

#include <shmview/stats.h>

#include "cli/text/stream.h"

/* Sets ret_modes[i] to SHMVIEW_LATEST, SHMVIEW_LOSSLESS, or 0 if segments[i] is no stream, or may
 * not be read by the user. Returns 0, or an error of the library if there is no daemon. */
int streams_find(struct context *c, const struct shmview_segment_stats *const *segments, size_t n,
                 uint32_t *ret_modes);

#endif
