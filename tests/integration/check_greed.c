/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that want more than their share: connections, requests, buffers. They are refused or
 * wait; the others do not notice. */
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/person.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define KIB 1024

static struct daemon d;

static const struct person greedy = {.uid = 65533, .gid = 65533};
static const struct person calm = {.uid = 65534, .gid = 65534};

static char config[128];

/* Starts a daemon with these quotas, ' turned into ". */
static void begin(const char *quotas)
{
    snprintf(config, sizeof config, "%s/c.json", place_directory());
    FILE *f = fopen(config, "we");
    ck_assert_ptr_nonnull(f);
    fputs("{\"quotas\":", f);
    for (; *quotas; quotas++)
        fputc(*quotas == '\'' ? '"' : *quotas, f);
    fputs("}", f);
    fclose(f);
    daemon_start_configured(&d, config);
    person_open_door(&d);
}

static void end(void)
{
    daemon_stop(&d);
    unlink(config);
}

/* --- Connections --------------------------------------------------------- */

START_TEST(all_together_have_so_many_connections)
{
    struct shmview_connection *conn[3], *none = NULL;
    struct raw raw;
    begin("{'total':{'connections':3}}");
    for (int i = 0; i < 3; i++)
        conn[i] = client_connect(&d);
    for (int i = 0; i < 20; i++) /* whether the library has asked already or not */
        REFUSED(shmview_connect(d.socket, SHMVIEW_CONNECT_NO_START, &none), QUOTA,
                "1 connections asked for; all users together may have 3, of which 3 are used");
    raw_connect(&raw, d.socket);
    json_t *p = raw_receive_error(&raw, "QuotaExceeded", "connections");
    ck_assert_int_eq(raw_int(p, "asked"), 1);
    ck_assert_int_eq(raw_int(p, "used"), 3);
    ck_assert_int_eq(raw_int(p, "limit"), 3);
    json_decref(p);
    raw_expect_end(&raw);
    raw_close(&raw);
    for (int i = 0; i < 3; i++)
        OK(shmview_ping(conn[i]));
    OK(shmview_disconnect(conn[0]));
    AWAIT(shmview_connect(d.socket, SHMVIEW_CONNECT_NO_START, &conn[0]) == 0);
    for (int i = 0; i < 3; i++)
        OK(shmview_disconnect(conn[i]));
    ck_assert(daemon_said(&d, "is refused: 1 connections asked for"));
    end();
}
END_TEST

/* Whether the refusal names a limit that explains it. */
static bool is_explained(const char *text)
{
    unsigned long limit, used;
    const char *figures = strstr(text, "may have ");
    return figures
               ? sscanf(figures, "may have %lu, of which %lu", &limit, &used) == 2 && used == limit
               : strstr(text, "are kept for users that have fewer than that") != NULL;
}

/* Connects as often as it may, reports the number, and keeps the connections. */
static void take_all(struct child *me, void *arg)
{
    struct shmview_connection *c;
    int n = 0, r;
    (void)arg;
    while ((r = shmview_connect(d.socket, SHMVIEW_CONNECT_NO_START, &c)) == 0)
        n++;
    child_tell(me, r == -SHMVIEW_ERR_QUOTA && is_explained(shmview_error_text()) ? n : -1);
    child_pause(me);
}

START_TEST(each_user_has_so_many_connections)
{
    struct child child[2];
    struct shmview_connection *conn[5];
    if (!person_possible())
        return;
    begin("{'user':{'connections':3}}");
    person_start(&child[0], &greedy, take_all, NULL);
    child_hear(&child[0], 3);
    person_start(&child[1], &calm, take_all, NULL);
    child_hear(&child[1], 3);
    for (int i = 0; i < 5; i++) /* administrators may have more */
        conn[i] = client_connect(&d);
    for (int i = 0; i < 5; i++)
        OK(shmview_disconnect(conn[i]));
    child_kill(&child[0]);
    child_kill(&child[1]);
    end();
}
END_TEST

/* How many connections another process of the calm user gets. */
static int count_all(void)
{
    struct child child;
    person_start(&child, &calm, take_all, NULL);
    int n = child_hear_any(&child);
    child_kill(&child);
    return n;
}

/* Where there are few left, those who have many get none. */
START_TEST(the_last_connections_are_for_others)
{
    struct child child[2];
    if (!person_possible())
        return;
    daemon_start_limited(&d, 300);
    person_open_door(&d);
    person_start(&child[0], &greedy, take_all, NULL);
    int most = child_hear_any(&child[0]);
    ck_assert_int_gt(most, 30);
    person_start(&child[1], &calm, take_all, NULL);
    int some = child_hear_any(&child[1]);
    ck_assert_int_gt(some, 2);
    ck_assert_int_lt(some, most);
    struct shmview_connection *conn = client_connect(&d);
    OK(shmview_ping(conn));
    OK(shmview_disconnect(conn));
    child_kill(&child[0]);
    child_kill(&child[1]);
    AWAIT(count_all() > 0); /* once the daemon has noticed that they are gone */
    daemon_stop(&d);
}
END_TEST

/* The daemon has no descriptor left, not even to refuse a client: the client waits until there is
 * one. */
START_TEST(nobody_can_be_turned_away)
{
    struct rlimit none, before;
    struct raw first, late;
    daemon_start(&d);
    raw_connect(&first, d.socket);
    raw_do(&first, "Ping", NULL);
    ck_assert_int_eq(prlimit(d.pid, RLIMIT_NOFILE, NULL, &before), 0);
    none = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    ck_assert_int_eq(prlimit(d.pid, RLIMIT_NOFILE, &none, NULL), 0);
    raw_connect(&late, d.socket);
    raw_send_call(&late, "Ping", NULL);
    AWAIT(daemon_said(&d, "a client waits"));
    long cpu = process_cpu_ms(d.pid);
    int64_t until = await_now_ns() + 300000000;
    while (await_again(until))
        raw_do(&first, "Ping", NULL);
    ck_assert_int_lt(process_cpu_ms(d.pid) - cpu, 200);
    ck_assert_int_eq(prlimit(d.pid, RLIMIT_NOFILE, &before, NULL), 0);
    json_decref(raw_receive_success(&late));
    raw_close(&late);
    raw_close(&first);
    daemon_stop(&d);
}
END_TEST

/* --- Requests ------------------------------------------------------------ */

static void send_pings(struct raw *raw, unsigned n)
{
    static const char ping[] = "{\"method\": \"io.shmview.Ping\"}";
    char *text = malloc(n * sizeof ping);
    ck_assert_ptr_nonnull(text);
    for (unsigned i = 0; i < n; i++)
        memcpy(text + i * sizeof ping, ping, sizeof ping);
    ck_assert(raw_send(raw, text, n * sizeof ping));
    free(text);
}

/* The daemon answers later the requests that it does not read at once. None is lost, and two
 * clients take turns. */
START_TEST(requests_come_at_their_rate)
{
    struct raw one, two;
    begin("{'total':{'requests_per_second':50,'burst':5}}");
    raw_connect(&one, d.socket);
    raw_connect(&two, d.socket);
    int64_t start = await_now_ns();
    send_pings(&one, 40);
    send_pings(&two, 40);
    for (int i = 0; i < 40; i++) {
        json_decref(raw_receive_success(&one));
        json_decref(raw_receive_success(&two));
    }
    ck_assert_int_ge(await_now_ns() - start, 1400000000); /* 75 of them had to wait for 20 ms */
    raw_close(&one);
    raw_close(&two);
    end();
}
END_TEST

/* Creates the segment that arg names, and sends far more requests than its user may. */
static void ask_too_much(struct child *me, void *arg)
{
    struct raw raw;
    char text[100];
    raw_connect(&raw, d.socket);
    snprintf(text, sizeof text, "{'name':'%s','size':1,'access':'write','lifetime':'attached'}",
             (const char *)arg);
    raw_do(&raw, "Create", text);
    send_pings(&raw, 2000);
    for (int i = 0; i < 3; i++)
        json_decref(raw_receive_success(&raw));
    child_tell(me, 1);
    child_pause(me);
    close(raw.socket);
    child_tell(me, 2);
    child_pause(me);
}

START_TEST(others_do_not_wait_for_him)
{
    struct child child;
    if (!person_possible())
        return;
    begin("{'user':{'requests_per_second':1,'burst':4}}");
    char first[] = "first", second[] = "second";
    person_start(&child, &greedy, ask_too_much, first);
    child_hear(&child, 1);
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < 200; i++)
        OK(shmview_ping(conn));
    struct child other;
    person_start(&other, &calm, ask_too_much, second);
    child_hear(&other, 1); /* each user has a burst */
    child_kill(&other);
    child_kill(&child);
    OK(shmview_disconnect(conn));
    AWAIT(daemon_objects(&d) == 0);
    end();
}
END_TEST

/* With two thousand seconds of requests before it, its end is noticed. */
static void ends(void (*end_it)(struct child *))
{
    struct child child;
    begin("{'total':{'requests_per_second':1,'burst':4}}");
    char name[] = "his";
    child_start(&child, ask_too_much, name);
    child_hear(&child, 1);
    ck_assert_uint_eq(daemon_objects(&d), 3);
    end_it(&child);
    AWAIT(daemon_objects(&d) == 0);
    if (child.pid)
        child_kill(&child);
    end();
}

static void kill_it(struct child *child)
{
    child_kill(child);
    child->pid = 0;
}

static void let_it_hang_up(struct child *child)
{
    child_cue(child);
    child_hear(child, 2);
}

START_TEST(the_end_of_one_that_waits_is_noticed)
{
    ends(kill_it);
    ends(let_it_hang_up);
}
END_TEST

START_TEST(a_new_rate_holds_for_those_who_wait)
{
    struct raw raw;
    begin("{'total':{'requests_per_second':1,'burst':4}}");
    raw_connect(&raw, d.socket);
    send_pings(&raw, 2000);
    json_decref(raw_receive_success(&raw));
    FILE *f = fopen(config, "we");
    fputs("{}", f);
    fclose(f);
    daemon_reload(&d);
    for (int i = 1; i < 2000; i++)
        json_decref(raw_receive_success(&raw));
    raw_close(&raw);
    end();
}
END_TEST

/* --- Buffers ------------------------------------------------------------- */

#define HALVES 320

/* Whether the daemon has read all that was sent. */
static bool is_read(const struct raw *raw)
{
    int n = 0;
    ck_assert_int_eq(ioctl(raw->socket, SIOCOUTQ, &n), 0);
    return n == 0;
}

/* Of 320 requests of 150 KiB that are not whole the daemon holds 64 MiB at most; the rest are
 * refused. It costs none of those that ask for little. */
START_TEST(half_requests_are_bounded)
{
    static struct raw half[HALVES];
    const size_t n = 150 * KIB; /* in a buffer of 256 KiB */
    unsigned n_refused = 0;
    struct raw small;
    char *text = malloc(n);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', n);
    memcpy(text, "{\"method\": \"io.shmview.Ping\"}", 29);
    text[n - 1] = '\0';
    begin("{}");
    raw_connect(&small, d.socket);
    for (int i = 0; i < HALVES; i++) {
        raw_connect(&half[i], d.socket);
        raw_send(&half[i], text, n - 1);
        raw_do(&small, "Ping", NULL);
        AWAIT(is_read(&half[i]));
    }
    for (int i = 0; i < HALVES; i++) {
        raw_send(&half[i], text + n - 1, 1);
        char *reply = raw_receive(&half[i]);
        ck_assert_ptr_nonnull(reply);
        n_refused += strstr(reply, "QuotaExceeded") != NULL;
        free(reply);
        raw_close(&half[i]);
    }
    ck_assert_uint_ge(n_refused, HALVES - 256);
    ck_assert_uint_lt(n_refused, HALVES);
    for (int i = 0; i < HALVES; i++) { /* a complete request is no longer counted */
        ck_assert(raw_send(&small, text, n));
        json_decref(raw_receive_success(&small));
    }
    raw_close(&small);
    free(text);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(all_together_have_so_many_connections),
        SUITE_TEST(each_user_has_so_many_connections),
        SUITE_TEST(the_last_connections_are_for_others),
        SUITE_TEST(nobody_can_be_turned_away),
        SUITE_TEST(requests_come_at_their_rate),
        SUITE_TEST(others_do_not_wait_for_him),
        SUITE_TEST(the_end_of_one_that_waits_is_noticed),
        SUITE_TEST(a_new_rate_holds_for_those_who_wait),
        SUITE_TEST(half_requests_are_bounded),
        SUITE_END,
    };
    return suite_main("greed", tests);
}
