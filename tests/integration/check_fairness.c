/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that take long, and many of them at once: a bystander that asks little waits for one
 * turn, not for all of them. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/room.h"
#include "support/suite.h"

#define SOCKETS 64
#define LAYOUTS 64
#define VIEWS   256
#define PINGS   100
/* A ping beside a greedy client takes some milliseconds at most, and bench measures that. Here the
 * machine may do much else; without turns a ping would wait for all that was asked, many seconds.
 */
#define AT_MOST_NS 3000000000

static struct daemon d;

/* The longest of some pings. */
static int64_t worst_ping(void)
{
    struct shmview_connection *conn = client_connect(&d);
    int64_t worst = 0;
    for (int i = 0; i < PINGS; i++) {
        int64_t start = await_now_ns();
        OK(shmview_ping(conn));
        int64_t took = await_now_ns() - start;
        worst = took > worst ? took : worst;
    }
    OK(shmview_disconnect(conn));
    return worst;
}

/* --- Describe ------------------------------------------------------------ */

static void define(struct raw *raw, unsigned layout)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f, "{'name': 'large', 'layout': {'name': 'l%u', 'views': [", layout);
    for (unsigned i = 0; i < VIEWS; i++)
        fprintf(f, "%s{'name': 'v%u', 'format': 'd', 'shape': [1, 1, 1, 1]}", i ? "," : "", i);
    fputs("]}}", f);
    fclose(f);
    raw_do(raw, "DefineLayout", text);
    free(text);
}

/* Asks on every socket, and again wherever a whole reply has come. */
static void describe_all(struct child *me, void *arg)
{
    static struct raw raw[SOCKETS];
    static struct pollfd polled[SOCKETS];
    static char bytes[1 << 20];
    (void)arg;
    raw_connect(&raw[0], d.socket);
    raw_do(&raw[0], "Create", "{'name': 'large', 'size': 65536, 'access': 'write'}");
    for (unsigned i = 0; i < LAYOUTS; i++)
        define(&raw[0], i);
    for (unsigned i = 0; i < SOCKETS; i++) {
        if (i)
            raw_connect(&raw[i], d.socket);
        polled[i] = (struct pollfd){.fd = raw[i].socket, .events = POLLIN};
        raw_send_call(&raw[i], "Describe", "{'name': 'large'}");
    }
    child_tell(me, 1);
    for (;;) {
        poll(polled, SOCKETS, -1);
        for (unsigned i = 0; i < SOCKETS; i++) {
            if (!(polled[i].revents & POLLIN))
                continue;
            ssize_t n = recv(raw[i].socket, bytes, sizeof bytes, MSG_DONTWAIT);
            if (n == 0)
                return;
            if (n > 0 && bytes[n - 1] == '\0')
                raw_send_call(&raw[i], "Describe", "{'name': 'large'}");
        }
    }
}

START_TEST(large_layouts_on_many_connections)
{
    struct child child;
    daemon_start(&d);
    child_start(&child, describe_all, NULL);
    child_hear(&child, 1);
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(worst_ping(), AT_MOST_NS);
    child_kill(&child);
    daemon_stop(&d);
}
END_TEST

/* --- Create -------------------------------------------------------------- */

#define CREATIONS 8
#define LARGE     ((uint64_t)1 << 29)

static void create_large(struct child *me, void *arg)
{
    static struct raw raw[CREATIONS];
    unsigned n_made = 0;
    (void)arg;
    for (int i = 0; i < CREATIONS; i++) {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "{'name': 'large-%d', 'size': %" PRIu64 "}", i,
                 LARGE);
        raw_connect(&raw[i], d.socket);
        raw_send_call(&raw[i], "Create", parameters);
    }
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < CREATIONS; i++) {
        struct pollfd p = {.fd = raw[i].socket, .events = POLLIN};
        n_made += poll(&p, 1, 0) > 0;
    }
    ck_assert_uint_lt(n_made, CREATIONS / 2);
    child_tell(me, 2);
    child_pause(me);
}

/* A small one, which needs a thread as well, does not wait until large ones are made: it needs one
 * step of each at most, and they need many. */
START_TEST(large_segments_at_once)
{
    struct child child;
    if (!room_for(CREATIONS * LARGE))
        return;
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    child_start(&child, create_large, NULL);
    child_hear(&child, 1);
    OK(shmview_detach(client_create(conn, "small", 1 << 20)));
    child_cue(&child);
    child_hear(&child, 2);
    ck_assert_int_lt(worst_ping(), AT_MOST_NS);
    child_kill(&child);
    OK(shmview_disconnect(conn));
    AWAIT(daemon_objects(&d) == 0); /* those that were not made go with their client */
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(large_layouts_on_many_connections),
        SUITE_TEST(large_segments_at_once),
        SUITE_END,
    };
    return suite_main("fairness", tests);
}
