/* SPDX-License-Identifier: Apache-2.0 */
/* A writer of a latest stream overwrites the oldest frame that no reader holds. */
#include "streams.h"

static struct shmview_stream *open_writer(void)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &s));
    return s;
}

static void open_many(uint32_t n_slots, uint32_t n_stages)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, n_slots);
    spec.flags = SHMVIEW_MANY_WRITERS;
    spec.n_stages = n_stages;
    open_stream_of(&spec);
}

/* Takes the frames from first to last, and none before or between them is missed but `missed`. */
static void read_frames(struct shmview_stream *reader, int64_t first, int64_t last, uint64_t missed)
{
    struct shmview_frame frame;
    for (int64_t i = first; i <= last; i++) {
        OK(shmview_stream_take(reader, 0, &frame));
        ck_assert_int_eq(frame_number(&frame), i);
        ck_assert_uint_eq(frame.missed, i == first ? missed : 0);
        shmview_frame_release(&frame);
    }
    expect_none(reader);
}

START_TEST(a_new_writer_uses_slots_that_were_never_used)
{
    open_many(8, 1);
    struct shmview_stream *reader = open_reader(), *second = open_writer();
    write_frame(stream, 1);
    write_frame(stream, 2);
    write_frame(second, 3);
    read_frames(reader, 1, 3, 0);
    OK(shmview_stream_close(second));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(writers_in_turn_overwrite_the_oldest_frame)
{
    open_many(8, 1);
    struct shmview_stream *reader = open_reader(), *second = open_writer();
    int64_t i = 1;
    for (; i <= 8; i++)
        write_frame((i - 1) / 2 % 2 ? second : stream, i);
    read_frames(reader, 1, 8, 0);
    for (; i <= 30; i++)
        write_frame((i - 1) / 2 % 2 ? second : stream, i);
    read_frames(reader, 23, 30, 14);
    OK(shmview_stream_close(second));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(a_frame_that_is_held_stays_and_the_next_one_goes)
{
    struct shmview_frame held;
    open_many(8, 1);
    struct shmview_stream *holder = open_reader(), *reader = open_reader(), *second = open_writer();
    for (int64_t i = 1; i <= 8; i++)
        write_frame(stream, i);
    OK(shmview_stream_take(holder, 0, &held));
    write_frame(second, 9);
    ck_assert_int_eq(frame_number(&held), 1);
    read_frames(reader, 3, 9, 2);
    shmview_frame_release(&held);
    OK(shmview_stream_close(second));
    OK(shmview_stream_close(reader));
    OK(shmview_stream_close(holder));
    close_stream();
}
END_TEST

/* A later stage still has frames that the ring of stage 0 has lost. They are the oldest ones. */
START_TEST(frames_of_a_later_stage_grow_old)
{
    struct shmview_frame frame;
    open_many(8, 2);
    struct shmview_stream *passer = open_writer(), *second = open_writer();
    OK(shmview_stream_join(passer));
    struct shmview_stream *reader = open_reader();
    for (int64_t i = 1; i <= 3; i++) {
        write_frame(stream, i);
        OK(shmview_stream_take(passer, 0, &frame));
        OK(shmview_frame_pass(&frame, 1, NULL));
        shmview_frame_release(&frame);
    }
    for (int64_t i = 4; i <= 30; i++)
        write_frame(i % 3 ? stream : second, i);
    /* seven slots, because the newest frame of stage 1 is no free one */
    read_frames(reader, 24, 30, 23);
    OK(shmview_stream_close(second));
    OK(shmview_stream_close(passer));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(the_next_only_writer_begins_with_the_oldest_frame)
{
    open_stream(SHMVIEW_LATEST, 8);
    struct shmview_stream *reader = open_reader();
    int64_t i = 1;
    for (; i <= 11; i++)
        write_frame(stream, i);
    for (; i <= 16; i++) {
        OK(shmview_stream_close(stream));
        stream = open_writer();
        write_frame(stream, i);
    }
    read_frames(reader, 9, 16, 8);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_new_writer_uses_slots_that_were_never_used),
        SUITE_TEST(writers_in_turn_overwrite_the_oldest_frame),
        SUITE_TEST(a_frame_that_is_held_stays_and_the_next_one_goes),
        SUITE_TEST(frames_of_a_later_stage_grow_old),
        SUITE_TEST(the_next_only_writer_begins_with_the_oldest_frame),
        SUITE_END,
    };
    return suite_main("stream_oldest", tests);
}
