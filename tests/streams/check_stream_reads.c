/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of other threads and of other processes between two steps of a reader that takes, and a
 * reader that takes between two steps of a writer. */
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

START_TEST(a_reader_that_leaves_while_a_thread_waits_for_several)
{
    size_t index = 77;
    open_stream(SHMVIEW_LOSSLESS, 4);
    reader = open_reader();
    const struct shmview_wait entry = {.kind = SHMVIEW_WAIT_FRAME, .stream = reader};
    shmview_on_wait(leave_once, NULL);
    REFUSED(shmview_wait_any(&entry, 1, SOON, &index), INVALID, "has left stream 's' during");
    shmview_on_wait(NULL, NULL);
    ck_assert_uint_eq(index, 77);
    for (int i = 1; i <= 9; i++) /* for which the writer would wait */
        write_frame(stream, i);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

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

/* --- A frame comes back to its stage --------------------------------------- */

/* A reader of stage 1, which passes frames back to stage 0, and a frame of each of the two. */
static struct shmview_stream *second;
static struct shmview_frame held, passed;

static void take_frame(struct shmview_stream *s, uint64_t sequence, uint64_t missed)
{
    struct shmview_frame frame;
    OK(shmview_stream_take(s, 0, &frame));
    ck_assert_uint_eq(frame.sequence, sequence);
    ck_assert_uint_eq(frame.missed, missed);
    shmview_frame_release(&frame);
}

/* Both readers hold frame 1 before the writer clears its numbers. */
static void take_in_both_stages(void)
{
    bool next = reader->plan.mode == SHMVIEW_LATEST;
    OK((next ? shmview_stream_take : shmview_stream_take_latest)(second, 0, &passed));
    OK((next ? shmview_stream_take : shmview_stream_take_latest)(reader, 0, &held));
    ck_assert_uint_eq(held.slot, passed.slot);
}

static void open_stages(uint32_t mode)
{
    struct shmview_stream_spec spec = spec_of(mode, 4);
    spec.n_stages = 2;
    open_stream_of(&spec);
}

static void open_second(void)
{
    OK(shmview_stream_open(conn, "s:1", SHMVIEW_WRITE, &second));
    OK(shmview_stream_join(second));
}

/* Writes a frame and passes it on to stage 1. */
static void pass_frame(struct shmview_stream *passer, int64_t number)
{
    struct shmview_frame frame;
    write_frame(stream, number);
    OK(shmview_stream_take(passer, 0, &frame));
    OK(shmview_frame_pass(&frame, 1, NULL));
    shmview_frame_release(&frame);
}

static void pass_back(uint64_t number)
{
    uint64_t sequence;
    OK(shmview_frame_pass(&passed, 0, &sequence));
    ck_assert_uint_eq(sequence, number);
    shmview_frame_release(&passed);
}

static void close_stages(void)
{
    ck_assert_int_eq(frame_number(&held), 1);
    shmview_frame_release(&held);
    OK(shmview_stream_close(reader));
    OK(shmview_stream_close(second));
    close_stream();
}

START_TEST(a_frame_that_comes_back_while_it_is_held)
{
    struct shmview_frame frame;
    for (int latest = 0; latest < 2; latest++) {
        open_stages(SHMVIEW_LATEST);
        struct shmview_stream *passer = NULL;
        OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &passer));
        OK(shmview_stream_join(passer));
        reader = open_reader();
        open_second();
        pass_frame(passer, 1);
        pass_frame(passer, 2);
        write_frame(stream, 3);
        write_frame(stream, 4);
        at(AT_STREAM_CLEARS, take_in_both_stages);
        OK(shmview_stream_loan(stream, SOON, &frame)); /* in place of frame 3 */
        pass_back(5);
        if (!latest) {
            take_frame(reader, 2, 0);
            take_frame(reader, 4, 1);
            expect_none(reader);
        } else {
            struct shmview_frame none;
            REFUSED(shmview_stream_take_latest(reader, 0, &none), TIMED_OUT, "no frame");
        }
        OK(shmview_frame_publish(&frame));
        take_frame(reader, 6, latest ? 4 : 1);
        OK(shmview_stream_close(passer));
        close_stages();
    }
}
END_TEST

/* The readers have joined after the frame, so the writer may have its slot. */
START_TEST(a_frame_of_a_lossless_stream_that_comes_back)
{
    struct shmview_frame frames[3], frame;
    struct shmview_stream *passer = NULL;
    open_stages(SHMVIEW_LOSSLESS);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &passer));
    OK(shmview_stream_join(passer));
    pass_frame(passer, 1);
    OK(shmview_stream_close(passer));
    reader = open_reader();
    open_second();
    for (int i = 0; i < 3; i++)
        OK(shmview_stream_loan(stream, 0, &frames[i]));
    at(AT_STREAM_CLEARS, take_in_both_stages);
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "no free slot");
    pass_back(2);
    expect_none(reader);
    OK(shmview_frame_publish(&frames[0]));
    take_frame(reader, 3, 1);
    shmview_frame_discard(&frames[1]);
    shmview_frame_discard(&frames[2]);
    close_stages();
}
END_TEST

/* --- A writer frees the slot of a frame that is taken then ------------------ */

static void take_first(void)
{
    OK(shmview_stream_take(reader, 0, &held));
}

START_TEST(a_loan_that_does_not_wait_looks_at_all_slots)
{
    const uint32_t flags[] = {0, SHMVIEW_MANY_WRITERS};
    struct shmview_frame frame;
    for (int i = 0; i < 2; i++) {
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
        spec.flags = flags[i];
        open_stream_of(&spec);
        reader = open_reader();
        for (int n = 1; n <= 4; n++)
            write_frame(stream, n);
        at(AT_STREAM_CLEARS, take_first);
        OK(shmview_stream_loan(stream, 0, &frame));
        ck_assert_uint_ne(frame.slot, held.slot);
        ck_assert_int_eq(frame_number(&held), 1);
        shmview_frame_discard(&frame);
        shmview_frame_release(&held);
        OK(shmview_stream_close(reader));
        close_stream();
    }
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_reader_that_leaves_while_a_thread_waits),
        SUITE_TEST(a_reader_that_leaves_while_a_thread_waits_for_several),
        SUITE_TEST(a_reader_without_a_lock_that_leaves),
        SUITE_TEST(a_frame_that_comes_back_while_it_is_held),
        SUITE_TEST(a_frame_of_a_lossless_stream_that_comes_back),
        SUITE_TEST(a_loan_that_does_not_wait_looks_at_all_slots),
        SUITE_END,
    };
    return suite_main("stream_reads", tests);
}
