/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of loans: which processes are in the way, and for how long. No test expects that a
 * step takes long or not: it compares the times in the text with those that it has read itself. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "streams.h"

#define SECOND INT64_C(1000000000)

/* A time in a text is rounded to a millisecond. */
#define ABOUT MS

/* Fails to loan, and returns the text. */
static const char *fail_to_loan(int64_t deadline)
{
    struct shmview_frame frame;
    REFUSED(shmview_stream_loan(stream, deadline, &frame), TIMED_OUT, "no free slot");
    return shmview_error_text();
}

/* Returns the time after these words in the text, in nanoseconds; -1 if they are not there. */
static int64_t time_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    return at ? (int64_t)(strtod(at + strlen(words), NULL) * (double)SECOND) : -1;
}

/* Writes frames of these times (0: that of the call) and takes them. */
static void take_frames(struct shmview_stream *reader, int n, int64_t time_ns,
                        struct shmview_frame *ret_frames)
{
    struct shmview_frame frame;
    for (int i = 0; i < n; i++) {
        OK(shmview_stream_loan(stream, 0, &frame));
        frame.time_ns = time_ns;
        OK(shmview_frame_publish(&frame));
        OK(shmview_stream_take(reader, 0, &ret_frames[i]));
    }
}

static void release_frames(struct shmview_frame *frames, int n)
{
    for (int i = 0; i < n; i++)
        shmview_frame_release(&frames[i]);
}

/* --- Holders ------------------------------------------------------------- */

START_TEST(a_holder_is_named_with_two_bounds)
{
    struct shmview_frame held[3];
    char name[64];
    open_stream(SHMVIEW_LATEST, 3);
    struct shmview_stream *reader = open_reader();
    snprintf(name, sizeof name, "pid %d (check_stream_bl) holds 3 of 3 slots", getpid());
    int64_t before_taken = await_now_ns();
    take_frames(reader, 3, 0, held);
    int64_t taken = await_now_ns();

    /* the first loan that fails knows only the age of the frame */
    const char *text = fail_to_loan(0);
    int64_t noted = await_now_ns(), most = time_after(text, "(one for at most ");
    ck_assert_ptr_nonnull(strstr(text, name));
    ck_assert_int_ge(most, 0);
    ck_assert_int_le(most, noted - before_taken + ABOUT);

    /* a later one knows that the frame was held at the first one */
    text = fail_to_loan(shmview_deadline(20 * MS));
    int64_t now = await_now_ns(), least = time_after(text, "(one for ");
    most = time_after(text, " to ");
    ck_assert_ptr_nonnull(strstr(text, name));
    ck_assert_int_ge(least, 20 * MS - ABOUT);
    ck_assert_int_le(least, now - taken + ABOUT);
    ck_assert_int_ge(most, least);
    ck_assert_int_le(most, now - before_taken + ABOUT);

    /* one frame in place of another: the other two have been held all the time */
    shmview_frame_release(&held[0]);
    take_frames(reader, 1, 0, held);
    text = fail_to_loan(0);
    ck_assert_int_ge(time_after(text, "(one for "), now - noted - ABOUT);

    /* three others in their slots */
    release_frames(held, 3);
    before_taken = await_now_ns();
    take_frames(reader, 3, 0, held);
    text = fail_to_loan(0);
    most = time_after(text, "(one for at most ");
    ck_assert_int_ge(most, 0);
    ck_assert_int_le(most, await_now_ns() - before_taken + ABOUT);
    release_frames(held, 3);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(a_frame_of_another_time_has_one_bound)
{
    struct shmview_frame held[2];
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    take_frames(reader, 2, shmview_deadline(3600 * SECOND), held);
    ck_assert_ptr_null(strstr(fail_to_loan(0), "(one for"));
    ck_assert_int_ge(time_after(fail_to_loan(shmview_deadline(20 * MS)), "(one for at least "),
                     20 * MS - ABOUT);
    release_frames(held, 2);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(a_wait_finds_its_holder_at_once)
{
    struct shmview_frame held[2];
    int64_t least = -1;
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    /* with other frames each time, so that no earlier loan has seen them */
    for (int64_t wait = 20 * MS; least < 0 && wait < SECOND; wait *= 2) {
        take_frames(reader, 2, 0, held);
        least = time_after(fail_to_loan(shmview_deadline(wait)), "(one for ");
        least = least == 0 ? -1 : least; /* the words were "at most" */
        release_frames(held, 2);
    }
    ck_assert_int_ge(least, MS);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

START_TEST(of_many_holders_four_are_named)
{
    struct shmview_stream *readers[6];
    struct shmview_frame held[6][2];
    open_stream(SHMVIEW_LATEST, 2);
    for (int i = 0; i < 6; i++)
        readers[i] = open_reader();
    for (int k = 0; k < 2; k++) {
        write_frame(stream, k);
        for (int i = 0; i < 6; i++)
            OK(shmview_stream_take(readers[i], 0, &held[i][k]));
    }
    fail_to_loan(0);
    const char *text = fail_to_loan(shmview_deadline(20 * MS)), *at = text;
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(at = strstr(at, "holds 2 of 2 slots (one for "));
        ck_assert_int_ge(time_after(at, "(one for "), 20 * MS - ABOUT);
        at++;
    }
    ck_assert_ptr_null(strstr(at, "holds"));
    ck_assert_str_eq(strstr(at, "; 2 more"), "; 2 more");
    /* the places of those that are gone are free for others */
    for (int i = 0; i < 4; i++) {
        release_frames(held[i], 2);
        OK(shmview_stream_close(readers[i]));
    }
    fail_to_loan(0);
    text = fail_to_loan(shmview_deadline(20 * MS));
    ck_assert_int_ge(time_after(text, "(one for "), 20 * MS - ABOUT);
    for (int i = 4; i < 6; i++) {
        release_frames(held[i], 2);
        OK(shmview_stream_close(readers[i]));
    }
    close_stream();
}
END_TEST

/* --- Readers that do not take -------------------------------------------- */

START_TEST(a_slow_reader_is_named_with_its_pause)
{
    const char *text, *pause = "has not taken 2 frames (it took none in the last ";
    open_stream(SHMVIEW_LOSSLESS, 2);
    struct shmview_stream *reader = open_reader();
    write_frame(stream, 1);
    write_frame(stream, 2);
    text = fail_to_loan(0);
    ck_assert_ptr_nonnull(strstr(text, "has not taken 2 frames"));
    ck_assert_ptr_null(strstr(text, "it took none"));
    ck_assert_int_ge(time_after(fail_to_loan(shmview_deadline(20 * MS)), pause), 20 * MS - ABOUT);
    read_frame(reader, 1);
    write_frame(stream, 3);
    ck_assert_ptr_null(strstr(fail_to_loan(0), "it took none"));
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- Writers ------------------------------------------------------------- */

/* Loans two slots and waits for its end. */
static void loan_two(struct child *me, void *arg)
{
    struct shmview_stream *writer = NULL;
    struct shmview_frame frame;
    (void)arg;
    OK(shmview_stream_open(client_connect(&d), "s", SHMVIEW_WRITE, &writer));
    for (int i = 0; i < 2; i++)
        OK(shmview_stream_loan(writer, 0, &frame));
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(writers_with_loans_are_named)
{
    struct shmview_frame loaned, kept;
    struct child child;
    char theirs[64], mine[64];
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    child_start(&child, loan_two, NULL);
    child_hear(&child, 1);
    OK(shmview_stream_loan(stream, 0, &kept));
    OK(shmview_frame_publish_kept(&kept));
    OK(shmview_stream_loan(stream, 0, &loaned));
    const char *text = fail_to_loan(0);
    snprintf(theirs, sizeof theirs, "pid %d (check_stream_bl) has loaned or keeps 2 of 4",
             child.pid);
    snprintf(mine, sizeof mine, "pid %d (check_stream_bl) has loaned or keeps 2 of 4", getpid());
    ck_assert_msg(strstr(text, theirs) && strstr(text, mine), "%s", text);
    child_kill(&child);
    shmview_frame_discard(&loaned);
    shmview_frame_release(&kept);
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_holder_is_named_with_two_bounds),
        SUITE_TEST(a_frame_of_another_time_has_one_bound),
        SUITE_TEST(a_wait_finds_its_holder_at_once),
        SUITE_TEST(of_many_holders_four_are_named),
        SUITE_TEST(a_slow_reader_is_named_with_its_pause),
        SUITE_TEST(writers_with_loans_are_named),
        SUITE_END,
    };
    return suite_main("stream_blame", tests);
}
