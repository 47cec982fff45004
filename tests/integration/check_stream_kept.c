/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and attachments that outlive the call that ends them: kept after they are published, and
 * left to shmview_stream_close_later(). */
#include <unistd.h>

#include "streams.h"

START_TEST(a_published_frame_is_kept)
{
    struct shmview_frame kept, frame;
    struct shmview_view v;
    for (uint32_t flags = 0; flags <= SHMVIEW_MANY_WRITERS; flags += SHMVIEW_MANY_WRITERS) {
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 3);
        spec.flags = flags;
        open_stream_of(&spec);
        struct shmview_stream *reader = open_reader();
        OK(shmview_stream_loan(stream, 0, &kept));
        fill_frame(&kept, 1);
        OK(shmview_frame_publish_kept(&kept));
        ck_assert_uint_eq(kept.sequence, 1);
        struct shmview_stream_slot_status slots[3];
        struct shmview_stream_status status;
        OK(shmview_stream_query(stream, &status, slots, 3, NULL, 0));
        ck_assert(slots[kept.slot].state == SHMVIEW_SLOT_HELD && slots[kept.slot].n_holders == 1);
        ck_assert_uint_eq(slots[kept.slot].pid, (uint32_t)getpid());
        read_frame(reader, 1);
        for (int i = 2; i < 20; i++)
            write_frame(stream, i);
        ck_assert_int_eq(frame_number(&kept), 1);
        ck_assert_int_eq(shmview_frame_is_intact(&kept), 1);
        OK(shmview_frame_view_at(&kept, 0, &v));
        ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
        REFUSED(shmview_frame_publish(&kept), NOT_OWNER, "not loaned");
        OK(shmview_stream_loan(stream, 0, &frame)); /* the third slot has the newest frame */
        struct shmview_frame none;
        REFUSED(shmview_stream_loan(stream, 0, &none), TIMED_OUT, "");
        REFUSED(shmview_stream_close(stream), BUSY, "2 frames");
        shmview_frame_release(&kept);
        OK(shmview_stream_loan(stream, 0, &none));
        shmview_frame_discard(&none);
        shmview_frame_discard(&frame);
        OK(shmview_stream_close(reader));
        close_stream();
    }
}
END_TEST

START_TEST(closing_later_gives_everything_back)
{
    struct shmview_frame frame, none;
    struct shmview_stream *reader, *second;
    open_stream(SHMVIEW_LATEST, 2);
    write_frame(stream, 1);
    OK(shmview_stream_open(conn, "s", SHMVIEW_PEEK, &reader));
    shmview_stream_close_later(reader);
    reader = open_reader();
    write_frame(stream, 2);
    OK(shmview_stream_take(reader, 0, &frame));
    write_frame(stream, 3);
    REFUSED(shmview_stream_loan(stream, 0, &none), TIMED_OUT, "");
    shmview_stream_close_later(reader);
    OK(shmview_stream_loan(stream, 0, &frame));
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &second));
    shmview_stream_close_later(stream);
    OK(shmview_stream_loan(second, 0, &frame));
    shmview_frame_discard(&frame);
    stream = second;
    close_stream();
}
END_TEST

static int close_the_writer(void *arg)
{
    (void)arg;
    shmview_stream_close_later(stream);
    stream = NULL;
    return 0;
}

/* A buffer keeps the attachment of the first writer, so that this client lives on. */
START_TEST(a_role_that_is_given_back_during_a_loan)
{
    struct shmview_frame frame;
    struct shmview_view v;
    struct shmview_buffer buffer;
    struct shmview_stream *second;
    open_stream(SHMVIEW_LATEST, 4);
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &second));
    OK(shmview_stream_loan(stream, 0, &frame));
    OK(shmview_frame_view_at(&frame, 0, &v));
    OK(shmview_buffer_get(&v, SHMVIEW_BUFFER_ND, &buffer));
    REFUSED(shmview_stream_loan(second, 0, &frame), BUSY, "has a writer");
    shmview_on_wait(close_the_writer, NULL);
    OK(shmview_stream_loan(second, SOON, &frame));
    shmview_on_wait(NULL, NULL);
    ck_assert_ptr_null(stream);
    shmview_buffer_release(&buffer);
    shmview_frame_discard(&frame);
    stream = second;
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_published_frame_is_kept),
        SUITE_TEST(closing_later_gives_everything_back),
        SUITE_TEST(a_role_that_is_given_back_during_a_loan),
        SUITE_END,
    };
    return suite_main("stream_kept", tests);
}
