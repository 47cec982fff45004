/* SPDX-License-Identifier: Apache-2.0 */
/* The newest frame of a stream that pages look at.
 *
 * The stream is opened with SHMVIEW_PEEK, so that no writer ever waits for a page. A frame may be
 * overwritten while it is read: shmview_frame_is_intact() shows it. Any thread may call. */
#ifndef WEB_NEWEST_H
#define WEB_NEWEST_H

#include <pthread.h>

#include <shmview/stream.h>

#include "web/base/base.h"

/* The layout of every stream. */
#define STREAM_LAYOUT "frame"

#define NEWEST_GONE  1 /* result: the memory is gone */
#define NEWEST_OTHER 2 /* result: the name is that of another segment */

/* Zeroes but for the mutex: no stream is open. All members are under the mutex. */
struct newest {
    pthread_mutex_t mutex;
    struct shmview_stream *stream; /* NULL until a page looks at it */
    struct shmview_frame frame;    /* the one that was taken last */
    bool is_gone;                  /* a call was left halfway, and there must be no other one */
};

/* Whether the bytes of a segment are those of a stream. Reads memory of the segment. */
bool newest_is_stream(const struct shmview_segment *segment);

/* newest must be zeroes. */
void newest_init(struct newest *newest);
/* Closes the stream, whose frames nobody may use any longer. */
void newest_deinit(struct newest *newest);

/* Gets the newest frame of the segment called name, whose id is `id`, and opens its stream at the
 * first call. *ret is valid until newest_deinit(); it need not be released. Returns 0, NEWEST_GONE,
 * NEWEST_OTHER, -SHMVIEW_ERR_TIMED_OUT if there is no frame, or another error of the library. */
int newest_take(struct newest *newest, struct shmview_connection *connection, const char *name,
                int64_t id, struct shmview_frame *ret);

#endif
