/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed requests. A refused one gets an error with its cause, and the connection lives. The
 * daemon honours order, oneway, more and half-closed sockets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define INVALID "org.varlink.service.InvalidParameter"

static struct daemon d;
static struct raw raw;

static void begin(void)
{
    daemon_start(&d);
    raw_connect(&raw, d.socket);
}

static void end(void)
{
    raw_do(&raw, "Ping", NULL); /* it lives */
    raw_close(&raw);
    AWAIT(daemon_objects(&d) == 0);
    daemon_stop(&d);
}

/* --- Parameters ---------------------------------------------------------- */

struct refused {
    const char *method;
    const char *parameters;
    const char *member; /* "parameter" of the error */
    const char *part;   /* of its reason */
};

static const struct refused refused[] = {
    {"Ping", "{'x': 1}", "x", "not a known member"},
    {"List", "{'name': 'a'}", "name", "not a known member"},
    {"org.varlink.service.GetInfo", "{'x': 1}", "x", "not a known member"},
    {"org.varlink.service.GetInterfaceDescription", "{}", "interface", "missing"},
    {"org.varlink.service.GetInterfaceDescription", "{'interface': 1}", "interface", "a string"},

    {"Create", NULL, "name", "missing"},
    {"Create", "{'name': 'n'}", "size", "missing"},
    {"Create", "{'name': null, 'size': 1}", "name", "must be a string"},
    {"Create", "{'name': 1, 'size': 1}", "name", "must be a string"},
    {"Create", "{'name': ['n'], 'size': 1}", "name", "must be a string"},
    {"Create", "{'name': '', 'size': 1}", "name", "1 to 128"},
    {"Create", "{'name': '.n', 'size': 1}", "name", "1 to 128"},
    {"Create", "{'name': 'a/b', 'size': 1}", "name", "1 to 128"},
    {"Create", "{'name': '../../etc/x', 'size': 1}", "name", "1 to 128"},
    {"Create", "{'name': '\\u00fc', 'size': 1}", "name", "1 to 128"},
    {"Create", "{'name': 'n', 'size': '1'}", "size", "must be an integer"},
    {"Create", "{'name': 'n', 'size': 1.0}", "size", "must be an integer"},
    {"Create", "{'name': 'n', 'size': 1e3}", "size", "must be an integer"},
    {"Create", "{'name': 'n', 'size': true}", "size", "must be an integer"},
    {"Create", "{'name': 'n', 'size': 0}", "size", "is 0, must be 1 to"},
    {"Create", "{'name': 'n', 'size': -1}", "size", "is -1, must be 1 to"},
    {"Create", "{'name': 'n', 'size': -9223372036854775808}", "size", "must be 1 to"},
    {"Create", "{'name': 'n', 'size': 9223372036854775807}", "size", "must be 1 to"},
    {"Create", "{'name': 'n', 'size': 1, 'access': 'all'}", "access", "\"peek\", \"read\" or"},
    {"Create", "{'name': 'n', 'size': 1, 'access': 3}", "access", "\"write\""},
    {"Create", "{'name': 'n', 'size': 1, 'access': ''}", "access", "\"write\""},
    {"Create", "{'name': 'n', 'size': 1, 'lifetime': 'x'}", "lifetime", "\"creator\""},
    {"Create", "{'name': 'n', 'size': 1, 'lifetime': {}}", "lifetime", "\"manual\""},
    {"Create", "{'name': 'n', 'size': 1, 'lock': 'yes'}", "lock", "true or false"},
    {"Create", "{'name': 'n', 'size': 1, 'lock': 1}", "lock", "true or false"},
    {"Create", "{'name': 'n', 'size': 1, 'more': 1}", "more", "not a known member"},

    {"Attach", NULL, "name", "missing"},
    {"Attach", "{'name': 'seg'}", "access", "missing"},
    {"Attach", "{'name': 'seg', 'access': null}", "access", "\"peek\""},
    {"Attach", "{'name': 'seg', 'access': 'READ'}", "access", "\"peek\""},
    {"Attach", "{'name': 'seg', 'access': 'read', 'id': '1'}", "id", "must be an integer"},
    {"Attach", "{'name': 'seg', 'access': 'read', 'id': -2}", "id", "is -2"},
    {"Detach", NULL, "attachment", "missing"},
    {"Detach", "{'attachment': '1'}", "attachment", "must be an integer"},
    {"Detach", "{'attachment': -1}", "attachment", "is -1"},
    {"Remove", "{'name': {}}", "name", "must be a string"},
    {"Entrust", "{'name': 'seg'}", "pid", "missing"},
    {"Entrust", "{'name': 'seg', 'pid': '1'}", "pid", "must be an integer"},
    {"Entrust", "{'name': 'seg', 'pid': 0}", "pid", "is 0"},
    {"Describe", "{}", "name", "missing"},
    {"Describe", "{'name': 'seg', 'ide': 1}", "ide", "not a known member"},

    {"DefineLayout", "{'name': 'seg'}", "layout", "missing"},
    {"DefineLayout", "{'name': 'seg', 'layout': []}", "layout", "must be an object"},
    {"DefineLayout", "{'name': 'seg', 'layout': {}}", "layout.name", "missing"},
    {"DefineLayout", "{'name': 'seg', 'layout': {'name': 'l'}}", "layout.views", "missing"},
    {"DefineLayout", "{'name': 'seg', 'layout': {'name': 'l', 'views': {}}}", "layout.views",
     "an array"},
    {"DefineLayout", "{'name': 'seg', 'layout': {'name': 'l', 'views': [1]}}", "layout.views[0]",
     "must be an object"},
    {"DefineLayout", "{'name': 'seg', 'layout': {'name': 'l', 'views': [null]}}", "layout.views[0]",
     "must be an object"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1]}, {'name': 'w', 'format': 'b'}]}}",
     "layout.views[1].shape", "missing"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': 1}]}}",
     "layout.views[0].shape", "an array of integers"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1, '1']}]}}",
     "layout.views[0].shape", "element 1 must be an integer"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1], 'strides': [1.5]}]}}",
     "layout.views[0].strides", "an integer"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1], 'offset': -1}]}}",
     "layout.views[0].offset", "is -1"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1], 'readonly': 0}]}}",
     "layout.views[0].readonly", "true or false"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1], 'x': 0}]}}",
     "layout.views[0].x", "not a known member"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 7, 'shape': [1]}]}}",
     "layout.views[0].format", "must be a string"},
    {"DefineLayout",
     "{'name': 'seg', 'layout': {'name': 'l', 'views': [{'name': 'v', 'format':"
     " 'b', 'shape': [1], 'strides': []}]}}",
     "layout.views[0].strides", "0 integers for 1 dimensions"},
};

START_TEST(wrong_parameters_are_named)
{
    begin();
    raw_do(&raw, "Create", "{'name': 'seg', 'size': 100, 'access': 'write'}");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        raw_send_call(&raw, refused[i].method, refused[i].parameters);
        json_t *p = raw_receive_error(&raw, INVALID, refused[i].part);
        const char *member = json_string_value(json_object_get(p, "parameter"));
        ck_assert_msg(member && strcmp(member, refused[i].member) == 0, "%s %s: '%s', not '%s'",
                      refused[i].method, refused[i].parameters, member, refused[i].member);
        json_decref(p);
    }
    json_t *list = raw_call(&raw, "List", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(list, "segments")), 1);
    json_decref(list);
    end();
}
END_TEST

START_TEST(optional_members_may_be_null)
{
    begin();
    json_t *p = raw_call(&raw, "Create",
                         "{'name': 'n', 'size': 1, 'access': null, 'lifetime': null,"
                         " 'lock': null}");
    ck_assert_ptr_null(json_object_get(p, "attachment"));
    ck_assert(json_is_true(json_object_get(json_object_get(p, "segment"), "lock")));
    json_decref(p);
    json_decref(raw_call(&raw, "Attach", "{'name': 'n', 'access': 'peek', 'id': null}"));
    raw_do(&raw, "Remove", "{'name': 'n'}");
    end();
}
END_TEST

START_TEST(unknown_methods_and_interfaces_are_named)
{
    static const struct {
        const char *method, *error, *part;
    } unknown[] = {
        {"io.shmview.Fly", "MethodNotFound", "io.shmview.Fly"},
        {"io.shmview.", "MethodNotFound", "io.shmview."},
        {"io.shmview.ping", "MethodNotFound", "io.shmview.ping"},
        {"org.varlink.service.Ping", "MethodNotFound", "org.varlink.service.Ping"},
        {"org.example.more.Ping", "InterfaceNotFound", "org.example.more"},
        {"io.shmview.x.Ping", "InterfaceNotFound", "io.shmview.x"},
        {".", "InterfaceNotFound", ""},
    };
    char error[64];
    begin();
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        snprintf(error, sizeof error, "org.varlink.service.%s", unknown[i].error);
        raw_refused(&raw, unknown[i].method, NULL, error, unknown[i].part);
    }
    raw_send_text(&raw, "{'method': 'Ping'}");
    json_decref(raw_receive_error(&raw, "org.varlink.service.InterfaceNotFound", ""));
    raw_refused(&raw, "org.varlink.service.GetInterfaceDescription", "{'interface': 'a.b'}",
                "org.varlink.service.InterfaceNotFound", "a.b");
    end();
}
END_TEST

START_TEST(very_long_names_are_refused)
{
    char parameters[700], method[400];
    begin();
    snprintf(parameters, sizeof parameters, "{'name': '%0600d', 'size': 1}", 1);
    raw_refused(&raw, "Create", parameters, INVALID, "has 600 bytes, the limit is 128");
    snprintf(method, sizeof method, "io.shmview.%0220d", 1);
    raw_refused(&raw, method, NULL, "org.varlink.service.MethodNotFound", "0001");
    end();
}
END_TEST

/* --- Kinds of calls ------------------------------------------------------ */

START_TEST(oneway_is_done_and_not_answered)
{
    begin();
    raw_send_text(&raw, "{'method': 'io.shmview.Create', 'oneway': true,"
                        " 'parameters': {'name': 'a', 'size': 1, 'access': 'write'}}");
    raw_send_text(&raw, "{'method': 'io.shmview.Remove', 'oneway': true,"
                        " 'parameters': {'name': 'none'}}");
    raw_send_text(&raw, "{'method': 'io.shmview.Ping', 'oneway': true}");
    json_t *p = raw_call(&raw, "Describe", "{'name': 'a'}"); /* the first reply to come */
    ck_assert_int_eq(raw_int(p, "segment.attachments"), 1);
    ck_assert_uint_eq(raw.n_fds, 0);
    json_decref(p);
    end();
}
END_TEST

START_TEST(more_is_answered_once)
{
    begin();
    raw_send_text(&raw, "{'method': 'io.shmview.List', 'more': true}");
    char *text = raw_receive(&raw);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_null(strstr(text, "continues"));
    free(text);
    end();
}
END_TEST

START_TEST(upgrade_is_refused)
{
    begin();
    raw_send_text(&raw, "{'method': 'io.shmview.Ping', 'upgrade': true}");
    json_decref(
        raw_receive_error(&raw, "org.varlink.service.MethodNotImplemented", "io.shmview.Ping"));
    raw_send_text(&raw, "{'method': 'io.shmview.Ping', 'more': false, 'oneway': false,"
                        " 'upgrade': false, 'extension': 1}");
    json_decref(raw_receive_success(&raw));
    end();
}
END_TEST

/* --- Order --------------------------------------------------------------- */

/* An attachment of this number does not exist: the error names it, and so tells
 * the order. */
#define FIRST_NUMBER 1000

/* n requests that tell their number, each of about pad bytes, in one text. */
static char *numbered(unsigned n, unsigned pad, size_t *ret_bytes)
{
    char *text = malloc((size_t)n * (pad + 100));
    ck_assert_ptr_nonnull(text);
    char *p = text;
    for (unsigned i = 0; i < n; i++)
        p += sprintf(p, "{\"method\":\"io.shmview.Detach\",%*s\"parameters\":{\"attachment\":%u}}",
                     (int)pad, "", FIRST_NUMBER + i) +
             1;
    *ret_bytes = (size_t)(p - text);
    return text;
}

static void expect_numbered(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        json_t *p = raw_receive_error(&raw, "NotAttached", "no attachment");
        ck_assert_int_eq(raw_int(p, "attachment"), FIRST_NUMBER + i);
        json_decref(p);
    }
}

START_TEST(pipelined_requests_are_answered_in_order)
{
    size_t bytes;
    char *text = numbered(200, 0, &bytes);
    begin();
    ck_assert(raw_send(&raw, text, bytes));
    expect_numbered(200);
    free(text);
    end();
}
END_TEST

START_TEST(requests_behind_a_creation_wait_for_it)
{
    size_t bytes;
    char *text = numbered(200, 0, &bytes);
    begin();
    raw_send_call(&raw, "Create", "{'name': 'a', 'size': 100000000, 'access': 'write'}");
    ck_assert(raw_send(&raw, text, bytes));
    json_decref(raw_receive_success(&raw));
    expect_numbered(200);
    free(text);
    end();
}
END_TEST

/* No request is longer than the limit; all of them together are. */
START_TEST(a_long_pipeline_is_no_long_request)
{
    static const char ping[] = "{\"method\":\"io.shmview.Ping\",\"oneway\":true}";
    const unsigned n = 100000;
    char *text = malloc(n * sizeof ping);
    ck_assert_ptr_nonnull(text);
    for (unsigned i = 0; i < n; i++)
        memcpy(text + i * sizeof ping, ping, sizeof ping);
    begin();
    ck_assert(raw_send(&raw, text, n * sizeof ping));
    free(text);
    end();
}
END_TEST

/* --- A socket that is shut for sending ----------------------------------- */

START_TEST(half_closed_still_gets_its_reply)
{
    begin();
    raw_send_call(&raw, "List", NULL);
    shutdown(raw.socket, SHUT_WR);
    json_decref(raw_receive_success(&raw));
    raw_expect_end(&raw);
    raw_close(&raw);
    raw_connect(&raw, d.socket);
    end();
}
END_TEST

START_TEST(half_closed_gets_the_reply_of_a_creation)
{
    begin();
    raw_send_call(&raw, "Create", "{'name': 'a', 'size': 100000000, 'access': 'write'}");
    shutdown(raw.socket, SHUT_WR);
    json_t *p = raw_receive_success(&raw);
    ck_assert_uint_eq(raw.n_fds, 3);
    json_decref(p);
    raw_expect_end(&raw);
    raw_close(&raw);
    raw_connect(&raw, d.socket);
    end();
}
END_TEST

START_TEST(half_closed_gets_all_its_replies)
{
    const unsigned n = 200;
    size_t bytes;
    char *text = numbered(n, 100, &bytes);
    begin();
    raw_send_call(&raw, "Create", "{'name': 'a', 'size': 100000000, 'access': 'write'}");
    ck_assert(raw_send(&raw, text, bytes));
    shutdown(raw.socket, SHUT_WR);
    json_decref(raw_receive_success(&raw));
    expect_numbered(n);
    raw_expect_end(&raw);
    raw_close(&raw);
    free(text);
    raw_connect(&raw, d.socket);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(wrong_parameters_are_named),
        SUITE_TEST(optional_members_may_be_null),
        SUITE_TEST(unknown_methods_and_interfaces_are_named),
        SUITE_TEST(very_long_names_are_refused),
        SUITE_TEST(oneway_is_done_and_not_answered),
        SUITE_TEST(more_is_answered_once),
        SUITE_TEST(upgrade_is_refused),
        SUITE_TEST(pipelined_requests_are_answered_in_order),
        SUITE_TEST(requests_behind_a_creation_wait_for_it),
        SUITE_TEST(a_long_pipeline_is_no_long_request),
        SUITE_TEST(half_closed_still_gets_its_reply),
        SUITE_TEST(half_closed_gets_the_reply_of_a_creation),
        SUITE_TEST(half_closed_gets_all_its_replies),
        SUITE_END,
    };
    return suite_main("requests", tests);
}
