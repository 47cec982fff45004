/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/newest.h"

#include <stdatomic.h>

#include <shmview/describe.h>

#include "web/memory/guard.h"

bool newest_is_stream(const struct shmview_segment *segment)
{
    struct shmview_stream_header *header = shmview_data(segment);
    return shmview_size(segment) >= sizeof *header &&
           atomic_load_explicit((_Atomic uint32_t *)&header->magic, memory_order_acquire) ==
               SHMVIEW_STREAM_MAGIC &&
           header->header_bytes >= sizeof *header;
}

void newest_init(struct newest *newest)
{
    pthread_mutex_init(&newest->mutex, NULL);
}

void newest_deinit(struct newest *newest)
{
    shmview_stream_close(newest->stream);
    pthread_mutex_destroy(&newest->mutex);
}

/* Opens the stream. The name may come to another segment at any time, so its id is asked for
 * afterwards. Returns 0, NEWEST_OTHER, or an error. */
static int open_stream(struct newest *newest, struct shmview_connection *connection,
                       const char *name, int64_t id)
{
    struct shmview_stream *stream;
    const struct shmview_description *d;
    int r = shmview_stream_open(connection, name, SHMVIEW_PEEK, &stream);
    if (r)
        return r;
    r = shmview_describe(connection, name, &d);
    if (r == 0) {
        r = d->id == id ? 0 : NEWEST_OTHER;
        shmview_description_free(d);
    }
    if (r)
        shmview_stream_close(stream);
    else
        newest->stream = stream;
    return r;
}

/* Takes a frame. One that was taken before is not taken again, but it is still the newest one
 * unless it was overwritten. */
static int take(void *arg)
{
    struct newest *newest = arg;
    int r = shmview_stream_take_latest(newest->stream, 0, &newest->frame);
    if (r != -SHMVIEW_ERR_TIMED_OUT && r != SHMVIEW_STREAM_ENDED)
        return r;
    bool is_there = newest->frame.stream && shmview_frame_is_intact(&newest->frame);
    return is_there ? 0 : -SHMVIEW_ERR_TIMED_OUT;
}

int newest_take(struct newest *newest, struct shmview_connection *connection, const char *name,
                int64_t id, struct shmview_frame *ret)
{
    int r = 0;
    pthread_mutex_lock(&newest->mutex);
    if (!newest->stream)
        r = open_stream(newest, connection, name, id);
    if (r == 0 && (newest->is_gone || !guard_run(take, newest, &r))) {
        newest->is_gone = true; /* the library may have left its claim of the handle */
        r = NEWEST_GONE;
    }
    *ret = newest->frame;
    pthread_mutex_unlock(&newest->mutex);
    return r;
}
