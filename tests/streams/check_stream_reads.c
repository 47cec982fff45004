/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of other threads and of other processes between two steps of a reader that takes. */
#include "between.h"
#include "client/stream/stream.h"
#include "integration/streams.h"

static struct shmview_stream *reader;

/* --- The reader leaves ---------------------------------------------------- */

static void leave(void)
{
    shmview_stream_leave(reader);
}

/* No thread sleeps at the gate of the readers after that, and the writer waits for nobody. */
static void leave_and_write(void)
{
    ck_assert(gate_is_closed(reader->stages[0].gate));
    leave();
    ck_assert(!gate_is_closed(reader->stages[0].gate));
    for (int i = 1; i <= 9; i++)
        write_frame(stream, i);
}

START_TEST(a_reader_that_leaves_while_a_thread_waits)
{
    int (*takes[])(struct shmview_stream *, int64_t,
                   struct shmview_frame *) = {shmview_stream_take, shmview_stream_take_latest};
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 4);
    reader = open_reader();
    for (int i = 0; i < 2; i++) {
        at(AT_STREAM_CLOSED, leave_and_write);
        REFUSED(takes[i](reader, SOON, &frame), INVALID, "has left stream 's' during the call");
        expect_none(reader); /* which joins again */
        write_frame(stream, 10);
        read_frame(reader, 10);
    }
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

static int leave_once(void *arg)
{
    (void)arg;
    leave();
    return 0;
}

START_TEST(a_reader_without_a_lock_that_leaves)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LATEST, 4);
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &reader));
    shmview_on_wait(leave_once, NULL);
    REFUSED(shmview_stream_take(reader, SOON, &frame), INVALID, "has left");
    shmview_on_wait(NULL, NULL);
    write_frame(stream, 1);
    expect_none(reader);
    write_frame(stream, 2);
    read_frame(reader, 2);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_reader_that_leaves_while_a_thread_waits),
        SUITE_TEST(a_reader_without_a_lock_that_leaves),
        SUITE_END,
    };
    return suite_main("stream_reads", tests);
}
