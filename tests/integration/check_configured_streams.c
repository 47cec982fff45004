/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that the configuration declares: clients find them as if a program had created them, and
 * a later daemon keeps them, completes them, or leaves them alone. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/monitor.h>
#include <shmview/stream.h>

#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;

#define VIEWS "'views':[{'name':'numbers','format':'int32','shape':[10]}]"
#define STREAM                                                                                     \
    "{'segments':[\n{'name':'s','mode':'0600','stream':{'mode':'latest','slots':8,'history':1,"    \
    "'stages':2,'writers':'many'," VIEWS "}}]}"

static void begin(const char *text)
{
    daemon_configure(text);
    daemon_start_configured(&d, daemon_config_path());
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    unlink(daemon_config_path());
}

static struct shmview_stream *open_stream(int access)
{
    struct shmview_stream *stream = NULL;
    OK(shmview_stream_open(conn, "s", access, &stream));
    return stream;
}

static void write_frame(int32_t number)
{
    struct shmview_stream *stream = open_stream(SHMVIEW_WRITE);
    struct shmview_frame frame;
    struct shmview_view view;
    OK(shmview_stream_loan(stream, 0, &frame));
    OK(shmview_frame_view(&frame, "numbers", &view));
    for (int i = 0; i < 10; i++)
        SHMVIEW_DATA(int32_t, &view)[i] = number;
    OK(shmview_frame_publish(&frame));
    OK(shmview_stream_close(stream));
}

/* Takes the newest frame, which must have these numbers. */
static void expect_frame(int32_t number)
{
    struct shmview_stream *stream = open_stream(SHMVIEW_READ);
    struct shmview_frame frame;
    struct shmview_view view;
    OK(shmview_stream_take_latest(stream, 0, &frame));
    OK(shmview_frame_view(&frame, "numbers", &view));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(SHMVIEW_DATA(int32_t, &view)[i], number);
    shmview_frame_release(&frame);
    OK(shmview_stream_close(stream));
}

/* Overwrites n bytes of the segment from its beginning, while no daemon runs. */
static void spoil(const void *bytes, size_t n)
{
    char path[300];
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/s", d.instance);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
    close(fd);
}

START_TEST(a_program_finds_it)
{
    struct shmview_stream_info info;
    begin(STREAM);
    write_frame(7);
    expect_frame(7);
    struct shmview_stream *stream = open_stream(SHMVIEW_PEEK);
    shmview_stream_info_get(stream, &info);
    ck_assert(info.mode == SHMVIEW_LATEST && info.n_slots == 8 && info.history == 1);
    ck_assert(info.n_stages == 2 && info.flags == SHMVIEW_MANY_WRITERS && info.n_views == 1);
    ck_assert_str_eq(shmview_stream_view_name(stream, 0), "numbers");
    OK(shmview_stream_close(stream));
    end();
}
END_TEST

START_TEST(its_creation_is_that_of_a_stream)
{
    struct shmview_monitor_options o = {
        .struct_bytes = sizeof o,
        .kinds = SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_CREATED),
        .after = SHMVIEW_MONITOR_REMEMBERED,
    };
    struct shmview_monitor *monitor;
    const struct shmview_event *e;
    begin("{'segments':[\n{'name':'a','size':100,'mode':'0600'},"
          "{'name':'s','mode':'0600','stream':{'mode':'latest','slots':5," VIEWS "}}]}");
    OK(shmview_monitor_open(conn, &o, &monitor));
    OK(shmview_monitor_next(monitor, SHMVIEW_FOREVER, &e)); /* subscribed */
    for (int i = 0; i < 2; i++) {
        OK(shmview_monitor_next(monitor, SHMVIEW_FOREVER, &e));
        bool is_stream = strcmp(e->segment, "s") == 0;
        ck_assert_uint_eq(e->stream, is_stream ? SHMVIEW_LATEST : 0);
        ck_assert_uint_eq(e->stream_slots, is_stream ? 5 : 0);
    }
    OK(shmview_monitor_close(monitor));
    end();
}
END_TEST

START_TEST(it_keeps_its_frames)
{
    begin(STREAM);
    write_frame(1);
    for (int i = 0; i < 2; i++) {
        i ? daemon_leave(&d) : daemon_kill(&d);
        daemon_restart(&d);
        expect_frame(i + 1);
        write_frame(i + 2);
    }
    daemon_reload(&d);
    expect_frame(3);
    ck_assert(!daemon_said(&d, "left as it is"));
    end();
}
END_TEST

/* A daemon died before it had written the header, or just before the magic number. */
START_TEST(it_is_completed)
{
    static const unsigned char zeros[sizeof(struct shmview_stream_header)];
    begin(STREAM);
    for (int i = 0; i < 2; i++) {
        daemon_kill(&d);
        spoil(zeros, i ? sizeof zeros : sizeof(uint32_t));
        daemon_restart(&d);
        write_frame(i);
        expect_frame(i);
    }
    ck_assert(!daemon_said(&d, "left as it is"));
    end();
}
END_TEST

START_TEST(what_is_no_such_stream_is_left_alone)
{
    static const char bytes[] = "\0\0\0\0bytes of somebody";
    char found[sizeof bytes];
    begin(STREAM);
    write_frame(5);
    daemon_configure("{'segments':[\n{'name':'s','mode':'0600','stream':{'mode':'latest','slots':8,"
                     "'history':0,'stages':2,'writers':'many'," VIEWS "}}]}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "c.json:2 declares it otherwise: another stream"));
    expect_frame(5);
    daemon_kill(&d);
    spoil(bytes, sizeof bytes);
    daemon_restart(&d);
    ck_assert(daemon_said(&d, "c.json:2 declares it otherwise: a stream"));
    struct shmview_segment *s = client_attach(conn, "s", SHMVIEW_READ);
    memcpy(found, shmview_data(s), sizeof found);
    ck_assert_mem_eq(found, bytes, sizeof bytes);
    OK(shmview_detach(s));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_program_finds_it),
        SUITE_TEST(its_creation_is_that_of_a_stream),
        SUITE_TEST(it_keeps_its_frames),
        SUITE_TEST(it_is_completed),
        SUITE_TEST(what_is_no_such_stream_is_left_alone),
        SUITE_END,
    };
    return suite_main("configured_streams", tests);
}
