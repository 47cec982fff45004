/* SPDX-License-Identifier: Apache-2.0 */
/* The claim: the first request of every connection.
 *
 * It names this client by its number and lists its attachments. The reply lists those that the
 * daemon has, and brings a bell and a presence. After a restart of the daemon, this is how a client
 * keeps its attachments and learns which of them are lost. A call that must not wait leaves the
 * reply, or the rest of it, to a later call. */
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

/* How long a call that must not block waits for the reply to its claim. */
#define REOPEN_NS 300000

/* Returns the text of a claim, which the caller frees, or NULL if there is no memory. */
static char *claim_text(struct shmview_connection *c)
{
    size_t n;
    CLEANUP_FREE int64_t *held = connection_claims(c, &n);
    struct wire_claim claim = {.client = c->client, .held = held, .n_held = n, .bell = true};
    if (!held)
        return NULL;
    claim.presence = c->presence ? WIRE_PRESENCE_KEPT : WIRE_PRESENCE_WANTED;
    return wire_claim_text(&claim);
}

/* --- The reply ----------------------------------------------------------- */

/* Whether the buffer has a whole reply, which stays there for connection_receive(). */
static bool is_whole(struct frame *in)
{
    char *text;
    size_t n;
    if (!frame_next(in, &text, &n))
        return false;
    frame_put_back(in, n);
    return true;
}

/* Waits for something to receive. With a time in until, it does not run the caller's function.
 * Returns an enum wait_outcome or an error. */
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
 * No fork can come between the arrival of descriptors and their entry in the connection. Otherwise
 * a child would inherit descriptors that it does not know, and could not close them. */
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

/* The argument of lose_unless_held(). */
struct keeps {
    const struct shmview_connection *connection;
    const int64_t *held;
    size_t n;
};

/* Marks a lock as lost if the daemon does not have its attachment. */
static void lose_unless_held(struct lock *lock, void *arg)
{
    const struct keeps *keeps = arg;
    if (lock->connection == keeps->connection && lock_is_of_this_process(lock) &&
        !wire_held_has(keeps->held, keeps->n, lock->attachment))
        lock_lose(lock);
}

/* Reads the reply: maps the presence, takes the bell, and drops the attachments that are lost.
 * Returns 0 or an error. */
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
    /* in this order: a call that is about to list its handle looks the attachment up after that */
    connection_keep(c, claimed.held, claimed.n_held);
    locks_each(lose_unless_held, &(struct keeps){c, claimed.held, claimed.n_held});
    free(claimed.held);
    /* Without a presence each hang-up ends this client for the daemon, and its locks with it. If it
     * has attachments, it must not hang up now for that reason. */
    if (!c->arrived.lost || c->presence || connection_holds_any(c))
        return 0;
    connection_hang_up(c);
    return fail_errno("the descriptors of the connection", EMFILE);
}

/* Returns r, or NOT_REACHED if the daemon hung up before it replied, because it is about to exit.
 */
static int unless_leaving(int r)
{
    if (r != -SHMVIEW_ERR_DISCONNECTED)
        return r;
    errno = ECONNRESET;
    return NOT_REACHED;
}

/* Reads the reply, which is whole in the buffer. Returns what connection_be_greeted() returns. */
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
    if (!connection_has_socket(c)) { /* the number may belong to another file of the program */
        connection_hang_up(c);
        errno = EBADF;
        return NOT_REACHED;
    }
    int r = receive_claimed(c, SHMVIEW_FOREVER);
    return r == WAIT_READY ? take_reply(c) : unless_leaving(r);
}

/* --- Connecting ---------------------------------------------------------- */

/* Sends a claim and waits for the reply. Returns an enum reach or an error. */
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
    return c->greets ? 0 : sent < 0 ? -errno : -EPIPE; /* the rest of a request cannot follow */
}

/* Sends a claim over a new socket without waiting. Returns REACHED if it was sent whole,
 * NOT_REACHED if no daemon listens, otherwise -1. */
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
    /* the text of the last error is kept, because the caller did not ask for this connection */
    snprintf(text, sizeof text, "%s", shmview_error_text());
    if (c->fd < 0)
        r = greet_quickly(c);
    if (c->greets && !connection_has_socket(c))
        connection_hang_up(c);
    if (c->greets && receive_claimed(c, now_ns() + REOPEN_NS) == WAIT_READY)
        take_reply(c);
    set_error_text("%s", text);
    errno = saved;
    return r == NOT_REACHED || (r == REACHED && c->fd >= 0);
}
