/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that a forked child inherits, reports about streams, and their end by a finalizer. */
#include <unistd.h>

#include "streams.h"

/* --- Forks --------------------------------------------------------------- */

struct inherited {
    struct shmview_stream *reader;
    struct shmview_frame taken, loaned;
};

static void use_inherited(struct child *me, void *arg)
{
    struct inherited *in = arg;
    struct shmview_frame frame;
    struct shmview_view v;
    /* the parent's frames are not the child's */
    REFUSED(shmview_frame_view_at(&in->taken, 0, &v), NOT_OWNER, "");
    REFUSED(shmview_frame_publish(&in->loaned), NOT_OWNER, "");
    shmview_frame_release(&in->taken);
    shmview_frame_discard(&in->loaned);
    REFUSED(shmview_stream_loan(stream, 0, &frame), BUSY, "has a writer");
    OK(shmview_stream_join(in->reader)); /* as a reader of its own */
    child_tell(me, 1);
    OK(shmview_stream_take(in->reader, SOON, &frame));
    child_tell(me, (int)frame_number(&frame));
    shmview_frame_release(&frame);
    OK(shmview_stream_close(in->reader));
    child_pause(me);
}

START_TEST(a_forked_child_is_another_reader)
{
    struct child child;
    struct inherited in = {0};
    struct shmview_stream_status status;
    open_stream(SHMVIEW_LOSSLESS, 4);
    in.reader = open_reader();
    write_frame(stream, 1);
    OK(shmview_stream_take(in.reader, 0, &in.taken));
    OK(shmview_stream_loan(stream, 0, &in.loaned));
    child_start(&child, use_inherited, &in);
    child_hear(&child, 1);
    OK(shmview_stream_query(stream, &status, NULL, 0, NULL, 0));
    ck_assert_uint_eq(status.n_readers, 2);
    ck_assert_int_eq(frame_number(&in.taken), 1);
    fill_frame(&in.loaned, 2);
    OK(shmview_frame_publish(&in.loaned));
    child_hear(&child, 2);
    ck_assert_int_eq(frame_number(&in.taken), 1);
    shmview_frame_release(&in.taken);
    read_frame(in.reader, 2);
    child_cue(&child);
    child_wait(&child);
    OK(shmview_stream_close(in.reader));
    close_stream();
}
END_TEST

/* --- Status -------------------------------------------------------------- */

START_TEST(reports)
{
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[8];
    struct shmview_stream_reader_status readers[1];
    struct shmview_frame held, loaned;
    open_stream(SHMVIEW_LOSSLESS, 4);
    struct shmview_stream *a = open_reader(), *b = open_reader(), *peek;
    for (int i = 0; i < 3; i++)
        write_frame(stream, i);
    OK(shmview_stream_take(a, 0, &held));
    read_frame(a, 1);
    OK(shmview_stream_loan(stream, 0, &loaned));
    OK(shmview_stream_query(b, &status, slots, 8, readers, 1));
    ck_assert(status.published[0] == 3 && !status.has_ended[0] && status.deaths == 0);
    ck_assert_int_eq((int)status.writer_pid, getpid());
    ck_assert_str_eq(status.writer_command, "check_stream_fo");
    ck_assert_uint_eq(status.n_readers, 2);
    ck_assert(readers[0].n_held == 1 && readers[0].next == 3 && readers[0].lag == 1);
    ck_assert_uint_eq(readers[0].holds[0], UINT64_C(1) << held.slot);
    ck_assert_int_eq((int)readers[0].pid, getpid());
    ck_assert(slots[held.slot].state == SHMVIEW_SLOT_HELD && slots[held.slot].n_holders == 1);
    ck_assert_uint_eq(slots[held.slot].sequence[0], 1);
    ck_assert_uint_eq(slots[loaned.slot].state, SHMVIEW_SLOT_LOANED);
    ck_assert_int_eq((int)slots[loaned.slot].pid, getpid());
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &peek));
    OK(shmview_stream_query(peek, &status, slots, 8, readers, 1));
    ck_assert(status.published[0] == 3 && status.n_readers == 0);
    shmview_frame_discard(&loaned);
    shmview_frame_release(&held);
    OK(shmview_stream_close(peek));
    OK(shmview_stream_close(a));
    OK(shmview_stream_close(b));
    close_stream();
}
END_TEST

START_TEST(closing_later)
{
    struct shmview_frame held, loaned, frame;
    struct shmview_view v;
    struct shmview_buffer buffer;
    open_stream(SHMVIEW_LOSSLESS, 2);
    struct shmview_stream *reader = open_reader(), *next;
    write_frame(stream, 1);
    OK(shmview_stream_take(reader, 0, &held));
    OK(shmview_frame_view_at(&held, 0, &v));
    OK(shmview_buffer_get(&v, SHMVIEW_BUFFER_SIMPLE, &buffer));
    OK(shmview_stream_loan(stream, 0, &loaned));
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &next));
    shmview_stream_close_later(reader);
    shmview_stream_close_later(stream);
    shmview_stream_close_later(NULL);
    OK(shmview_stream_loan(next, 0, &loaned)); /* both slots are free */
    OK(shmview_stream_loan(next, 0, &frame));
    shmview_frame_discard(&loaned);
    shmview_frame_discard(&frame);
    shmview_buffer_release(&buffer);
    stream = next;
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_forked_child_is_another_reader),
        SUITE_TEST(reports),
        SUITE_TEST(closing_later),
        SUITE_END,
    };
    return suite_main("stream_fork", tests);
}
