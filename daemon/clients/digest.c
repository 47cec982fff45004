/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/digest.h"

#include <stdlib.h>

#include "common/base/util.h"
#include "daemon/base/task.h"
#include "daemon/clients/reply.h"
#include "daemon/rights/quota.h"

/* The longest message that the loop reads itself. That takes 0.1 ms at most; the way to a thread
 * and back takes half of it. */
#define SHORT_BYTES 8192

/* A request on its way. While the task runs its step, a thread uses frame, call, fault, failed and
 * prepared, and the loop does not. */
struct digest {
    struct task task;
    struct connection *connection; /* NULL: the request was dropped */
    const struct connection_events *events;
    struct quota_user *payer;
    uint64_t charged;   /* bytes of the frame, so that the payer exists as long as the task */
    struct frame frame; /* has the message */
    const char *text;   /* the message, in the frame */
    size_t n;
    struct wire_call call;
    struct wire_fault fault;
    int failed;
    void *prepared;
    bool is_read; /* the thread is done; used on the loop only */
};

static void digest_free(struct digest *d)
{
    if (d->prepared)
        d->events->unprepare(d->prepared);
    if (!d->failed)
        wire_call_deinit(&d->call);
    frame_deinit(&d->frame);
    quota_refund(d->payer, QUOTA_BUFFERS, d->charged);
    free(d);
}

/* On a thread. */
static bool read_message(struct task *task)
{
    struct digest *d = CONTAINER_OF(task, struct digest, task);
    d->failed = wire_call_parse(&d->call, d->text, d->n, &d->fault);
    frame_deinit(&d->frame); /* here, because to give back so much memory takes time, too */
    if (!d->failed && d->events->prepare)
        d->prepared = d->events->prepare(&d->call);
    return false;
}

static void on_read(struct task *task)
{
    struct digest *d = CONTAINER_OF(task, struct digest, task);
    d->is_read = true;
    if (d->connection)
        connection_digested(d->connection);
    else
        digest_free(d);
}

/* Charges the user for the bytes after the request, although the connection receives no others now.
 * If that is too much, refuses them and closes the connection. */
static void charge_rest(struct connection *c)
{
    struct quota_excess excess;
    struct answer answer = {0};
    if (connection_charge(c, &c->in_charged, c->in.capacity, &excess)) {
        reply_refuse_buffer(c, &answer, &excess);
        connection_refuse(c, &answer);
    }
}

bool digest_start(struct connection *connection, const char *text, size_t n)
{
    struct connection *c = connection;
    if (n <= SHORT_BYTES || !c->in_charged)
        return false;
    struct digest *d = calloc(1, sizeof *d);
    if (!d || !frame_split(&c->in, &d->frame)) {
        free(d);
        return false;
    }
    *d = (struct digest){
        .task = {.loop = c->socket_poll.loop,
                 .user = &c->payer->tasks,
                 .step = read_message,
                 .done = on_read},
        .connection = c,
        .events = c->events,
        .payer = c->payer,
        .charged = c->in_charged,
        .frame = d->frame,
        .text = text,
        .n = n,
    };
    c->in_charged = 0;
    c->digest = d;
    c->answering = true;
    c->oneway = false;
    task_add(&d->task);
    if (c->events->expect)
        c->events->expect(c, n);
    charge_rest(c);
    return true;
}

struct digest *digest_take(struct connection *connection, struct wire_call *ret,
                           struct wire_fault *ret_fault, int *ret_failed)
{
    struct digest *d = STEAL(connection->digest);
    *ret = d->call;
    *ret_fault = d->fault;
    *ret_failed = d->failed;
    connection->prepared = STEAL(d->prepared);
    d->connection = NULL;
    return d;
}

/* On a thread. */
static bool drop_message(struct task *task)
{
    struct digest *d = CONTAINER_OF(task, struct digest, task);
    wire_call_deinit(&d->call);
    return false;
}

static void on_dropped(struct task *task)
{
    struct digest *d = CONTAINER_OF(task, struct digest, task);
    d->failed = -1; /* so that the message is not freed twice */
    digest_free(d);
}

/* From here on the client can send as much again. One byte stays charged, so that the payer exists
 * as long as the task. */
void digest_end(struct digest *digest)
{
    struct digest *d = digest;
    if (d->failed) {
        digest_free(d);
        return;
    }
    quota_refund(d->payer, QUOTA_BUFFERS, d->charged - 1);
    d->charged = 1;
    d->task.step = drop_message;
    d->task.done = on_dropped;
    task_add(&d->task);
}

void digest_cancel(struct connection *connection)
{
    struct digest *d = STEAL(connection->digest);
    if (!d)
        return;
    d->connection = NULL;
    if (d->is_read || task_take_back(&d->task))
        digest_free(d);
}
