/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in one process: loaning, publishing, taking and passing on. */
#include "streams.h"

START_TEST(frames_come_in_order)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 4);
    struct shmview_stream *reader = open_reader();
    expect_none(reader);
    for (int64_t i = 1; i <= 20; i++) {
        ck_assert_uint_eq(write_frame(stream, i * 100), (uint64_t)i);
        OK(shmview_stream_take(reader, 0, &frame));
        ck_assert_uint_eq(frame.sequence, (uint64_t)i);
        ck_assert_uint_eq(frame.missed, 0);
        ck_assert_int_eq(frame_number(&frame), i * 100);
        shmview_frame_release(&frame);
        expect_none(reader);
    }
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(facts)
{
    struct shmview_stream_info info;
    const struct shmview_description *about;
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 10);
    spec.history = 2;
    spec.n_stages = 3;
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    struct shmview_stream *reader = open_reader_of(conn, "s:2");
    shmview_stream_info_get(reader, &info);
    ck_assert(info.mode == SHMVIEW_LATEST && info.n_slots == 10 && info.history == 2);
    ck_assert(info.n_stages == 3 && info.stage == 2 && info.flags == SHMVIEW_MANY_WRITERS);
    ck_assert(info.n_views == 2 && info.frame_bytes >= LENGTH * 16 + 4);
    ck_assert_str_eq(shmview_stream_view_name(reader, 0), "numbers");
    ck_assert_str_eq(shmview_stream_view_name(reader, 1), "gain");
    ck_assert_ptr_null(shmview_stream_view_name(reader, 2));
    ck_assert_str_eq(shmview_name(shmview_stream_segment(reader)), "s");
    OK(shmview_describe(conn, "s", &about));
    ck_assert_uint_eq(about->n_layouts, 1);
    ck_assert_str_eq(about->layouts[0]->name, "frame");
    ck_assert_uint_eq(about->layouts[0]->n_views, 2);
    shmview_description_free(about);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(what_a_frame_carries)
{
    struct shmview_frame frame;
    struct shmview_view v;
    open_stream(SHMVIEW_LOSSLESS, 3);
    struct shmview_stream *reader = open_reader();
    OK(shmview_stream_loan(stream, 0, &frame));
    ck_assert(frame.sequence == 0 && frame.time_ns == 0 && frame.user_bytes == 0);
    memcpy(frame.user, "exposure 7", 10);
    frame.user_bytes = 10;
    frame.time_ns = 12345;
    OK(shmview_frame_set_length(&frame, 0, 7));
    OK(shmview_frame_view_at(&frame, 0, &v));
    ck_assert(v.shape[0] == 7 && v.shape[1] == 2 && v.nbytes == 7 * 16 && v.flags == 0);
    OK(shmview_frame_view(&frame, "gain", &v));
    SHMVIEW_DATA(float, &v)[0] = 1.5f;
    fill_frame(&frame, 3);
    OK(shmview_frame_publish(&frame));
    ck_assert_uint_eq(frame.sequence, 1);
    REFUSED(shmview_frame_publish(&frame), NOT_OWNER, "not loaned");

    OK(shmview_stream_take(reader, 0, &frame));
    ck_assert(frame.sequence == 1 && frame.time_ns == 12345 && frame.user_bytes == 10);
    ck_assert_mem_eq(frame.user, "exposure 7", 10);
    OK(shmview_frame_view_at(&frame, 0, &v));
    ck_assert(v.shape[0] == 7 && v.nbytes == 7 * 16 && v.flags == SHMVIEW_VIEW_READ_ONLY);
    OK(shmview_frame_view_at(&frame, 1, &v));
    ck_assert(v.ndim == 0 && SHMVIEW_DATA(float, &v)[0] == 1.5f);
    REFUSED(shmview_frame_view_at(&frame, 2, &v), NO_LAYOUT, "which has 2");
    REFUSED(shmview_frame_view(&frame, "image", &v), NO_LAYOUT, "no view 'image'");
    REFUSED(shmview_frame_set_length(&frame, 0, 3), NOT_OWNER, "not loaned");
    shmview_frame_release(&frame);
    shmview_frame_release(&frame);
    REFUSED(shmview_frame_view_at(&frame, 0, &v), NOT_OWNER, "none of this process");

    int64_t before = await_now_ns(); /* the time of the call, and the full length again */
    OK(shmview_stream_loan(stream, 0, &frame));
    OK(shmview_frame_publish(&frame));
    OK(shmview_stream_take(reader, 0, &frame));
    ck_assert(frame.time_ns >= before && frame.time_ns <= await_now_ns() && frame.user_bytes == 0);
    OK(shmview_frame_view_at(&frame, 0, &v));
    ck_assert_int_eq(v.shape[0], LENGTH);
    shmview_frame_release(&frame);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(wrong_frames)
{
    struct shmview_frame frame, none = {0};
    struct shmview_view v;
    open_stream(SHMVIEW_LATEST, 3);
    OK(shmview_stream_loan(stream, 0, &frame));
    REFUSED(shmview_frame_set_length(&frame, 0, LENGTH + 1), BOUNDS, "101 elements");
    REFUSED(shmview_frame_set_length(&frame, 1, 1), BOUNDS, "'gain'");
    REFUSED(shmview_frame_set_length(&frame, 2, 1), NO_LAYOUT, "which has 2");
    REFUSED(shmview_stream_close(stream), BUSY, "1 frames of 's'");
    frame.user_bytes = 65;
    REFUSED(shmview_frame_publish(&frame), BOUNDS, "65 user bytes");
    frame.user_bytes = 64;
    OK(shmview_frame_publish(&frame));
    REFUSED(shmview_frame_publish(&none), NOT_OWNER, "");
    REFUSED(shmview_frame_view_at(&none, 0, &v), NOT_OWNER, "");
    REFUSED(shmview_frame_view(&none, "gain", &v), NOT_OWNER, "");
    shmview_frame_discard(&none);
    shmview_frame_release(&none);
    ck_assert_int_eq(shmview_frame_is_intact(&none), 0);
    close_stream();
}
END_TEST

START_TEST(a_discarded_frame_is_never_seen)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 2);
    struct shmview_stream *reader = open_reader();
    for (int i = 0; i < 10; i++) {
        OK(shmview_stream_loan(stream, 0, &frame));
        fill_frame(&frame, 666);
        shmview_frame_discard(&frame);
        shmview_frame_discard(&frame);
    }
    expect_none(reader);
    ck_assert_uint_eq(write_frame(stream, 1), 1);
    read_frame(reader, 1);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(several_loans_are_published_in_any_order)
{
    struct shmview_frame frames[3];
    open_stream(SHMVIEW_LOSSLESS, 3);
    struct shmview_stream *reader = open_reader();
    for (int i = 0; i < 3; i++) {
        OK(shmview_stream_loan(stream, 0, &frames[i]));
        fill_frame(&frames[i], i);
    }
    OK(shmview_frame_publish(&frames[2]));
    shmview_frame_discard(&frames[1]);
    OK(shmview_frame_publish(&frames[0]));
    read_frame(reader, 2);
    read_frame(reader, 0);
    expect_none(reader);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(a_held_frame_is_not_overwritten)
{
    struct shmview_frame held[3], frame;
    open_stream(SHMVIEW_LATEST, 5);
    struct shmview_stream *reader = open_reader(), *other = open_reader();
    for (int i = 0; i < 3; i++) {
        write_frame(stream, i);
        OK(shmview_stream_take(reader, 0, &held[i]));
    }
    for (int64_t i = 3; i < 500; i++)
        write_frame(stream, i);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(frame_number(&held[i]), i);
        ck_assert_int_eq(shmview_frame_is_intact(&held[i]), 1);
    }
    OK(shmview_stream_take(other, 0, &frame)); /* two slots were left for all others */
    ck_assert_uint_eq(frame.sequence, 499);
    ck_assert_uint_eq(frame.missed, 498);
    REFUSED(shmview_stream_close(other), BUSY, "1 frames");
    for (int i = 0; i < 3; i++)
        shmview_frame_release(&held[i]);
    shmview_frame_release(&frame);
    OK(shmview_stream_close(reader));
    OK(shmview_stream_close(other));
    close_stream();
}
END_TEST

START_TEST(lossless_waits_for_the_slowest)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 3);
    struct shmview_stream *fast = open_reader(), *slow = open_reader();
    for (int i = 0; i < 3; i++) {
        write_frame(stream, i);
        read_frame(fast, i);
    }
    int64_t before = await_now_ns();
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "has not taken 3 frames");
    REFUSED(shmview_stream_loan(stream, shmview_deadline(20 * MS), &frame), TIMED_OUT,
            "(check_stream)");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    read_frame(slow, 0);
    write_frame(stream, 3);
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "");
    shmview_stream_leave(slow); /* nobody waits for it any longer */
    for (int i = 4; i < 20; i++) {
        read_frame(fast, i - 1);
        write_frame(stream, i);
    }
    OK(shmview_stream_join(slow)); /* from here on again */
    read_frame(fast, 19);
    write_frame(stream, 20);
    read_frame(slow, 20);
    OK(shmview_stream_close(fast));
    OK(shmview_stream_close(slow));
    close_stream();
}
END_TEST

START_TEST(lossless_without_readers_waits_for_nobody)
{
    open_stream(SHMVIEW_LOSSLESS, 2);
    for (int i = 0; i < 100; i++)
        write_frame(stream, i);
    struct shmview_stream *reader = open_reader();
    expect_none(reader);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(late_joiners_get_the_history)
{
    uint32_t modes[] = {SHMVIEW_LOSSLESS, SHMVIEW_LATEST};
    for (int m = 0; m < 2; m++) {
        struct shmview_stream_spec spec = spec_of(modes[m], 6);
        spec.history = 3;
        open_stream_of(&spec);
        write_frame(stream, 0); /* fewer than the history */
        struct shmview_stream *first = open_reader();
        read_frame(first, 0);
        OK(shmview_stream_close(first));
        for (int i = 1; i < 50; i++) {
            write_frame(stream, i);
            struct shmview_stream *reader = open_reader();
            for (int k = i < 2 ? 0 : i - 2; k <= i; k++)
                read_frame(reader, k);
            expect_none(reader);
            OK(shmview_stream_close(reader));
        }
        close_stream();
    }
}
END_TEST

START_TEST(the_latest_frame)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LATEST, 6);
    write_frame(stream, 1);
    struct shmview_stream *reader = open_reader();
    OK(shmview_stream_take_latest(reader, 0, &frame)); /* published before it joined */
    ck_assert(frame.sequence == 1 && frame.missed == 0);
    shmview_frame_release(&frame);
    REFUSED(shmview_stream_take_latest(reader, 0, &frame), TIMED_OUT, ""); /* not twice */
    for (int i = 2; i <= 5; i++)
        write_frame(stream, i);
    read_frame(reader, 2);
    OK(shmview_stream_take_latest(reader, 0, &frame));
    ck_assert(frame.sequence == 5 && frame.missed == 2 && frame_number(&frame) == 5);
    shmview_frame_release(&frame);
    expect_none(reader);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(the_latest_frame_of_a_lossless_stream)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 4);
    struct shmview_stream *reader = open_reader();
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++)
            write_frame(stream, i);
        OK(shmview_stream_take_latest(reader, 0, &frame));
        ck_assert(frame_number(&frame) == 3 && frame.missed == 3);
        shmview_frame_release(&frame);
    }
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(the_end_of_a_stage)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LOSSLESS, 4);
    struct shmview_stream *reader = open_reader();
    write_frame(stream, 1);
    OK(shmview_stream_end(stream));
    read_frame(reader, 1);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(shmview_stream_take(reader, SHMVIEW_FOREVER, &frame),
                         SHMVIEW_STREAM_ENDED);
    write_frame(stream, 2);
    read_frame(reader, 2);
    expect_none(reader);
    REFUSED(shmview_stream_end(reader), READ_ONLY, "not opened for writing");
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(one_writer_unless_it_is_for_many)
{
    struct shmview_frame frame, mine;
    struct shmview_stream *second;
    open_stream(SHMVIEW_LATEST, 4);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &second));
    write_frame(stream, 1);
    REFUSED(shmview_stream_loan(second, 0, &frame), BUSY, "has a writer: pid");
    REFUSED(shmview_stream_end(second), BUSY, "(check_stream)");
    OK(shmview_stream_close(stream));
    write_frame(second, 2); /* the role was given back */
    OK(shmview_stream_close(second));

    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
    spec.flags = SHMVIEW_MANY_WRITERS;
    OK(shmview_stream_create(conn, "many", &spec, &stream));
    OK(shmview_stream_open(conn, "many", SHMVIEW_WRITE, &second));
    struct shmview_stream *reader = open_reader_of(conn, "many");
    OK(shmview_stream_loan(stream, 0, &mine));
    OK(shmview_stream_loan(second, 0, &frame));
    fill_frame(&mine, 1);
    fill_frame(&frame, 2);
    OK(shmview_frame_publish(&frame));
    OK(shmview_frame_publish(&mine));
    read_frame(reader, 2);
    read_frame(reader, 1);
    OK(shmview_stream_close(second));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(frames_pass_through_stages)
{
    struct shmview_frame frame, last;
    uint64_t sequence;
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LOSSLESS, 3);
    struct shmview_stream *second;
    spec.n_stages = 2;
    open_stream_of(&spec);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &second));
    OK(shmview_stream_join(second));
    struct shmview_stream *third = open_reader_of(conn, "s:1");
    for (int i = 0; i < 20; i++) {
        write_frame(stream, i);
        OK(shmview_stream_take(second, 0, &frame));
        if (i % 2) {
            OK(shmview_frame_pass(&frame, 1, &sequence));
            ck_assert_uint_eq(sequence, (uint64_t)i / 2 + 1);
            REFUSED(shmview_frame_pass(&frame, 1, NULL), EXISTS, "in stage 1 already");
        }
        REFUSED(shmview_frame_pass(&frame, 0, NULL), INVALID, "to stage 0");
        REFUSED(shmview_frame_pass(&frame, 2, NULL), INVALID, "which has 2");
        shmview_frame_release(&frame);
        REFUSED(shmview_frame_pass(&frame, 1, NULL), NOT_OWNER, "not taken");
        if (i % 2) {
            OK(shmview_stream_take(third, 0, &last));
            ck_assert(last.sequence == sequence && frame_number(&last) == i);
            REFUSED(shmview_frame_pass(&last, 0, NULL), READ_ONLY, "");
            shmview_frame_release(&last);
        }
    }
    /* the last stage holds up the writer of the first one */
    for (int i = 0; i < 3; i++) {
        write_frame(stream, i);
        OK(shmview_stream_take(second, 0, &frame));
        OK(shmview_frame_pass(&frame, 1, NULL));
        shmview_frame_release(&frame);
    }
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "has not taken 3 frames");
    read_frame(third, 0);
    write_frame(stream, 9);
    REFUSED(shmview_stream_loan(third, 0, &frame), INVALID, "stage 1");
    OK(shmview_stream_close(third));
    OK(shmview_stream_open(conn, "s:1", SHMVIEW_WRITE, &third));
    REFUSED(shmview_stream_loan(third, 0, &frame), INVALID, "stage 1");
    OK(shmview_stream_end(third));
    OK(shmview_stream_close(third));
    OK(shmview_stream_close(second));
    close_stream();
}
END_TEST

START_TEST(peeking_disturbs_nobody)
{
    struct shmview_frame frame;
    struct shmview_stream *peek;
    open_stream(SHMVIEW_LATEST, 3);
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &peek));
    REFUSED(shmview_stream_take(peek, 0, &frame), TIMED_OUT, "");
    REFUSED(shmview_stream_take(peek, shmview_deadline(MS), &frame), TIMED_OUT, "");
    write_frame(stream, 1);
    OK(shmview_stream_take(peek, SOON, &frame));
    ck_assert_int_eq(frame_number(&frame), 1);
    ck_assert_int_eq(shmview_frame_is_intact(&frame), 1);
    for (int i = 2; i < 10; i++)
        write_frame(stream, i); /* whatever the peeking one has */
    ck_assert_int_eq(shmview_frame_is_intact(&frame), 0);
    shmview_frame_release(&frame);
    OK(shmview_stream_take_latest(peek, 0, &frame));
    ck_assert(frame.sequence == 9 && frame.missed == 7);
    shmview_frame_release(&frame);
    REFUSED(shmview_stream_loan(peek, 0, &frame), READ_ONLY, "");
    OK(shmview_stream_end(stream));
    ck_assert_int_eq(shmview_stream_take(peek, SHMVIEW_FOREVER, &frame), SHMVIEW_STREAM_ENDED);
    OK(shmview_stream_close(peek));
    close_stream();
}
END_TEST

START_TEST(peeking_at_a_last_frame_that_is_gone)
{
    struct shmview_frame frames[2], frame;
    struct shmview_stream *peek;
    open_stream(SHMVIEW_LOSSLESS, 2);
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &peek));
    OK(shmview_stream_join(peek));
    write_frame(stream, 1);
    for (int i = 0; i < 2; i++)
        OK(shmview_stream_loan(stream, 0, &frames[i]));
    REFUSED(shmview_stream_take_latest(peek, 0, &frame), TIMED_OUT, "no frame");
    OK(shmview_stream_end(stream));
    ck_assert_int_eq(shmview_stream_take_latest(peek, 0, &frame), SHMVIEW_STREAM_ENDED);
    OK(shmview_frame_publish(&frames[0]));
    OK(shmview_stream_take_latest(peek, 0, &frame));
    ck_assert(frame.sequence == 2 && frame.missed == 1);
    shmview_frame_discard(&frames[1]);
    OK(shmview_stream_close(peek));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(frames_come_in_order),
        SUITE_TEST(facts),
        SUITE_TEST(what_a_frame_carries),
        SUITE_TEST(wrong_frames),
        SUITE_TEST(a_discarded_frame_is_never_seen),
        SUITE_TEST(several_loans_are_published_in_any_order),
        SUITE_TEST(a_held_frame_is_not_overwritten),
        SUITE_TEST(lossless_waits_for_the_slowest),
        SUITE_TEST(lossless_without_readers_waits_for_nobody),
        SUITE_TEST(late_joiners_get_the_history),
        SUITE_TEST(the_latest_frame),
        SUITE_TEST(the_latest_frame_of_a_lossless_stream),
        SUITE_TEST(the_end_of_a_stage),
        SUITE_TEST(one_writer_unless_it_is_for_many),
        SUITE_TEST(frames_pass_through_stages),
        SUITE_TEST(peeking_disturbs_nobody),
        SUITE_TEST(peeking_at_a_last_frame_that_is_gone),
        SUITE_END,
    };
    return suite_main("stream", tests);
}
