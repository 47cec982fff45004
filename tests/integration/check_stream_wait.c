/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for streams: parked readers and writers, event loops, several at a time, and what ends a
 * wait. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "streams.h"

static struct shmview_stream *opened(const char *name, int access)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(client_connect(&d), name, access, &s));
    return s;
}

#define FRAMES 1000

static void take_all(struct child *me, void *arg)
{
    struct shmview_stream *reader = opened("s", SHMVIEW_READ);
    (void)arg;
    OK(shmview_stream_join(reader));
    child_tell(me, 1);
    for (int i = 0; i < FRAMES; i++)
        read_frame(reader, i);
}

START_TEST(everybody_gets_every_frame)
{
    struct child child[3];
    open_stream(SHMVIEW_LOSSLESS, 4);
    for (int i = 0; i < 3; i++) {
        child_start(&child[i], take_all, NULL);
        child_hear(&child[i], 1);
    }
    for (int i = 0; i < FRAMES; i++)
        write_frame(stream, i);
    for (int i = 0; i < 3; i++)
        child_wait(&child[i]);
    close_stream();
}
END_TEST

static void write_many(struct child *me, void *arg)
{
    struct shmview_stream *writer = opened("s", SHMVIEW_WRITE);
    (void)arg;
    child_pause(me);
    for (int i = 0; i < FRAMES; i++)
        write_frame(writer, me->pid);
}

START_TEST(many_writers)
{
    struct child child[3];
    struct shmview_frame frame;
    int64_t n[3] = {0};
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LOSSLESS, 3);
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    struct shmview_stream *reader = open_reader();
    for (int i = 0; i < 3; i++)
        child_start(&child[i], write_many, NULL);
    for (int i = 0; i < 3; i++)
        child_cue(&child[i]);
    for (uint64_t i = 1; i <= 3 * FRAMES; i++) {
        OK(shmview_stream_take(reader, SOON, &frame));
        ck_assert_uint_eq(frame.sequence, i);
        for (int k = 0; k < 3; k++)
            n[k] += frame_number(&frame) == child[k].pid;
        shmview_frame_release(&frame);
    }
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(n[k], FRAMES);
        child_wait(&child[k]);
    }
    expect_none(reader);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- What ends a wait ---------------------------------------------------- */

START_TEST(deadlines)
{
    struct shmview_frame frame;
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    int64_t before = await_now_ns();
    REFUSED(shmview_stream_take(reader, shmview_deadline(20 * MS), &frame), TIMED_OUT, "'s'");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    before = await_now_ns(); /* longer than one park */
    REFUSED(shmview_stream_take_latest(reader, shmview_deadline(250 * MS), &frame), TIMED_OUT, "");
    ck_assert_int_ge(await_now_ns() - before, 250 * MS);
    REFUSED(shmview_stream_take(reader, shmview_deadline(-1), &frame), TIMED_OUT, "");
    REFUSED(shmview_stream_take(reader, -5, &frame), TIMED_OUT, "");
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

static int end_at_three(void *arg)
{
    return ++*(int *)arg == 3;
}

START_TEST(the_caller_ends_a_wait)
{
    struct shmview_frame frame, loaned[2];
    int n = 0;
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    shmview_on_wait(end_at_three, &n);
    REFUSED(shmview_stream_take(reader, SHMVIEW_FOREVER, &frame), INTERRUPTED, "");
    ck_assert_int_eq(n, 3);
    OK(shmview_stream_loan(stream, 0, &loaned[0]));
    OK(shmview_stream_loan(stream, 0, &loaned[1]));
    n = 0;
    REFUSED(shmview_stream_loan(stream, SHMVIEW_FOREVER, &frame), INTERRUPTED, "");
    n = 0;
    struct shmview_wait wait = {.kind = SHMVIEW_WAIT_FRAME, .stream = reader};
    size_t index = 77;
    REFUSED(shmview_wait_any(&wait, 1, SHMVIEW_FOREVER, &index), INTERRUPTED, "");
    ck_assert_uint_eq(index, 77);
    shmview_on_wait(NULL, NULL);
    shmview_frame_discard(&loaned[0]);
    shmview_frame_discard(&loaned[1]);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- Event loops --------------------------------------------------------- */

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void drain(int fd)
{
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
}

START_TEST(a_descriptor_for_frames)
{
    int fd, again;
    struct shmview_stream *peek;
    open_stream(SHMVIEW_LOSSLESS, 4);
    struct shmview_stream *reader = open_reader();
    write_frame(stream, 7);
    OK(shmview_stream_fd(reader, &fd));
    OK(shmview_stream_fd(reader, &again));
    ck_assert_int_eq(fd, again);
    read_frame(reader, 7);
    await_readable(fd); /* a new descriptor is armed for slots too */
    for (int i = 0; i < 3; i++) {
        drain(fd);
        expect_none(reader); /* arms it */
        ck_assert(!readable(fd, 0));
        write_frame(stream, i);
        await_readable(fd);
        drain(fd);
        read_frame(reader, i);
    }
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &peek));
    REFUSED(shmview_stream_fd(peek, &fd), NO_LOCK, "peek");
    OK(shmview_stream_close(peek));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(a_descriptor_for_slots)
{
    struct shmview_frame frame, taken;
    int fd;
    open_stream(SHMVIEW_LOSSLESS, 2);
    struct shmview_stream *reader = open_reader();
    OK(shmview_stream_fd(stream, &fd));
    write_frame(stream, 0);
    await_readable(fd); /* a new descriptor is armed for frames too */
    drain(fd);
    write_frame(stream, 1);
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, ""); /* arms it */
    ck_assert(!readable(fd, 0));
    read_frame(reader, 0);
    await_readable(fd);
    drain(fd);
    write_frame(stream, 2);
    /* a reader that takes the latest frame holds it, and no longer needs those before it */
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "");
    ck_assert(!readable(fd, 0));
    OK(shmview_stream_take_latest(reader, 0, &taken));
    await_readable(fd);
    drain(fd);
    write_frame(stream, 3);
    shmview_frame_release(&taken);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* Nobody reads, so a slot is free as soon as its frame is published. */
START_TEST(a_publication_wakes_writers)
{
    struct shmview_frame frames[2], frame;
    int fd;
    open_stream(SHMVIEW_LOSSLESS, 2);
    OK(shmview_stream_fd(stream, &fd));
    write_frame(stream, 0);
    await_readable(fd); /* a new descriptor is armed for frames too */
    drain(fd);
    for (int i = 0; i < 2; i++)
        OK(shmview_stream_loan(stream, 0, &frames[i]));
    for (int i = 0; i < 2; i++) {
        REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "");
        ck_assert(!readable(fd, 0));
        OK(shmview_frame_publish(&frames[i]));
        await_readable(fd);
        drain(fd);
        OK(shmview_stream_loan(stream, 0, &frames[i]));
    }
    for (int i = 0; i < 2; i++)
        shmview_frame_discard(&frames[i]);
    close_stream();
}
END_TEST

/* A frame that was the last one of a stage is free once another one is passed on. */
START_TEST(a_frame_that_is_passed_on_wakes_writers)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 3);
    struct shmview_frame loaned, frame, taken;
    struct shmview_stream *reader;
    int fd;
    spec.n_stages = 2;
    open_stream_of(&spec);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &reader));
    OK(shmview_stream_fd(stream, &fd));
    OK(shmview_stream_loan(stream, 0, &loaned));
    OK(shmview_stream_join(reader));
    write_frame(stream, 1);
    await_readable(fd); /* a new descriptor is armed for frames too */
    drain(fd);
    OK(shmview_stream_take(reader, 0, &taken));
    OK(shmview_frame_pass(&taken, 1, NULL));
    shmview_frame_release(&taken);
    write_frame(stream, 2);
    OK(shmview_stream_take(reader, 0, &taken));
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "");
    ck_assert(!readable(fd, 0));
    OK(shmview_frame_pass(&taken, 1, NULL));
    await_readable(fd);
    OK(shmview_stream_loan(stream, 0, &frame));
    shmview_frame_discard(&frame);
    shmview_frame_discard(&loaned);
    shmview_frame_release(&taken);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- Several ------------------------------------------------------------- */

static void write_on_cue(struct child *me, void *arg)
{
    struct shmview_stream *writer = opened("s", SHMVIEW_WRITE);
    struct shmview_segment *seg = client_attach(client_connect(&d), "seg", SHMVIEW_WRITE);
    (void)arg;
    child_tell(me, 1);
    child_pause(me);
    parties_await_sleep(getppid());
    OK(shmview_notify(seg));
    child_pause(me);
    parties_await_sleep(getppid());
    OK(shmview_lock(seg));
    OK(shmview_switch(seg, "a"));
    OK(shmview_unlock(seg));
    child_pause(me);
    parties_await_sleep(getppid());
    write_frame(writer, 1);
    child_pause(me);
    OK(shmview_stream_close(writer));
}

START_TEST(any_of_several)
{
    struct child child;
    struct shmview_phase phase;
    size_t index = 77;
    const struct shmview_view_spec view = {.name = "v", .format = "b"};
    open_stream(SHMVIEW_LATEST, 4);
    struct shmview_stream *writer = stream;
    OK(shmview_stream_open(conn, "s", SHMVIEW_READ, &stream));
    OK(shmview_stream_close(writer)); /* a child is the writer */
    struct shmview_segment *seg = client_create(conn, "seg", 64);
    OK(shmview_define(seg, "a", &view, 1));
    child_start(&child, write_on_cue, NULL);
    child_hear(&child, 1);
    struct shmview_wait w[] = {
        {.kind = SHMVIEW_WAIT_FRAME, .stream = stream},
        {.kind = SHMVIEW_WAIT_CHANGE, .segment = seg},
        {.kind = SHMVIEW_WAIT_PHASE, .segment = seg},
    };
    REFUSED(shmview_wait_any(w, 3, 0, &index), TIMED_OUT, "none of 3 entries");
    REFUSED(shmview_wait_any(w, 3, shmview_deadline(5 * MS), &index), TIMED_OUT, "");
    ck_assert_uint_eq(index, 77);
    child_cue(&child);
    OK(shmview_wait_any(w, 3, SOON, &index));
    ck_assert_uint_eq(index, 1);
    child_cue(&child);
    OK(shmview_wait_any(&w[2], 1, SOON, &index));
    ck_assert_uint_eq(index, 0);
    OK(shmview_lock(seg)); /* until the child has notified of the switch */
    OK(shmview_unlock(seg));
    OK(shmview_phase_get(seg, &phase));
    w[2].seen = phase.generation;
    w[1].seen = shmview_change(seg);
    child_cue(&child);
    OK(shmview_wait_any(w, 3, SOON, &index));
    ck_assert_uint_eq(index, 0);
    OK(shmview_wait_any(w, 3, 0, &index)); /* it takes nothing */
    read_frame(stream, 1);
    REFUSED(shmview_wait_any(w, 3, 0, &index), TIMED_OUT, "");
    child_cue(&child);
    child_wait(&child);
    OK(shmview_detach(seg));
    close_stream();
}
END_TEST

START_TEST(what_several_refuse)
{
    size_t index;
    struct shmview_wait w[65];
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    for (int i = 0; i < 65; i++)
        w[i] = (struct shmview_wait){.kind = SHMVIEW_WAIT_FRAME, .stream = stream};
    REFUSED(shmview_wait_any(w, 0, 0, &index), INVALID, "0 entries");
    REFUSED(shmview_wait_any(w, 65, 0, &index), INVALID, "65 entries");
    REFUSED(shmview_wait_any(w, 64, 0, &index), TIMED_OUT, "");
    REFUSED(shmview_wait_any(w, 64, shmview_deadline(5 * MS), &index), TIMED_OUT, "");
    w[1].kind = 9;
    REFUSED(shmview_wait_any(w, 2, 0, &index), INVALID, "kind 9");
    w[1] = (struct shmview_wait){.kind = SHMVIEW_WAIT_CHANGE};
    REFUSED(shmview_wait_any(w, 2, 0, &index), INVALID, "segment");
    w[1] = (struct shmview_wait){.kind = SHMVIEW_WAIT_FRAME};
    REFUSED(shmview_wait_any(w, 2, 0, &index), INVALID, "stream");
    w[1] = (struct shmview_wait){.kind = SHMVIEW_WAIT_CHANGE, .segment = bare};
    REFUSED(shmview_wait_any(w, 2, 0, &index), NO_LOCK, "");
    OK(shmview_detach(bare));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(everybody_gets_every_frame),
        SUITE_TEST(many_writers),
        SUITE_TEST(deadlines),
        SUITE_TEST(the_caller_ends_a_wait),
        SUITE_TEST(a_descriptor_for_frames),
        SUITE_TEST(a_descriptor_for_slots),
        SUITE_TEST(a_publication_wakes_writers),
        SUITE_TEST(a_frame_that_is_passed_on_wakes_writers),
        SUITE_TEST(any_of_several),
        SUITE_TEST(what_several_refuse),
        SUITE_END,
    };
    return suite_main("stream_wait", tests);
}
