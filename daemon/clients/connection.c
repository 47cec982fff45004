/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/slice.h"
#include "daemon/clients/bell.h"
#include "daemon/clients/digest.h"
#include "daemon/clients/handover.h"
#include "daemon/clients/reply.h"
#include "daemon/clients/stray.h"
#include "daemon/clients/tally.h"
#include "daemon/rights/quota.h"

/* How many requests one turn takes, and for how long, before other clients get theirs. */
#define TURN_REQUESTS 16
#define TURN_NS       250000
/* The last requests of a client that has gone get as much as this many turns. */
#define LAST_TURNS 16

/* A buffer of up to this size is not charged. */
#define BUFFER_FREE_BYTES 4096

static void on_socket(uv_poll_t *poll, int status, int events);
static void on_process(uv_poll_t *poll, int status, int events);
static void act(struct connection *c, int events);
static void serve(struct turn *turn);

struct actor connection_actor(const struct connection *c)
{
    return c ? (struct actor){.pid = c->peer.pid, .uid = c->peer.uid} : ACTOR_NONE;
}

/* --- What it holds ------------------------------------------------------- */

int connection_charge(struct connection *c, uint64_t *charged, uint64_t bytes,
                      struct quota_excess *ret_excess)
{
    struct quota_user *payer = c->payer;
    uint64_t amount = bytes > BUFFER_FREE_BYTES ? bytes : 0;
    if (amount > LIMIT_BUFFERS_BYTES)
        amount = LIMIT_BUFFERS_BYTES;
    if (!payer || amount == *charged)
        return 0;
    quota_refund(payer, QUOTA_BUFFERS, *charged);
    *charged = 0;
    /* administrators are not exempt, because their clients may stop reading as well */
    int r = amount ? quota_charge(payer->quota, payer->uid, false, QUOTA_BUFFERS, amount, &payer,
                                  ret_excess)
                   : 0;
    if (r == 0)
        *charged = amount;
    return r;
}

void connection_refund(struct connection *c, uint64_t *charged)
{
    quota_refund(c->payer, QUOTA_BUFFERS, *charged);
    *charged = 0;
}

/* --- Beginning and end --------------------------------------------------- */

static void refund_connection(void *payer)
{
    quota_refund(payer, QUOTA_CONNECTIONS, 1);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    if (--c->n_handles)
        return;
    if (c->strays)
        stray_close(c->fd, refund_connection, c->payer);
    else
        close(c->fd);
    peer_deinit(&c->peer);
    frame_deinit(&c->in);
    free(c);
}

/* Stops watching the process. Does nothing the second time, or without a pidfd. */
static void stop_process_poll(struct connection *c)
{
    uv_handle_t *handle = (uv_handle_t *)&c->process_poll;
    if (c->peer.pidfd >= 0 && !uv_is_closing(handle))
        uv_close(handle, on_handle_closed);
}

void connection_close(struct connection *connection)
{
    if (connection->closing)
        return;
    connection->closing = true;
    connection->tally->n_connections--;
    digest_cancel(connection);
    connection_refund(connection, &connection->in_charged);
    reply_drop(connection);
    /* a forked child may hold the socket as well; this ends it for all of them */
    shutdown(connection->fd, SHUT_RDWR);
    connection->strays = connection->strays && stray_left(connection->fd);
    uv_close((uv_handle_t *)&connection->socket_poll, on_handle_closed);
    stop_process_poll(connection);
    bell_close(STEAL(connection->bell));
    handover_close(connection);
    /* the client may become a survivor, which then takes the pidfd over */
    connection->events->closed(connection);
}

void connection_lose(struct connection *connection)
{
    struct connection *c = connection;
    if (c->closing || c->gone)
        return;
    if (c->streaming) {
        connection_close(c);
        return;
    }
    c->gone = true;
    c->gone_until_ns = now_ns() + LIMIT_LAST_REQUESTS_NS;
    shutdown(c->fd, SHUT_RD);
    uv_poll_stop(&c->socket_poll); /* the end would be reported again and again */
    stop_process_poll(c);
    reply_drop(c);
    if (c->answering && !c->oneway && !c->digest) { /* a request that a thread reads is done */
        c->answering = false;
        if (c->events->cancel)
            c->events->cancel(c);
    }
}

static void violation(struct connection *c, const char *what)
{
    struct log_event event = {
        .kind = LOG_PROTOCOL, .has_uid = true, .uid = c->peer.uid, .pid = c->peer.pid};
    log_event(LOG_WARNING, &event, "pid %d, uid %u broke the protocol: %s", c->peer.pid,
              c->peer.uid, what);
    connection_close(c);
}

/* Polls for the events that the connection can handle now, and for its end until that is known. */
static void watch(struct connection *c)
{
    int events = 0;
    if (c->turn.waits)
        events = 0;
    else if (c->out)
        events = UV_WRITABLE;
    else if (!c->answering && !c->throttled && !c->end_of_stream)
        events = UV_READABLE;
    if (!c->half_closed && !c->end_of_stream)
        events |= UV_DISCONNECT; /* after the end it would be reported again and again */
    if (events == c->watched)
        return; /* starting the poll again would cost two system calls */
    c->watched = events;
    if (events == 0)
        uv_poll_stop(&c->socket_poll);
    else if (uv_poll_start(&c->socket_poll, events, on_socket))
        connection_close(c);
}

struct connection *connection_new(uv_loop_t *loop, int fd, const struct connection_events *events,
                                  struct tally *tally, void *owner)
{
    struct connection *c = calloc(1, sizeof *c);
    int r = c ? peer_of(fd, &c->peer) : -ENOMEM;
    if (r) {
        if (r != -ESRCH)
            log_event(LOG_WARNING, &(struct log_event){.kind = LOG_TURNED_AWAY},
                      "connection refused: %s", strerror(-r));
        free(c);
        close(fd);
        return NULL;
    }
    c->holder = (struct store_holder){
        .birth = c->peer.birth, .pid = (uint32_t)c->peer.pid, .uid = c->peer.uid};
    c->events = events;
    c->tally = tally;
    c->owner = owner;
    c->fd = fd;
    c->turn = (struct turn){.serve = serve, .who = c};
    c->strays = stray_possible(fd);
    if (c->strays)
        stray_refuse(fd);
    LIST_INIT(&c->attachments);
    LIST_INIT(&c->created);
    c->socket_poll.data = c->process_poll.data = c;
    if (loop_poll_init(loop, &c->socket_poll, fd)) {
        log_event(LOG_ERROR, &(struct log_event){.kind = LOG_TURNED_AWAY},
                  "a socket cannot be watched: a client was turned away");
        peer_deinit(&c->peer);
        close(fd);
        free(c);
        return NULL;
    }
    int failed = c->peer.pidfd < 0 ? 0 : loop_poll_init(loop, &c->process_poll, c->peer.pidfd);
    c->n_handles = c->peer.pidfd >= 0 && failed == 0 ? 2 : 1;
    if (failed == 0 && c->n_handles == 2)
        failed = uv_poll_start(&c->process_poll, UV_READABLE, on_process);
    if (failed == 0)
        failed = uv_poll_start(&c->socket_poll, UV_READABLE | UV_DISCONNECT, on_socket);
    if (failed) {
        log_event(LOG_ERROR, &(struct log_event){.kind = LOG_TURNED_AWAY},
                  "a client cannot be watched: it was turned away");
        c->closing = true;
        shutdown(fd, SHUT_RDWR); /* the client learns it also if stray_close() has no memory */
        c->strays = c->strays && stray_left(fd);
        if (c->n_handles == 2)
            uv_close((uv_handle_t *)&c->process_poll, on_handle_closed);
        uv_close((uv_handle_t *)&c->socket_poll, on_handle_closed);
        return NULL;
    }
    c->watched = UV_READABLE | UV_DISCONNECT;
    tally->n_connections++;
    return c;
}

/* --- Out ----------------------------------------------------------------- */

void connection_refuse(struct connection *connection, struct answer *answer)
{
    reply_send(connection, answer);
    connection_close(connection);
}

void connection_answer(struct connection *connection, struct answer *answer)
{
    connection->answering = false;
    reply_give(connection, answer);
    act(connection, 0);
}

void connection_stream(struct connection *connection, char *text, size_t n)
{
    struct answer answer = {.text = text, .text_bytes = n};
    if (!text) {
        log_error("out of memory: an event is lost");
        connection_close(connection);
        return;
    }
    reply_send(connection, &answer);
    if (!connection->closing)
        watch(connection);
}

/* --- In ------------------------------------------------------------------ */

/* Takes the request that digest_take() or wire_call_read() has read; failed: it returned that. */
static void take_call(struct connection *c, const struct wire_call *call, int failed,
                      const struct wire_fault *fault)
{
    struct answer answer = {0};
    if (failed) {
        char what[sizeof fault->reason + sizeof fault->parameter + 2];
        snprintf(what, sizeof what, "%s %s", fault->parameter, fault->reason);
        violation(c, what);
        return;
    }
    c->oneway = call->oneway;
    c->more = call->more;
    c->answering = true;
    c->events->call(c, call, &answer);
    if (answer.pending)
        return;
    c->answering = false;
    reply_give(c, &answer);
}

/* Takes the next whole request. Returns false if there is none. */
static bool take_request(struct connection *c)
{
    struct wire_call call;
    struct wire_fault fault;
    char *text;
    size_t n;
    int failed;
    if (c->digest) {
        struct digest *d = digest_take(c, &call, &fault, &failed);
        take_call(c, &call, failed, &fault);
        digest_end(d);
        return true;
    }
    if (!frame_next(&c->in, &text, &n))
        return false;
    if (c->events->may_ask && !c->events->may_ask(c)) {
        frame_put_back(&c->in, n);
    } else if (!digest_start(c, text, n)) {
        failed = wire_call_read(&call, text, n, &fault);
        take_call(c, &call, failed, &fault);
        wire_call_deinit(&call); /* zeroes, after a failure */
    }
    return true;
}

/* Frees the buffer, so that an idle client costs none. */
static void drop_input(struct connection *c)
{
    frame_deinit(&c->in);
    connection_refund(c, &c->in_charged);
}

/* Receives once. Returns false if there was nothing; true after bytes, the end of the stream or an
 * error. May close the connection. */
static bool receive(struct connection *c)
{
    struct quota_excess excess;
    struct answer answer = {0};
    ssize_t n = c->strays ? stray_receive(&c->in, c->fd, LIMIT_REQUEST_BYTES)
                          : frame_receive(&c->in, c->fd, LIMIT_REQUEST_BYTES, NULL);
    if (n == -EAGAIN)
        return false;
    if (n == 0)
        c->end_of_stream = true;
    else if (n == -EMSGSIZE)
        violation(c, "a request of more than 256 KiB");
    else if (n == -EPROTO)
        violation(c, "a descriptor with a request");
    else if (n < 0)
        connection_close(c);
    if (!c->closing && connection_charge(c, &c->in_charged, c->in.capacity, &excess)) {
        reply_refuse_buffer(c, &answer, &excess);
        connection_refuse(c, &answer);
    }
    return true;
}

/* Called when no whole request is buffered. Returns whether there may be one now. A client that has
 * gone sends no event, so its last bytes are received here. */
static bool await_more(struct connection *c)
{
    if (c->gone && !c->end_of_stream && receive(c))
        return true;
    if (c->gone || c->end_of_stream)
        connection_close(c);
    else if (c->in.used == c->in.n)
        drop_input(c);
    return false;
}

/* Whether a client that has gone only waits for its turn or a thread, and not for long yet. */
static bool may_finish(const struct connection *c)
{
    const int64_t linger_ns = CONNECTION_LINGER_MS * INT64_C(1000000);
    return c->events->lingers && (c->turn.waits || c->digest) &&
           c->gone_until_ns - now_ns() > LIMIT_LAST_REQUESTS_NS - linger_ns;
}

/* Called when the rest must wait. The attachments of a client that has gone end now, unless its
 * turn comes soon: a Detach among its last requests must not be taken for a death. */
static void wait_on(struct connection *c)
{
    if (!c->gone)
        watch(c);
    else if (may_finish(c))
        c->events->lingers(c);
    else if (c->events->gone)
        c->events->gone(c);
}

void connection_take_turn(struct connection *connection)
{
    unsigned turn = 0, turns = connection->gone ? LAST_TURNS : 1;
    int64_t until = 0;
    if (connection->gone && now_ns() > connection->gone_until_ns)
        connection_close(connection);
    while (!connection->closing && !connection->answering && !connection->out &&
           !connection->throttled) {
        bool more = connection->in.used < connection->in.n;
        if (more && turn == 1)
            /* a client that sends one request at a time costs no look at the clock */
            until = slice_end(TURN_NS * turns);
        if (turn == TURN_REQUESTS * turns || (more && turn && now_ns() > until)) {
            connection->events->again(connection);
            break;
        }
        if (take_request(connection))
            turn++;
        else if (!await_more(connection))
            break;
    }
    if (!connection->closing)
        wait_on(connection);
}

static void act_now(struct connection *c, int events)
{
    if (events & UV_READABLE && !receive(c))
        return;
    if (events & UV_WRITABLE)
        reply_flush(c);
    if (!c->closing && !c->out)
        connection_take_turn(c);
    else if (!c->closing && !c->gone)
        watch(c); /* a late reply may have filled the socket */
    if (events & UV_WRITABLE && !c->closing && !c->out && c->streaming && c->events->drained)
        c->events->drained(c);
}

/* Handles events of the socket, now or in the connection's turn. events 0: buffered requests. */
static void act(struct connection *c, int events)
{
    if (c->closing || c->turn.waits || c->throttled)
        return;
    if (!c->events->begin) {
        act_now(c, events);
    } else if (c->events->begin(c)) {
        act_now(c, events);
        c->events->end(c);
    } else {
        c->due = events;
        wait_on(c);
    }
}

void connection_resume(struct connection *connection)
{
    act(connection, 0);
}

void connection_digested(struct connection *connection)
{
    connection->answering = false;
    connection_resume(connection);
}

static void serve(struct turn *turn)
{
    struct connection *c = CONTAINER_OF(turn, struct connection, turn);
    int events = c->due;
    c->due = 0;
    act_now(c, events);
    if (!c->closing && !c->gone)
        watch(c); /* the socket was not polled while the turn waited */
}

bool connection_hung_up(const struct connection *connection)
{
    struct pollfd p = {.fd = connection->fd};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

void connection_end(struct connection *connection)
{
    struct connection *c = connection;
    connection_lose(c);
    if (c->closing)
        return;
    if (c->turn.waits || c->throttled)
        wait_on(c);
    else
        act(c, 0); /* the last requests take turns like any others */
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct connection *c = poll->data;
    if (slice_is_late()) {
        if (status < 0) { /* libuv has stopped the poll */
            c->watched = 0;
            watch(c);
        }
        return;
    }
    if (status == 0 && events & UV_READABLE) { /* what a client sent before it hung up is first */
        act(c, events);
        return;
    }
    if (status < 0 || connection_hung_up(c)) {
        connection_end(c);
        return;
    }
    if (events & UV_WRITABLE) {
        act(c, events);
    } else if (events & UV_DISCONNECT && c->streaming) {
        connection_close(c); /* a stream has no last reply for which a half-closed client waits */
    } else if (events & UV_DISCONNECT) {
        /* the client still reads, and requests that it has sent must be done */
        c->half_closed = true;
        watch(c);
    }
}

static void on_process(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct connection *c = poll->data;
    if (!slice_is_late() && peer_has_ended(c->peer.pidfd))
        connection_end(c);
}
