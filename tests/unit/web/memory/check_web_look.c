/* SPDX-License-Identifier: Apache-2.0 */
/* A page looks at a stream, whose writers take no lock. */
#include "support/suite.h"
#include "unit/gone_backend.h"

#include "web/memory/guard.h"
#include "web/memory/look.h"

#define N_SLOTS 4

static const struct look_at image = {.segment = GONE_NAME, .layout = "frame", .view = "image"};

/* Publishes a frame whose first element is `value`. */
static void publish(unsigned char value)
{
    struct shmview_frame frame;
    struct shmview_view view;
    OK(shmview_stream_loan(gone_stream, 0, &frame));
    OK(shmview_frame_view(&frame, "image", &view));
    *view.data = value;
    OK(shmview_frame_publish(&frame));
}

struct reading {
    struct look look;
    unsigned char value;
    bool publishes; /* after the read */
};

static int copy(void *arg)
{
    struct reading *r = arg;
    r->value = *r->look.view.data;
    for (unsigned char i = 0; r->publishes && i < 2 * N_SLOTS; i++)
        publish(i);
    return 0;
}

static void assert_shows(unsigned char value)
{
    struct reading r = {.publishes = false};
    OK(look_open(&backend, gone_connection, &image, SHMVIEW_READ, &r.look));
    OK(look_read(&r.look, copy, &r));
    ck_assert_uint_eq(r.value, value);
    ck_assert_int_eq(r.look.state, LOOK_CLEAN);
    look_close(&r.look);
}

START_TEST(the_newest_frame_is_shown)
{
    struct look look;
    backend_begin();
    ck_assert_int_eq(look_open(&backend, gone_connection, &image, SHMVIEW_READ, &look),
                     -SHMVIEW_ERR_NOT_FOUND);
    ck_assert_str_eq(look.error, "stream '" GONE_NAME "' has no frame");
    look_close(&look);
    for (unsigned char i = 1; i < 3 * N_SLOTS; i++) {
        publish(i);
        assert_shows(i);
        assert_shows(i);
    }
    OK(shmview_stream_end(gone_stream));
    assert_shows(3 * N_SLOTS - 1);
    backend_end();
}
END_TEST

START_TEST(a_frame_that_is_overwritten_is_torn)
{
    struct reading r = {.publishes = false};
    backend_begin();
    publish(1);
    OK(look_open(&backend, gone_connection, &image, SHMVIEW_READ, &r.look));
    OK(look_read(&r.look, copy, &r));
    ck_assert_int_eq(r.look.state, LOOK_CLEAN);
    r.publishes = true;
    OK(look_read(&r.look, copy, &r));
    ck_assert_int_eq(r.look.state, LOOK_TORN);
    look_close(&r.look);
    backend_end();
}
END_TEST

START_TEST(a_page_makes_no_writer_wait)
{
    struct reading looks[N_SLOTS];
    backend_begin();
    for (unsigned char i = 0; i < N_SLOTS; i++) {
        publish(i);
        OK(look_open(&backend, gone_connection, &image, SHMVIEW_READ, &looks[i].look));
    }
    for (unsigned char i = 0; i < 2 * N_SLOTS; i++)
        publish(i);
    for (unsigned char i = 0; i < N_SLOTS; i++)
        look_close(&looks[i].look);
    backend_end();
}
END_TEST

START_TEST(bytes_outside_the_layout_are_unchecked)
{
    const struct look_at bytes = {.segment = GONE_NAME, .takes_lock = true};
    struct reading r = {.publishes = false};
    backend_begin();
    OK(look_open(&backend, gone_connection, &bytes, SHMVIEW_READ, &r.look));
    OK(look_read(&r.look, copy, &r));
    ck_assert_int_eq(r.look.state, LOOK_UNCHECKED);
    look_close(&r.look);
    backend_end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(the_newest_frame_is_shown), SUITE_TEST(a_frame_that_is_overwritten_is_torn),
        SUITE_TEST(a_page_makes_no_writer_wait), SUITE_TEST(bytes_outside_the_layout_are_unchecked),
        SUITE_END};
    return suite_main("web_look", tests);
}
