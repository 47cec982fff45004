/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that break the protocol, stall it, or ask for too much. Each is dealt
 * with by itself: a well-behaved client goes on through all of it. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/await.h"
#include "support/bystander.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define MOST (256 * 1024) /* bytes of a request */

static struct daemon d;
static struct bystander bystander;

static void begin(void)
{
    daemon_start(&d);
    bystander_start(&bystander, &d);
}

static void end(void)
{
    bystander_await_rounds(&bystander);
    bystander_stop(&bystander);
    AWAIT(daemon_objects(&d) == 0);
    daemon_stop(&d);
}

/* --- Violations: the connection ends, without a word --------------------- */

static void expect_violation(const void *bytes, size_t n)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Ping", NULL);
    raw_send(&raw, bytes, n);
    raw_expect_end(&raw);
    raw_close(&raw);
}

START_TEST(what_is_no_call_ends_the_connection)
{
    static const char *const texts[] = {
        "",
        " ",
        "\x01\xff\xfe garbage",
        "GET / HTTP/1.1\r\n\r\n",
        "{",
        "}",
        "null",
        "17",
        "\"io.shmview.Ping\"",
        "[]",
        "{}",
        "{\"method\": 1}",
        "{\"method\": null}",
        "{\"parameters\": {}}",
        "{\"method\": \"io.shmview.Ping\", \"parameters\": []}",
        "{\"method\": \"io.shmview.Ping\", \"parameters\": \"\"}",
        "{\"method\": \"io.shmview.Ping\", \"oneway\": 1}",
        "{\"method\": \"io.shmview.Ping\", \"more\": \"yes\"}",
        "{\"method\": \"io.shmview.Ping\", \"upgrade\": {}}",
        "{\"method\": \"io.shmview.Ping\"} {\"method\": \"io.shmview.Ping\"}",
        "{\"method\": \"io.shmview.Ping\",}",
        "{method: \"io.shmview.Ping\"}",
        "{\"method\": \"io.shmview.Ping\", \"method\": \"io.shmview.List\"}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"a\", \"name\": \"b\","
        " \"size\": 1}}",
        "{\"method\": \"io.shmview.Ping\\u0000\"}",
        "{\"method\": \"io.shmview.Ping\\ud800\"}",
        "{\"method\": \"io.shmview.Ping\xff\"}",
        "{\"method\": \"io.shmview.Ping\xc0\x80\"}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"\xc3\", \"size\": 1}}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"a\", \"size\": 1e999}}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"a\", \"size\":"
        " 1234567890123456789012345678901234567890}}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"a\", \"size\": NaN}}",
        "{\"method\": \"io.shmview.Create\", \"parameters\": {\"name\": \"a\", \"size\": 0x10}}",
    };
    begin();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_violation(texts[i], strlen(texts[i]) + 1);
    AWAIT(daemon_said(&d, "broke the protocol"));
    end();
}
END_TEST

START_TEST(brackets_without_end_are_refused)
{
    char *brackets = malloc(2 * MOST);
    ck_assert_ptr_nonnull(brackets);
    memset(brackets, '[', 2 * MOST);
    begin();
    expect_violation(brackets, 2 * MOST); /* too long, no NUL */
    brackets[MOST - 1] = '\0';
    expect_violation(brackets, MOST); /* as long as may be, far too deep */
    memset(brackets, '{', 5);
    expect_violation(brackets, MOST);
    end();
    free(brackets);
}
END_TEST

/* Whether the daemon has read all that was sent. */
static bool is_read(const struct raw *raw)
{
    int unread;
    ck_assert_int_eq(ioctl(raw->socket, SIOCOUTQ, &unread), 0);
    return unread == 0;
}

START_TEST(a_request_has_at_most_256_KiB)
{
    static const char head[] = "{\"method\":\"io.shmview.Ping\",\"parameters\":{\"x\":\"";
    struct raw raw;
    char *text = malloc(MOST);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', MOST);
    memcpy(text, head, sizeof head - 1);
    begin();
    memcpy(text + MOST - 4, "\"}}", 4); /* with its NUL as long as may be */
    raw_connect(&raw, d.socket);
    ck_assert(raw_send(&raw, text, MOST));
    json_decref(raw_receive_error(&raw, "org.varlink.service.InvalidParameter", "x"));
    raw_do(&raw, "Ping", NULL);
    memset(text + MOST - 4, 'x', 4);
    ck_assert(raw_send(&raw, text, MOST));
    AWAIT(is_read(&raw));
    raw_send(&raw, "\"}}", 4); /* too late */
    raw_expect_end(&raw);
    raw_close(&raw);
    AWAIT(daemon_said(&d, "more than 256 KiB"));
    end();
    free(text);
}
END_TEST

/* Reading all of them would keep the other clients waiting for a tenth of a second. */
START_TEST(the_values_of_a_request_are_limited)
{
    static const char head[] = "{\"method\":\"io.shmview.Ping\",\"parameters\":{\"x\":[{}";
    char *text = malloc(MOST);
    ck_assert_ptr_nonnull(text);
    size_t n = sizeof head - 1;
    memcpy(text, head, n);
    for (; n + 6 < MOST; n += 3)
        memcpy(text + n, ",{}", 3);
    memcpy(text + n, "]}}", 4);
    begin();
    expect_violation(text, n + 4);
    AWAIT(daemon_said(&d, "too many values"));
    end();
    free(text);
}
END_TEST

/* Parameters that are deep, but not too deep to be read, are refused like any unknown member. */
START_TEST(deep_parameters_are_refused)
{
    char text[200] = "{'x': ";
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    memset(text + 6, '[', 60);
    memset(text + 66, ']', 60);
    strcpy(text + 126, "}");
    raw_refused(&raw, "Ping", text, "org.varlink.service.InvalidParameter", "x");
    raw_do(&raw, "Ping", NULL);
    raw_close(&raw);
    end();
}
END_TEST

/* --- Stalling ------------------------------------------------------------ */

START_TEST(silence_disturbs_nobody)
{
    static const char half[] = "{\"method\": \"io.shmvi";
    struct raw silent, slow, gone;
    begin();
    raw_connect(&silent, d.socket);
    raw_connect(&slow, d.socket);
    raw_connect(&gone, d.socket);
    ck_assert(raw_send(&slow, half, sizeof half - 1));
    ck_assert(raw_send(&gone, half, sizeof half - 1));
    raw_close(&gone);
    bystander_await_rounds(&bystander);
    long before = process_cpu_ms(d.pid);
    ck_assert(raw_send(&slow, "ew.Ping\"}", 10)); /* the other half, at last */
    json_decref(raw_receive_success(&slow));
    raw_do(&silent, "Ping", NULL);
    ck_assert_int_ge(process_cpu_ms(d.pid), before);
    raw_close(&slow);
    raw_close(&silent);
    end();
}
END_TEST

START_TEST(a_request_may_come_byte_by_byte)
{
    static const char ping[] = "{\"method\": \"io.shmview.Ping\"}";
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    for (size_t i = 0; i < sizeof ping; i++)
        ck_assert(raw_send(&raw, ping + i, 1));
    json_decref(raw_receive_success(&raw));
    raw_close(&raw);
    end();
}
END_TEST

/* Sends without reading until nothing more fits. */
static size_t send_until_full(const struct raw *raw, const char *text, size_t n)
{
    size_t sent = 0;
    int64_t still_since = await_now_ns();
    while (await_now_ns() - still_since < 200000000) {
        ssize_t r = send(raw->socket, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            await_again(INT64_MAX);
            continue;
        }
        ck_assert_int_eq(r, (ssize_t)n);
        sent++;
        still_since = await_now_ns();
    }
    return sent;
}

START_TEST(a_client_that_never_reads_is_not_read)
{
    static const char list[] = "{\"method\": \"io.shmview.List\"}";
    struct raw raw;
    begin();
    struct raw maker;
    raw_connect(&maker, d.socket);
    for (int i = 0; i < 50; i++) {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "{'name': 'listed-%d', 'size': 1}", i);
        raw_do(&maker, "Create", parameters);
    }
    raw_connect(&raw, d.socket);
    size_t n = send_until_full(&raw, list, sizeof list);
    ck_assert_uint_gt(n, 10);
    bystander_await_rounds(&bystander);
    for (size_t i = 0; i < n; i++) { /* nothing was lost */
        json_t *reply = raw_receive_success(&raw);
        ck_assert_uint_ge(json_array_size(json_object_get(reply, "segments")), 50);
        json_decref(reply);
    }
    raw_do(&raw, "Ping", NULL);
    send_until_full(&raw, list, sizeof list);
    raw_close(&raw); /* leaves with a full socket */
    for (int i = 0; i < 50; i++) {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "{'name': 'listed-%d'}", i);
        raw_do(&maker, "Remove", parameters);
    }
    raw_close(&maker);
    end();
}
END_TEST

START_TEST(nothing_makes_the_daemon_spin)
{
    static const char half[] = "{\"method\"";
    static const char list[] = "{\"method\": \"io.shmview.List\"}";
    struct raw silent, slow, shut, full;
    daemon_start(&d);
    raw_connect(&silent, d.socket);
    raw_connect(&slow, d.socket);
    raw_connect(&shut, d.socket);
    raw_connect(&full, d.socket);
    raw_send(&slow, half, sizeof half - 1);
    send_until_full(&full, list, sizeof list);
    ck_assert_int_eq(shutdown(full.socket, SHUT_WR), 0);
    ck_assert_int_eq(shutdown(shut.socket, SHUT_RD), 0);
    long before = process_cpu_ms(d.pid);
    int64_t until = await_now_ns() + 300000000;
    while (await_again(until))
        continue;
    ck_assert_int_lt(process_cpu_ms(d.pid) - before, 100);
    raw_close(&silent);
    raw_close(&slow);
    raw_close(&shut);
    raw_close(&full);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(what_is_no_call_ends_the_connection),
        SUITE_TEST(brackets_without_end_are_refused),
        SUITE_TEST(a_request_has_at_most_256_KiB),
        SUITE_TEST(the_values_of_a_request_are_limited),
        SUITE_TEST(deep_parameters_are_refused),
        SUITE_TEST(silence_disturbs_nobody),
        SUITE_TEST(a_request_may_come_byte_by_byte),
        SUITE_TEST(a_client_that_never_reads_is_not_read),
        SUITE_TEST(nothing_makes_the_daemon_spin),
        SUITE_END,
    };
    return suite_main("hostile", tests);
}
