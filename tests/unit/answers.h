/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that the test itself provides, for the tests of the daemon's connection.c. */
#ifndef UNIT_ANSWERS_H
#define UNIT_ANSWERS_H

#include "unit/house.h"

static struct house house;
static unsigned n_calls;
static char last_method[300];

static inline struct guest *begin(void (*call)(struct connection *, const struct wire_call *,
                                               struct answer *))
{
    house_open(&house);
    house.call = call;
    n_calls = 0;
    return house_admit(&house);
}

/* Discards log lines, because this test does not check what they report. */
static inline void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

/* Runs until the daemon has closed the guest's connection. */
static inline void run_until_closed(struct guest *g)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (g->connection && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_null(g->connection);
}

/* --- Methods of the test ------------------------------------------------- */

/* Replies with the number of the call. */
static inline void count(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    (void)c;
    snprintf(last_method, sizeof last_method, "%s", call->method);
    answer->parameters = json_pack("{s:i}", "n", n_calls++);
}

static inline void assert_numbered(struct guest *g, unsigned n)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "{\"parameters\":{\"n\":%u}}", n);
    const char *got = house_receive(g);
    ck_assert_msg(got, "the daemon hung up before reply %u", n);
    ck_assert_str_eq(got, wanted);
}

/* Replies with more than fits into the socket. */
static inline void large(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    static char text[2000000];
    (void)c;
    (void)call;
    memset(text, 'a' + (int)(n_calls++ % 26), sizeof text - 1);
    answer->parameters = json_pack("{s:s}", "text", text);
}

/* Replies with a descriptor. */
static inline void with_descriptor(struct connection *c, const struct wire_call *call,
                                   struct answer *answer)
{
    (void)call;
    answer->fds.n = 1;
    answer->fds.fd[0] = dup(c->fd);
    answer->parameters = json_pack("{s:i}", "n", n_calls++);
}

/* Leaves the first call pending, and answers every other at once. */
static inline void later(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    if (n_calls == 0) {
        n_calls++;
        answer->pending = true;
        return;
    }
    count(c, call, answer);
}

static inline void answer_now(struct guest *g)
{
    struct answer answer = {.parameters = json_pack("{s:i}", "n", 0)};
    connection_answer(g->connection, &answer);
}

static inline void close_at_once(struct connection *c, const struct wire_call *call,
                                 struct answer *answer)
{
    count(c, call, answer);
    connection_close(c);
}

static const char ping[] = "{\"method\":\"io.shmview.Ping\"}";

static inline void send_pings(struct guest *g, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        house_send_bytes(g, ping, sizeof ping);
}

#endif
