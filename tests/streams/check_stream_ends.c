/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stage, between two steps of another writer. */
#include "between.h"
#include "integration/streams.h"

static struct shmview_stream *other;

static void end_later(void)
{
    write_frame(other, 2);
    OK(shmview_stream_end(other));
}

/* Another writer publishes and ends the stage before this one stores the end. */
START_TEST(two_ends_at_once)
{
    struct shmview_frame frame;
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    struct shmview_stream *first = open_reader();
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &other));
    write_frame(stream, 1);
    at(AT_STREAM_ENDS, end_later);
    OK(shmview_stream_end(stream));
    read_frame(first, 1);
    read_frame(first, 2);
    ck_assert_int_eq(shmview_stream_take(first, 0, &frame), SHMVIEW_STREAM_ENDED);
    OK(shmview_stream_close(other));
    OK(shmview_stream_close(first));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(two_ends_at_once),
        SUITE_END,
    };
    return suite_main("stream_ends", tests);
}
