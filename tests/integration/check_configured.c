/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon with a configuration: it declares segments, reads the file again on SIGHUP, and reports
 * errors in it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;

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

#define VIEW(name, format) "{'name':'" name "','format':'" format "','shape':[2]}"
#define LAYOUT(name, view) "{'name':'" name "','views':[" view "]}"

/* --- Declared segments ------------------------------------------------------ */

START_TEST(they_exist_when_the_daemon_is_ready)
{
    struct shmview_view v;
    begin("{'segments':[{'name':'big','size':'32MiB'},{'name':'a','size':8,'layouts':[" LAYOUT(
        "float",
        VIEW("A", "f")) "," LAYOUT("int",
                                   VIEW("D", "i")) "]},"
                                                   "{'name':'plain','size':1,'lock':false}]}");
    struct shmview_segment *s = client_attach(conn, "a", SHMVIEW_WRITE);
    ck_assert_uint_eq(shmview_size(s), 8);
    OK(shmview_view_open(s, "float", "A", &v));
    OK(shmview_view_open(s, "int", "D", &v));
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    s = client_attach(conn, "big", SHMVIEW_READ);
    ck_assert_uint_eq(shmview_size(s), 32 << 20);
    OK(shmview_detach(s));
    s = client_attach(conn, "plain", SHMVIEW_WRITE);
    REFUSED(shmview_lock(s), NO_LOCK, "");
    OK(shmview_detach(s));
    end();
}
END_TEST

/* Fails the test unless List has exactly so many segments. */
static void assert_segments(unsigned n)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    json_t *reply = raw_call(&raw, "List", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(reply, "segments")), n);
    json_decref(reply);
    raw_close(&raw);
}

START_TEST(they_are_taken_over_with_their_bytes)
{
    begin("{'segments':[{'name':'a','size':100,'layouts':[" LAYOUT("l", VIEW("A", "f")) "]}]}");
    struct shmview_segment *s = client_attach(conn, "a", SHMVIEW_WRITE);
    strcpy(shmview_data(s), "bytes");
    OK(shmview_detach(s));
    for (int i = 0; i < 3; i++) {
        i == 1 ? daemon_leave(&d) : daemon_kill(&d);
        daemon_restart(&d);
        s = client_attach(conn, "a", SHMVIEW_READ);
        ck_assert_str_eq(shmview_data(s), "bytes");
        OK(shmview_detach(s));
        assert_segments(1);
    }
    ck_assert(!daemon_said(&d, "left as it is"));
    end();
}
END_TEST

START_TEST(attached_ones_go_and_come_back)
{
    begin("{'segments':[{'name':'a','size':1,'lifetime':'attached'}]}");
    OK(shmview_detach(client_attach(conn, "a", SHMVIEW_READ)));
    assert_segments(0);
    daemon_reload(&d);
    assert_segments(1);
    end();
}
END_TEST

START_TEST(one_that_does_not_fit_keeps_nobody_else_waiting)
{
    struct shmview_segment *s;
    begin("{'segments':[{'name':'far','size':'65536TiB'},{'name':'near','size':1}]}");
    ck_assert(daemon_said(&d, "segment 'far', declared at "));
    ck_assert(daemon_said(&d, "c.json:1, cannot be created: segment 'far' asks for "
                              "72057594037927936 bytes; "));
    OK(shmview_detach(client_attach(conn, "near", SHMVIEW_READ)));
    REFUSED(shmview_attach(conn, "far", SHMVIEW_READ, 0, &s), NOT_FOUND, "far");
    end();
}
END_TEST

START_TEST(a_signal_meanwhile)
{
    char text[600] = "{'segments':[{'name':'s0','size':1}";
    for (int i = 1; i < 9; i++)
        sprintf(text + strlen(text), ",{'name':'s%d','size':'16MiB'}", i);
    strcat(text, "]}");
    daemon_configure("{}");
    daemon_start_configured(&d, daemon_config_path());
    daemon_configure(text);
    /* the signal to end arrives while the daemon reads or makes them: nothing may stay */
    ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
    AWAIT(daemon_objects(&d) > 0);
    daemon_stop(&d);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

/* --- Reading it again ------------------------------------------------------- */

START_TEST(new_ones_are_made_old_ones_stay)
{
    begin("{'segments':[{'name':'a','size':1}]}");
    daemon_configure("{'segments':[{'name':'b','size':2}]}");
    daemon_reload(&d);
    OK(shmview_detach(client_attach(conn, "b", SHMVIEW_READ)));
    OK(shmview_detach(client_attach(conn, "a", SHMVIEW_READ)));
    daemon_kill(&d);
    daemon_restart(&d);
    assert_segments(2);
    OK(shmview_remove(conn, "a"));
    daemon_reload(&d);
    assert_segments(1);
    end();
}
END_TEST

START_TEST(one_that_exists_otherwise_is_left_alone)
{
    struct shmview_view v;
    begin("{'segments':[{'name':'a','size':8,'layouts':[" LAYOUT(
        "l", VIEW("A", "f")) "]},"
                             "{'name':'b','size':8}]}");
    daemon_configure("{'segments':[\n{'name':'a','size':9,'layouts':[" LAYOUT(
        "m", VIEW("A", "f")) "]},\n{'name':'b','size':8,'lifetime':'attached','lock':false,"
                             "'numa':0}]}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "segment 'a' is left as it is: "));
    ck_assert(daemon_said(&d, "c.json:2 declares it otherwise: 9 bytes, not 8"));
    ck_assert(daemon_said(&d, "c.json:3 declares it otherwise: without a lock"));
    ck_assert(daemon_said(&d, "c.json:3 declares it otherwise: lifetime attached, not manual"));
    ck_assert(daemon_said(&d, "c.json:3 declares it otherwise: another placement"));
    struct shmview_segment *s = client_attach(conn, "a", SHMVIEW_READ);
    ck_assert_uint_eq(shmview_size(s), 8);
    REFUSED(shmview_view_open(s, "m", "A", &v), NO_LAYOUT, "m");
    OK(shmview_detach(s));
    /* of the same size: layouts that it lacks are added, others stay what they are */
    daemon_configure("{'segments':[{'name':'a','size':8,'layouts':[" LAYOUT(
        "l", VIEW("A", "i")) "," LAYOUT("m", VIEW("A", "i")) "]}]}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "c.json:1 declares it otherwise: layout 'l'"));
    s = client_attach(conn, "a", SHMVIEW_READ);
    OK(shmview_view_open(s, "l", "A", &v));
    ck_assert_uint_eq(v.dtype, SHMVIEW_FLOAT32);
    OK(shmview_view_open(s, "m", "A", &v));
    ck_assert_uint_eq(v.dtype, SHMVIEW_INT32);
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(a_broken_one_changes_nothing)
{
    struct shmview_segment *s;
    begin("{'segments':[{'name':'a','size':1}]}");
    daemon_configure("{'segments':[{'name':'b','size':1}],\n'log_level':'loud',\n'more':1}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "c.json:2: log_level must be \"error\", \"warning\" or \"info\""));
    ck_assert(daemon_said(&d, "c.json:3: more is not a known key"));
    ck_assert(daemon_said(&d, "was not replaced: the one in force stays"));
    REFUSED(shmview_attach(conn, "b", SHMVIEW_READ, 0, &s), NOT_FOUND, "b");
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "c.json: No such file or directory"));
    assert_segments(1);
    end();
}
END_TEST

START_TEST(many_times_at_once)
{
    begin("{'segments':[{'name':'a','size':1}]}");
    struct shmview_segment *s = client_create(conn, "mine", 10);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
        OK(shmview_ping(conn));
    }
    daemon_configure("{'segments':[{'name':'last','size':1}]}");
    daemon_reload(&d);
    daemon_reload(&d); /* the one before may have begun too early */
    OK(shmview_detach(client_attach(conn, "last", SHMVIEW_READ)));
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(what_is_logged)
{
    begin("{'segments':[{'name':'a','size':8}]}");
    daemon_configure(
        "{'segments':[{'name':'a','size':9},{'name':'b','size':1}],'log_level':'error'}");
    ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
    AWAIT(daemon_has_data(&d, "b")); /* 'a' was looked at before */
    ck_assert(!daemon_said(&d, "left as it is"));
    daemon_configure("{'segments':[{'name':'a','size':9}],'log_level':'warning'}");
    ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
    AWAIT(daemon_said(&d, "declares it otherwise: 9 bytes, not 8"));
    daemon_configure("{'nothing':0}");
    daemon_reload(&d); /* errors are logged at any level */
    ck_assert(!daemon_said(&d, "in force\n"));
    end();
}
END_TEST

START_TEST(without_a_file)
{
    daemon_start(&d);
    conn = client_connect(&d);
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "the configuration was read again"));
    end();
}
END_TEST

/* --- Saying what is wrong --------------------------------------------------- */

static void expect_run(const char *options, int status, const char *wanted)
{
    char text[4096], arguments[400];
    snprintf(arguments, sizeof arguments, "--config %s %s", daemon_config_path(), options);
    int got = daemon_run(arguments, text, sizeof text);
    ck_assert_msg(got == status, "%s: status %d, \"%s\"", arguments, got, text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(check_config)
{
    char lines[1000];
    daemon_configure("{}");
    expect_run("--check-config", 0, "");
    daemon_configure("{'quotas':{'user':{'bytes':'50%'}}}");
    expect_run("--check-config", 0, "");
    daemon_configure("{\n'a':1,\n'b':2}");
    snprintf(lines, sizeof lines, "%s:2: a is not a known key\n%s:3: b is not a known key\n",
             daemon_config_path(), daemon_config_path());
    expect_run("--check-config", 1, lines);
    daemon_configure("{\n\n!}");
    snprintf(lines, sizeof lines, "%s:3: string or '}' expected near '!'\n", daemon_config_path());
    expect_run("--check-config", 1, lines);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

START_TEST(a_broken_one_at_the_start)
{
    char lines[1000], options[200];
    daemon_configure("{\n'a':1}");
    snprintf(lines, sizeof lines, "shmviewd: %s:2: a is not a known key\n", daemon_config_path());
    snprintf(options, sizeof options, "--socket %s/none", place_directory());
    expect_run(options, 2, lines);
    ck_assert_int_ne(access(options + strlen("--socket "), F_OK), 0);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

/* The service is restarted then. */
START_TEST(one_that_cannot_be_read_at_the_start)
{
    char lines[1000], options[200];
    ck_assert_int_eq(symlink("/proc/self/mem", daemon_config_path()), 0);
    snprintf(lines, sizeof lines, "shmviewd: %s: %s\n", daemon_config_path(), strerror(EIO));
    snprintf(options, sizeof options, "--socket %s/none", place_directory());
    expect_run(options, 1, lines);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

START_TEST(which_file)
{
    char text[4096];
    daemon_configure("{\n'a':1}");
    setenv("SHMVIEW_CONFIG", daemon_config_path(), 1);
    ck_assert_int_eq(daemon_run("--check-config", text, sizeof text), 1);
    ck_assert_ptr_nonnull(strstr(text, "c.json:2: a is not a known key\n"));
    ck_assert_int_eq(daemon_run("--config /dev/null --check-config", text, sizeof text), 0);
    ck_assert_int_eq(daemon_run("--session --config c.json", text, sizeof text), 2);
    ck_assert_ptr_nonnull(strstr(text, "absolute"));
    ck_assert_int_eq(daemon_run("--config ''", text, sizeof text), 2);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(they_exist_when_the_daemon_is_ready),
        SUITE_TEST(they_are_taken_over_with_their_bytes),
        SUITE_TEST(attached_ones_go_and_come_back),
        SUITE_TEST(one_that_does_not_fit_keeps_nobody_else_waiting),
        SUITE_TEST(a_signal_meanwhile),
        SUITE_TEST(new_ones_are_made_old_ones_stay),
        SUITE_TEST(one_that_exists_otherwise_is_left_alone),
        SUITE_TEST(a_broken_one_changes_nothing),
        SUITE_TEST(many_times_at_once),
        SUITE_TEST(what_is_logged),
        SUITE_TEST(without_a_file),
        SUITE_TEST(check_config),
        SUITE_TEST(a_broken_one_at_the_start),
        SUITE_TEST(one_that_cannot_be_read_at_the_start),
        SUITE_TEST(which_file),
        SUITE_END,
    };
    return suite_main("configured", tests);
}
