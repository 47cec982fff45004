/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection begins with: the library says who it is and which attachments it has, and
 * hears which of them the daemon has. Where nothing may wait the reply is left for a later call,
 * with whatever part of it has come. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "client/link/connection.h"
#include "client/lock/lock.h"
#include "common/base/util.h"

/* How long a reply is waited for where nothing may wait. */
#define REOPEN_NS 300000

/* What the daemon is to know of us; NULL if memory is short. */
static char *claim_text(struct shmview_connection *c)
{
    size_t n;
    CLEANUP_FREE int64_t *ids = connection_claims(c, &n);
    CLEANUP_FREE struct wire_held *held = ids ? calloc(n + 1, sizeof *held) : NULL;
    struct wire_claim claim = {.client = c->client, .n_held = n};
    if (!held)
        return NULL;
    for (size_t i = 0; i < n; i++)
        held[i].attachment = ids[i];
    claim.held = held;
    claim.bell = true;
    claim.presence = c->presence ? WIRE_PRESENCE_KEPT : WIRE_PRESENCE_WANTED;
    return wire_claim_text(&claim);
}

/* --- The reply ----------------------------------------------------------- */

/* Whether the reply is whole; connection_receive() will find it. */
static bool is_whole(struct frame *in)
{
    char *text;
    size_t n;
    if (!frame_next(in, &text, &n))
        return false;
    frame_put_back(in, n);
    return true;
}

/* Waits for something to receive; until a time that comes nobody is asked. Returns an enum
 * wait_outcome or an error. */
static int await_claimed(struct shmview_connection *c, int64_t until)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    for (;;) {
        int64_t left = until == SHMVIEW_FOREVER ? WAIT_NS : until - now_ns();
        const struct timespec t = {.tv_nsec = left > 0 ? left : 0};
        if (ppoll(&p, 1, &t, NULL) > 0)
            return WAIT_READY;
        if (until != SHMVIEW_FOREVER)
            return WAIT_EXPIRED;
        if (wait_go_on())
            return connection_interrupted(c);
    }
}

/* Receives until the reply is whole. Returns an enum wait_outcome or an error.
 *
 * No fork comes between the arrival of descriptors and the note of them in the connection, by
 * which the child closes its own. */
static int receive_claimed(struct shmview_connection *c, int64_t until)
{
    while (!is_whole(&c->in)) {
        int waited = await_claimed(c, until);
        if (waited != WAIT_READY)
            return waited;
        ssize_t r;
        {
            NOT_FORKED;
            r = frame_receive(&c->in, c->fd, LIMIT_REPLY_BYTES, &c->arrived);
        }
        if (r <= 0 && r != -EAGAIN && r != -EINTR)
            return connection_receive_failed(c, r);
    }
    return WAIT_READY;
}

static void close_arrived(struct shmview_connection *c)
{
    NOT_FORKED;
    frame_descriptors_close(&c->arrived);
    c->arrived.lost = false;
}

struct keeps {
    const struct shmview_connection *connection;
    const struct wire_held *held;
    size_t n;
};

/* The daemon has these attachments of the connection: locks of others are lost from now on. */
static void lose_unless_held(struct lock *lock, void *arg)
{
    const struct keeps *keeps = arg;
    if (lock->connection == keeps->connection && lock_is_of_this_process(lock) &&
        !wire_held_has(keeps->held, keeps->n, lock->attachment))
        lock_lose(lock);
}

/* Maps what came with the reply. */
static int take_claimed(struct shmview_connection *c, const struct reply *reply)
{
    struct wire_claimed claimed;
    struct wire_fault fault;
    if (wire_read_claimed(reply->wire.parameters, &claimed, &fault))
        return connection_unreadable(c, &fault);
    if (claimed.presence != WIRE_ABSENT && claimed.presence < (int64_t)c->arrived.n)
        connection_map_presence(c, c->arrived.fd[claimed.presence]);
    if (claimed.bell != WIRE_ABSENT && claimed.bell < (int64_t)c->arrived.n) {
        NOT_FORKED;
        bell_take(c, &c->arrived.fd[claimed.bell]);
    }
    wire_held_sort(claimed.held, claimed.n_held);
    /* in this order: an attachment whose handle is not listed yet is looked up once it is */
    connection_keep(c, claimed.held, claimed.n_held);
    locks_each(lose_unless_held, &(struct keeps){c, claimed.held, claimed.n_held});
    free(claimed.held);
    /* without a presence each hang-up is our end, and no lock would survive it; where attachments
     * are at stake, hanging up now would be just that */
    if (!c->arrived.lost || c->presence || connection_holds_any(c))
        return 0;
    connection_hang_up(c);
    return fail_errno("the descriptors of the connection", EMFILE);
}

/* A daemon that hung up before it has answered was about to leave. Returns r, or NOT_REACHED
 * then. */
static int unless_leaving(int r)
{
    if (r != -SHMVIEW_ERR_DISCONNECTED)
        return r;
    errno = ECONNRESET;
    return NOT_REACHED;
}

/* Takes the reply, which is whole. Returns what connection_be_greeted() does. */
static int take_reply(struct shmview_connection *c)
{
    struct reply reply = {0};
    int r = connection_receive(c, &reply);
    if (r == 0 && reply.wire.error) {
        const char *reason;
        int error = wire_error_code(&reply.wire, &reason);
        r = connection_fail(c, error, reason);
    } else if (r == 0) {
        r = take_claimed(c, &reply);
    }
    c->greets = false;
    close_arrived(c);
    reply_deinit(&reply);
    return unless_leaving(r);
}

int connection_be_greeted(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    if (!connection_has_socket(c)) { /* others may talk to us at that number */
        connection_hang_up(c);
        errno = EBADF;
        return NOT_REACHED;
    }
    int r = receive_claimed(c, SHMVIEW_FOREVER);
    return r == WAIT_READY ? take_reply(c) : unless_leaving(r);
}

/* --- Connecting ---------------------------------------------------------- */

/* Returns an enum reach or an error. */
static int greet(struct shmview_connection *c)
{
    CLEANUP_FREE char *text = claim_text(c);
    if (!text) {
        connection_hang_up(c);
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    int r = connection_send(c, text, strlen(text) + 1);
    if (r == 0 || connection_is_refused(c, r))
        return connection_be_greeted(c);
    if (r == -ECANCELED)
        return connection_interrupted(c);
    connection_hang_up(c);
    errno = -r;
    return NOT_REACHED;
}

int connection_open(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    int fd, r = connection_dial(&c->where, true, &fd);
    if (r == REACHED)
        r = connection_take_socket(c, fd);
    return r ? r : greet(c);
}

int connection_claim(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    if (!connection_has_socket(c))
        return -EBADF;
    CLEANUP_FREE char *text = claim_text(c);
    if (!text)
        return -ENOMEM;
    size_t n = strlen(text) + 1;
    ssize_t sent = send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    c->greets = sent == (ssize_t)n;
    return c->greets ? 0 : sent < 0 ? -errno : -EPIPE; /* a part of a request is none */
}

/* Sends a claim over a new socket. Returns REACHED where it is on its way as a whole; NOT_REACHED
 * if nobody is there; otherwise -1. */
static int greet_quickly(struct shmview_connection *c)
{
    int fd, r = connection_dial(&c->where, false, &fd);
    if (r)
        return r == NOT_REACHED && (errno == ENOENT || errno == ECONNREFUSED) ? r : -1;
    if (connection_take_socket(c, fd))
        return -1;
    if (connection_claim(c) == 0)
        return REACHED;
    connection_hang_up(c);
    return -1;
}

bool connection_reopen(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    char text[ERROR_TEXT_BYTES];
    int saved = errno, r = REACHED;
    /* what fails here is nothing that the caller has asked for */
    snprintf(text, sizeof text, "%s", shmview_error_text());
    if (c->fd < 0)
        r = greet_quickly(c);
    if (c->greets && !connection_has_socket(c))
        connection_hang_up(c);
    if (c->greets && receive_claimed(c, now_ns() + REOPEN_NS) == WAIT_READY)
        take_reply(c);
    fail(0, "%s", text);
    errno = saved;
    return r == NOT_REACHED || (r == REACHED && c->fd >= 0);
}
