/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of one's own with a stream "s" whose frames are numbers and a name, and a writer of it.
 */
#ifndef INTEGRATION_STREAMS_H
#define INTEGRATION_STREAMS_H

#include <string.h>

#include <shmview/describe.h>
#include <shmview/stream.h>
#include <shmview/wait.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#define MS     1000000
#define SOON   shmview_deadline(AWAIT_NS)
#define LENGTH 100

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_stream *stream; /* of the writer */

static const int64_t stream_shape[] = {LENGTH, 2};
static const struct shmview_view_spec stream_views[] = {
    {.name = "numbers", .format = "int64", .ndim = 2, .shape = stream_shape},
    {.name = "gain", .format = "float32"},
};

static inline struct shmview_stream_spec spec_of(uint32_t mode, uint32_t n_slots)
{
    return (struct shmview_stream_spec){
        .struct_bytes = sizeof(struct shmview_stream_spec),
        .mode = mode,
        .n_slots = n_slots,
        .views = stream_views,
        .n_views = 2,
    };
}

static inline void open_stream_of(const struct shmview_stream_spec *spec)
{
    daemon_start(&d);
    conn = client_connect(&d);
    OK(shmview_stream_create(conn, "s", spec, &stream));
}

static inline void open_stream(uint32_t mode, uint32_t n_slots)
{
    struct shmview_stream_spec spec = spec_of(mode, n_slots);
    open_stream_of(&spec);
}

static inline void close_stream(void)
{
    OK(shmview_stream_close(stream));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static inline struct shmview_stream *open_reader_of(struct shmview_connection *connection,
                                                    const char *name)
{
    struct shmview_stream *reader = NULL;
    OK(shmview_stream_open(connection, name, SHMVIEW_READ, &reader));
    OK(shmview_stream_join(reader));
    return reader;
}

static inline struct shmview_stream *open_reader(void)
{
    return open_reader_of(conn, "s");
}

/* Every number of a frame is `number`, so that a reader notices a frame that is mixed of two. */
static inline void fill_frame(const struct shmview_frame *frame, int64_t number)
{
    struct shmview_view v;
    OK(shmview_frame_view(frame, "numbers", &v));
    for (ptrdiff_t i = 0; i < v.shape[0]; i++)
        SHMVIEW_AT2(int64_t, &v, i, 0) = SHMVIEW_AT2(int64_t, &v, i, 1) = number;
}

/* Returns the number of a frame, whose numbers must all be the same. */
static inline int64_t frame_number(const struct shmview_frame *frame)
{
    struct shmview_view v;
    OK(shmview_frame_view(frame, "numbers", &v));
    int64_t number = SHMVIEW_AT2(int64_t, &v, 0, 0);
    for (ptrdiff_t i = 0; i < v.shape[0]; i++)
        ck_assert(SHMVIEW_AT2(int64_t, &v, i, 0) == number &&
                  SHMVIEW_AT2(int64_t, &v, i, 1) == number);
    return number;
}

/* Publishes a frame of these numbers, and returns its sequence number. */
static inline uint64_t write_frame(struct shmview_stream *writer, int64_t number)
{
    struct shmview_frame frame;
    OK(shmview_stream_loan(writer, SOON, &frame));
    fill_frame(&frame, number);
    OK(shmview_frame_publish(&frame));
    return frame.sequence;
}

/* Takes the next frame, which must have these numbers, and releases it. */
static inline void read_frame(struct shmview_stream *reader, int64_t number)
{
    struct shmview_frame frame;
    OK(shmview_stream_take(reader, SOON, &frame));
    ck_assert_int_eq(frame_number(&frame), number);
    shmview_frame_release(&frame);
}

static inline void expect_none(struct shmview_stream *reader)
{
    struct shmview_frame frame;
    REFUSED(shmview_stream_take(reader, 0, &frame), TIMED_OUT, "no frame of stream 's'");
}

#endif
