/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that has no descriptors left logs this, serves the clients that are connected, and
 * accepts others when some are free again. Clients that read no reply take no descriptors of
 * others. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;

#define CLIENTS_MAX 400

static struct raw crowd[CLIENTS_MAX];

static void leave(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        raw_close(&crowd[i]);
}

/* Connects until the daemon turns one away. Returns how many it took. */
static unsigned connect_until_refused(void)
{
    for (unsigned n = 0; n < CLIENTS_MAX; n++) {
        raw_connect(&crowd[n], d.socket);
        raw_send_call(&crowd[n], "Ping", NULL);
        char *reply = raw_receive(&crowd[n]);
        bool refused = !reply || strstr(reply, "QuotaExceeded");
        free(reply);
        if (refused) {
            raw_close(&crowd[n]);
            return n;
        }
    }
    ck_abort_msg("the daemon took %d clients", CLIENTS_MAX);
    return 0;
}

/* One client takes two descriptors: it may fail for want of the first or the second. */
static bool has_turned_away(void)
{
    return daemon_said(&d, "turned away") || daemon_said(&d, "is refused: 1 connections") ||
           daemon_said(&d, "Too many open files");
}

static void exhaust_and_recover(unsigned limit)
{
    struct raw first;
    daemon_start_limited(&d, limit);
    raw_connect(&first, d.socket);
    raw_do(&first, "Ping", NULL);
    for (int round = 0; round < 2; round++) {
        unsigned n = connect_until_refused();
        ck_assert_uint_gt(n, 5);
        AWAIT(has_turned_away());
        long before = process_cpu_ms(d.pid);
        int64_t until = await_now_ns() + 150000000;
        while (await_again(until))
            continue;
        ck_assert_int_lt(process_cpu_ms(d.pid) - before, 75);
        raw_do(&first, "Ping", NULL); /* connected clients are served */
        raw_do(&crowd[0], "List", NULL);
        leave(n);
        /* it needs a moment to see that they are gone */
        struct shmview_connection *conn = NULL;
        AWAIT(shmview_connect(d.socket, 0, &conn) == 0);
        struct shmview_segment *seg = NULL;
        AWAIT(shmview_create(conn, "after", 100, NULL, &seg) == 0);
        OK(shmview_detach(seg));
        OK(shmview_disconnect(conn));
    }
    raw_close(&first);
    daemon_stop(&d);
}

START_TEST(clients_beyond_the_descriptors_are_turned_away)
{
    exhaust_and_recover(64);
    exhaust_and_recover(65);
}
END_TEST

START_TEST(clients_beyond_the_limit_are_turned_away)
{
    exhaust_and_recover(300);
    ck_assert(daemon_said(&d, "is refused: 1 connections asked for"));
}
END_TEST

/* Starts a daemon that has a manual segment "m" and not one descriptor left. Returns
 * how many clients of the crowd it took. */
static unsigned start_exhausted(struct shmview_connection **ret_conn)
{
    for (unsigned limit = 64;; limit++) {
        daemon_start_limited(&d, limit);
        *ret_conn = client_connect(&d);
        OK(shmview_detach(client_create_with(*ret_conn, "m", 100, SHMVIEW_MANUAL, 0)));
        unsigned n = connect_until_refused();
        AWAIT(has_turned_away());
        if (daemon_said(&d, "turned away"))
            return n;
        /* half a client would still fit: one descriptor more makes that a whole one */
        ck_assert_uint_eq(limit, 64);
        leave(n);
        OK(shmview_disconnect(*ret_conn));
        daemon_stop(&d);
        unlink(d.log);
    }
}

START_TEST(out_of_descriptors_the_cause_is_told)
{
    struct shmview_connection *conn;
    struct shmview_segment *none = NULL;
    unsigned n = start_exhausted(&conn);
    REFUSED(shmview_create(conn, "new", 100, NULL, &none), SYSTEM, "Too many open files");
    /* those of the last attach are still open, the read-only one is not */
    REFUSED(shmview_attach(conn, "m", SHMVIEW_PEEK, 0, &none), SYSTEM, "Too many open files");
    OK(shmview_ping(conn));
    leave(n);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

START_TEST(out_of_descriptors_nothing_is_left)
{
    struct shmview_connection *conn;
    struct shmview_segment *seg;
    unsigned n = start_exhausted(&conn);
    raw_refused(&crowd[0], "Create", "{'name': 'new', 'size': 1}", "Failed", "open files");
    ck_assert_uint_eq(daemon_objects(&d), 3);
    OK(shmview_remove(conn, "m"));
    ck_assert_uint_eq(daemon_objects(&d), 0);
    leave(n);
    AWAIT(shmview_create(conn, "m", 100, NULL, &seg) == 0);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

static void remove_attached(unsigned limit)
{
    daemon_start_limited(&d, limit);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *a = client_create(conn, "a", 100);
    struct shmview_segment *b = client_create(conn, "b", 100);
    unsigned n = connect_until_refused();
    OK(shmview_remove(conn, "a"));
    ck_assert(!daemon_has_data(&d, "a"));
    OK(shmview_detach(a));
    OK(shmview_detach(b));
    AWAIT(daemon_objects(&d) == 0);
    leave(n);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

START_TEST(out_of_descriptors_names_go)
{
    remove_attached(64);
    remove_attached(65);
}
END_TEST

/* --- Replies that nobody reads --------------------------------------------- */

static const char ping[] = "{\"method\": \"io.shmview.Ping\"}";

/* How many bytes the daemon has sent to the client, which reads none. */
static int unread(const struct raw *raw)
{
    int n;
    ck_assert_int_eq(ioctl(raw->socket, FIONREAD, &n), 0);
    return n;
}

/* Returns how many replies to Ping fill the socket of a client. */
static unsigned pings_that_fill(void)
{
    struct raw raw;
    int bytes;
    raw_connect(&raw, d.socket);
    ck_assert(raw_send(&raw, ping, sizeof ping));
    AWAIT(unread(&raw) > 0);
    int reply = bytes = unread(&raw);
    for (;; bytes = unread(&raw)) {
        for (int i = 0; i < 10; i++)
            ck_assert(raw_send(&raw, ping, sizeof ping));
        int64_t until = await_now_ns() + 1000000000;
        while (unread(&raw) < bytes + 10 * reply && await_again(until))
            continue;
        if (unread(&raw) < bytes + 10 * reply)
            break;
    }
    bytes = unread(&raw);
    raw_close(&raw);
    return (unsigned)(bytes / reply);
}

/* Returns how many requests the daemon has served, except for those of this function. */
static json_int_t served(struct raw *first)
{
    static json_int_t own;
    json_t *reply = raw_call(first, "Stats", NULL);
    json_int_t n = raw_int(reply, "instance.total_requests") - own++;
    json_decref(reply);
    return n;
}

/* Connects, and attaches "m" by a request whose reply does not fit into the socket. Returns when
 * the daemon has served that request; false if it has turned the client away. */
static bool attach_unread(struct raw *first, struct raw *raw, unsigned n_pings)
{
    json_int_t before = served(first);
    raw_connect(raw, d.socket);
    raw_send_call(raw, "Ping", NULL);
    char *reply = raw_receive(raw);
    bool is_refused = !reply || strstr(reply, "QuotaExceeded");
    free(reply);
    for (unsigned i = 0; !is_refused && i < n_pings; i++)
        ck_assert(raw_send(raw, ping, sizeof ping));
    if (is_refused || !raw_send_call(raw, "Attach", "{'name': 'm', 'access': 'write'}"))
        return false;
    AWAIT(served(first) >= before + 2 + n_pings);
    return true;
}

/* Each unread reply that keeps descriptors counts as a connection. So half as many clients that
 * leave one unread use up what one user can have, and a client has at most three descriptors for
 * each connection that is counted. */
START_TEST(unread_replies_count_as_connections)
{
    struct raw first;
    daemon_start_limited(&d, 300);
    raw_connect(&first, d.socket);
    raw_do(&first, "Create", "{'name': 'm', 'size': 100, 'lifetime': 'manual'}");
    raw_do(&first, "Attach", "{'name': 'm', 'access': 'write'}"); /* its objects stay open */
    raw_close_fds(&first);
    unsigned before = process_descriptors(d.pid);
    unsigned most = connect_until_refused();
    leave(most);
    AWAIT(process_descriptors(d.pid) <= before);
    unsigned n_pings = pings_that_fill(), n = 0;
    AWAIT(process_descriptors(d.pid) <= before);
    while (n < CLIENTS_MAX && attach_unread(&first, &crowd[n], n_pings))
        n++;
    ck_assert_uint_lt(n, most);
    raw_close(&crowd[n]);
    ck_assert_uint_ge(n, most / 2);
    raw_do(&first, "Ping", NULL);
    ck_assert_uint_le(process_descriptors(d.pid), before + 3 * most);
    leave(n);
    AWAIT(process_descriptors(d.pid) <= before);
    raw_do(&first, "Remove", "{'name': 'm'}");
    raw_close(&first);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(clients_beyond_the_descriptors_are_turned_away),
        SUITE_TEST(clients_beyond_the_limit_are_turned_away),
        SUITE_TEST(out_of_descriptors_the_cause_is_told),
        SUITE_TEST(out_of_descriptors_nothing_is_left),
        SUITE_TEST(out_of_descriptors_names_go),
        SUITE_TEST(unread_replies_count_as_connections),
        SUITE_END,
    };
    return suite_main("descriptors", tests);
}
