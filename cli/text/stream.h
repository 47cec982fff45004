/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether a segment is a stream, opens it, and takes its newest frame. Each function that
 * fails has printed the reason. */
#ifndef CLI_TEXT_STREAM_H
#define CLI_TEXT_STREAM_H

#include <shmview/describe.h>
#include <shmview/stream.h>

#include "cli/shell/cli.h"

/* The layout that the views of a stream have. */
#define STREAM_LAYOUT "frame"

/* Modes of delivery, as users write them; ends with NULL. */
extern const char *const stream_mode_names[];
enum stream_mode {
    STREAM_MODE_LATEST,
    STREAM_MODE_LOSSLESS,
    N_STREAM_MODES,
};

/* Whether the segment begins with the header of a stream, which is copied to *ret_header unless it
 * is NULL. Also a segment whose memory is gone is none. Any access. */
bool stream_header(struct shmview_segment *segment, struct shmview_stream_header *ret_header);
static inline bool stream_is(struct shmview_segment *segment)
{
    return stream_header(segment, NULL);
}

/* Whether a segment may be a stream, from its description alone. */
bool stream_may_be(const struct shmview_description *d);

/* Opens the segment called name (without a stage) if it is a stream, for reading, or with
 * SHMVIEW_PEEK if no slot of its lock is free. *ret_stream is NULL if it is none. Signs the slot,
 * so that later calls may run in bus_error_guard(). The caller owes shmview_stream_close(), and
 * bus_error_catch() before. Returns 0 or an error of the library. */
int stream_open_if(struct context *c, const char *name, struct shmview_stream **ret_stream);

/* Opens a stream and takes its newest frame; writers do not wait for what follows it. Fails if
 * there is no frame. The caller owes shmview_frame_release() and shmview_stream_close(). Returns 0
 * or the exit status. */
int stream_take_latest(struct context *c, const char *name, struct shmview_stream **ret_stream,
                       struct shmview_frame *ret_frame);

/* Finds the view called view, or the only one if that is "". *ret is its number. Returns 0 or the
 * exit status. */
int stream_find_view(struct context *c, const struct shmview_stream *stream, const char *name,
                     const char *view, size_t *ret);

#endif
