/* SPDX-License-Identifier: Apache-2.0 */
/* Streams while nobody waits: publish and take make no system call. */
#include <unistd.h>

#include "streams.h"

static struct shmview_stream *opened(int access)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(client_connect(&d), "s", access, &s));
    return s;
}

/* A pair of a writer and a reader that never waits: the kernel is not asked. */
static void no_system_calls(struct child *me, void *arg)
{
    struct shmview_stream *writer = opened(SHMVIEW_WRITE), *reader = opened(SHMVIEW_READ);
    struct shmview_frame frame;
    (void)arg;
    OK(shmview_stream_join(reader));
    OK(shmview_stream_loan(writer, 0, &frame));
    shmview_frame_discard(&frame);
    child_tell(me, 1);
    child_forbid_system_calls();
    for (int i = 0; i < 1000; i++) {
        if (shmview_stream_loan(writer, 0, &frame))
            _exit(1);
        frame.time_ns = 1; /* the clock is read by a system call on some machines */
        if (shmview_frame_publish(&frame) || shmview_stream_take(reader, 0, &frame))
            _exit(1);
        shmview_frame_release(&frame);
    }
    _exit(0);
}

START_TEST(publish_and_take_make_no_system_call)
{
    struct child child;
    open_stream(SHMVIEW_LATEST, 4);
    struct shmview_stream *writer = stream;
    OK(shmview_stream_open(conn, "s", SHMVIEW_READ, &stream));
    OK(shmview_stream_close(writer)); /* a child is the writer */
    child_start(&child, no_system_calls, NULL);
    child_hear(&child, 1);
    child_wait(&child);
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(publish_and_take_make_no_system_call),
        SUITE_END,
    };
    return suite_main("stream_calls", tests);
}
