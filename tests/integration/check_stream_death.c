/* SPDX-License-Identifier: Apache-2.0 */
/* Streams whose writers and readers are killed or stopped, and whose daemon dies. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "streams.h"

#define WRITER_NAME "writer?]0;?" /* as deaths report it */

/* --- Children ------------------------------------------------------------ */

static struct shmview_stream *opened(const char *name, int access)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(client_connect(&d), name, access, &s));
    return s;
}

/* Takes and holds the given number of frames, reports each, and waits for its end. */
static void hold_frames(struct child *me, void *arg)
{
    struct shmview_stream *reader = opened("s", SHMVIEW_READ);
    struct shmview_frame frame[8];
    OK(shmview_stream_join(reader));
    child_tell(me, 0);
    for (int i = 0; i < *(int *)arg; i++) {
        OK(shmview_stream_take(reader, SOON, &frame[i]));
        child_tell(me, i + 1);
    }
    child_pause(me);
}

/* Publishes two frames, half fills a third one, and waits for its end. The name of its program has
 * bytes that must not reach a terminal. */
static void leave_half(struct child *me, void *arg)
{
    static char name[] = "writer\033]0;\xc3";
    program_invocation_short_name = name;
    struct shmview_stream *writer = opened(arg, SHMVIEW_WRITE);
    struct shmview_frame frame;
    write_frame(writer, 1);
    write_frame(writer, 2);
    OK(shmview_stream_loan(writer, 0, &frame));
    fill_frame(&frame, 666);
    child_tell(me, 1);
    child_pause(me);
}

/* --- Readers ------------------------------------------------------------- */

START_TEST(frames_of_a_dead_reader_are_free)
{
    struct child child;
    struct shmview_frame frame;
    uint32_t modes[] = {SHMVIEW_LOSSLESS, SHMVIEW_LATEST};
    for (int m = 0; m < 2; m++) {
        int n = 3;
        open_stream(modes[m], 3);
        child_start(&child, hold_frames, &n);
        child_hear(&child, 0);
        for (int i = 0; i < n; i++) {
            write_frame(stream, i);
            child_hear(&child, i + 1);
        }
        REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "holds 3 of 3 slots");
        child_kill(&child);
        for (int i = 0; i < 10; i++)
            write_frame(stream, i);
        close_stream();
    }
}
END_TEST

static void kill_later(struct child *me, void *arg)
{
    child_pause(me);
    parties_await_sleep(getppid());
    kill(((struct child *)arg)->pid, SIGKILL);
}

START_TEST(a_waiting_writer_goes_on_when_a_reader_dies)
{
    struct child child, killer;
    int n = 0;
    open_stream(SHMVIEW_LOSSLESS, 2);
    child_start(&child, hold_frames, &n);
    child_start(&killer, kill_later, &child);
    child_hear(&child, 0);
    write_frame(stream, 1);
    write_frame(stream, 2);
    child_cue(&killer);
    write_frame(stream, 3); /* waits for the reader, until it is dead */
    child_wait_signal(&child, SIGKILL);
    child_wait(&killer);
    close_stream();
}
END_TEST

START_TEST(a_stopped_reader)
{
    struct child child;
    struct shmview_frame frame;
    char name[64];
    int n = 0;
    open_stream(SHMVIEW_LOSSLESS, 2);
    child_start(&child, hold_frames, &n);
    child_hear(&child, 0);
    child_stop(&child);
    write_frame(stream, 1);
    write_frame(stream, 2);
    snprintf(name, sizeof name, "pid %d (check_stream_de) has not taken 2 frames", child.pid);
    REFUSED(shmview_stream_loan(stream, shmview_deadline(10 * MS), &frame), TIMED_OUT, name);
    child_continue(&child);
    REFUSED(shmview_stream_loan(stream, shmview_deadline(10 * MS), &frame), TIMED_OUT, name);
    child_kill(&child);
    close_stream();

    open_stream(SHMVIEW_LATEST, 3);
    n = 1;
    child_start(&child, hold_frames, &n);
    child_hear(&child, 0);
    write_frame(stream, 1);
    child_hear(&child, 1);
    child_stop(&child);
    for (int i = 0; i < 100; i++)
        write_frame(stream, i);
    child_continue(&child);
    child_kill(&child);
    close_stream();
}
END_TEST

/* --- Writers ------------------------------------------------------------- */

static void expect_death(struct shmview_stream *reader, pid_t pid)
{
    struct shmview_frame frame;
    struct shmview_death death;
    ck_assert_int_eq(shmview_stream_take(reader, SOON, &frame), SHMVIEW_WRITER_DIED);
    OK(shmview_stream_death(reader, &death));
    ck_assert_int_eq((int)death.pid, pid);
    ck_assert_str_eq(death.command, WRITER_NAME);
    ck_assert(death.when_ns > 0 && death.when_ns <= await_now_ns());
    expect_none(reader); /* once */
}

static void die_while_filling(uint32_t flags)
{
    struct child child;
    struct shmview_death death;
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LOSSLESS, 4);
    spec.flags = flags;
    open_stream_of(&spec);
    struct shmview_stream *reader = open_reader();
    REFUSED(shmview_stream_death(reader, &death), NOT_FOUND, "no death");
    for (int round = 0; round < 3; round++) {
        child_start(&child, leave_half, (void *)"s");
        child_hear(&child, 1);
        read_frame(reader, 1);
        read_frame(reader, 2);
        expect_none(reader);
        pid_t pid = child.pid;
        child_kill(&child);
        expect_death(reader, pid);
        for (int i = 0; i < 10; i++) { /* the next writer, with all slots */
            write_frame(stream, i);
            read_frame(reader, i);
        }
        OK(shmview_stream_close(stream)); /* gives the role back */
        OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &stream));
    }
    OK(shmview_stream_close(reader));
    close_stream();
}

START_TEST(a_writer_dies_while_filling)
{
    die_while_filling(0);
    die_while_filling(SHMVIEW_MANY_WRITERS);
}
END_TEST

START_TEST(a_death_is_noticed_after_the_takeover)
{
    struct child child;
    struct shmview_frame frame;
    struct shmview_death death;
    uint32_t flags[] = {0, SHMVIEW_MANY_WRITERS};
    for (int i = 0; i < 2; i++) {
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 2);
        spec.flags = flags[i];
        open_stream_of(&spec);
        struct shmview_stream *reader = open_reader();
        child_start(&child, leave_half, (void *)"s");
        child_hear(&child, 1);
        pid_t pid = child.pid;
        child_kill(&child);
        for (int k = 0; k < 6; k++) /* takes over, before the reader looks */
            write_frame(stream, 7);
        int r;
        unsigned deaths = 0;
        while ((r = shmview_stream_take(reader, 0, &frame)) >= 0) {
            deaths += r == SHMVIEW_WRITER_DIED;
            if (r == 0)
                ck_assert_int_eq(frame_number(&frame), 7);
            shmview_frame_release(&frame);
        }
        ck_assert_int_eq(r, -SHMVIEW_ERR_TIMED_OUT);
        ck_assert_uint_eq(deaths, 1);
        OK(shmview_stream_death(reader, &death));
        ck_assert_int_eq((int)death.pid, pid);
        ck_assert_str_eq(death.command, WRITER_NAME);
        /* one that joins later does not hear of it */
        struct shmview_stream *late = open_reader();
        expect_none(late);
        OK(shmview_stream_close(late));
        OK(shmview_stream_close(reader));
        close_stream();
    }
}
END_TEST

static void take_until_death(struct child *me, void *arg)
{
    struct shmview_stream *reader = opened("s", SHMVIEW_READ);
    struct shmview_frame frame;
    (void)arg;
    OK(shmview_stream_join(reader));
    child_tell(me, 1);
    for (int wanted = 1; wanted <= 2; wanted++) {
        OK(shmview_stream_take(reader, SOON, &frame));
        ck_assert_int_eq(frame_number(&frame), wanted);
        shmview_frame_release(&frame);
    }
    child_tell(me, 2);
    ck_assert_int_eq(shmview_stream_take(reader, SOON, &frame), SHMVIEW_WRITER_DIED);
    child_tell(me, 3);
}

START_TEST(a_waiting_reader_learns_of_a_death)
{
    struct child reader, writer;
    open_stream(SHMVIEW_LATEST, 4);
    child_start(&reader, take_until_death, NULL);
    child_hear(&reader, 1);
    child_start(&writer, leave_half, (void *)"s");
    child_hear(&writer, 1);
    child_hear(&reader, 2);
    parties_await_sleep(reader.pid);
    child_kill(&writer);
    child_hear(&reader, 3);
    child_wait(&reader);
    close_stream();
}
END_TEST

/* --- The daemon ---------------------------------------------------------- */

START_TEST(streams_go_on_without_the_daemon)
{
    struct child child;
    struct shmview_frame frame, held;
    int n = 2;
    open_stream(SHMVIEW_LATEST, 4);
    struct shmview_stream *reader = open_reader();
    child_start(&child, hold_frames, &n);
    child_hear(&child, 0);
    daemon_kill(&d);
    for (int i = 0; i < 2; i++) {
        write_frame(stream, i);
        child_hear(&child, i + 1);
        read_frame(reader, i);
    }
    child_kill(&child); /* nobody notices it now */
    write_frame(stream, 2);
    OK(shmview_stream_take(reader, 0, &held));
    write_frame(stream, 3);
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "holds 2 of 4 slots");
    daemon_restart(&d);
    OK(shmview_ping(conn));
    write_frame(stream, 4);
    shmview_frame_release(&held);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(frames_of_a_dead_reader_are_free),
        SUITE_TEST(a_waiting_writer_goes_on_when_a_reader_dies),
        SUITE_TEST(a_stopped_reader),
        SUITE_TEST(a_writer_dies_while_filling),
        SUITE_TEST(a_death_is_noticed_after_the_takeover),
        SUITE_TEST(a_waiting_reader_learns_of_a_death),
        SUITE_TEST(streams_go_on_without_the_daemon),
        SUITE_END,
    };
    return suite_main("stream_death", tests);
}
