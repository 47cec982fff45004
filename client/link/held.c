/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a connection's attachments, and the reports that other threads have left.
 *
 * An id becomes negative when its attachment ends, and is removed when the end is reported. The
 * thread that has the mutex of the connection sends the report. So no thread waits for another
 * one's call to detach, or to report a change. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "client/link/connection.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

int connection_reserve(struct shmview_connection *connection, size_t n)
{
    struct shmview_connection *c = connection;
    DETAILS;
    NOT_FORKED;
    if (n <= c->held_capacity - c->n_held)
        return 0;
    size_t capacity = c->held_capacity * 2 + n;
    int64_t *held = realloc(c->held, capacity * sizeof *held);
    if (!held)
        return -ENOMEM;
    c->held = held;
    c->held_capacity = capacity;
    return 0;
}

void connection_hold(struct shmview_connection *connection, int64_t attachment)
{
    DETAILS;
    connection->held[connection->n_held++] = attachment;
}

int64_t *connection_claims(struct shmview_connection *connection, size_t *ret_n)
{
    struct shmview_connection *c = connection;
    DETAILS;
    int64_t *ids = malloc((c->n_held + 1) * sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; ids && i < c->n_held; i++)
        if (c->held[i] > 0)
            ids[n++] = c->held[i];
    *ret_n = n;
    return ids;
}

void connection_keep(struct shmview_connection *connection, const int64_t *held, size_t n)
{
    struct shmview_connection *c = connection;
    size_t kept = 0;
    DETAILS;
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] < 0 || wire_held_has(held, n, c->held[i]))
            c->held[kept++] = c->held[i];
    c->n_held = kept;
}

bool connection_holds(struct shmview_connection *connection, int64_t attachment)
{
    struct shmview_connection *c = connection;
    DETAILS;
    for (size_t i = c->n_held; i-- > 0;) /* callers look for a new one, which is at the end */
        if (c->held[i] == attachment)
            return true;
    return false;
}

bool connection_holds_any(struct shmview_connection *connection)
{
    DETAILS;
    return connection->n_held;
}

/* Notes that the attachment has ended and must be reported. */
static void mark(struct shmview_connection *c, int64_t attachment)
{
    DETAILS;
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] == attachment)
            c->held[i] = -attachment;
}

/* How many reports are sent together. */
#define REPORTS_MAX 32

/* Removes marked attachments from the list, at most REPORTS_MAX. Returns how many: ids. */
static size_t take_marked(struct shmview_connection *c, int64_t ids[REPORTS_MAX])
{
    size_t kept = 0, taken = 0;
    DETAILS;
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] < 0 && taken < REPORTS_MAX)
            ids[taken++] = -c->held[i];
        else
            c->held[kept++] = c->held[i];
    c->n_held = kept;
    return taken;
}

/* Puts back marked ids that were taken. There is room, because only the owner of the mutex adds
 * ids, and it has removed these. */
static void mark_again(struct shmview_connection *c, const int64_t *ids, size_t n)
{
    DETAILS;
    for (size_t i = 0; i < n; i++)
        c->held[c->n_held++] = -ids[i];
}

/* Waits for at most WAIT_NS until the socket has room. Does not run the caller's function, because
 * a call that frees a handle could not return that the wait was ended. Returns whether there is
 * room, or an error to find. */
static bool has_room_soon(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int64_t until = now_ns() + WAIT_NS, left;
    int n = 0;
    while (n <= 0 && (left = until - now_ns()) > 0)
        n = poll(&p, 1, (int)(left / 1000000) + 1);
    return n > 0;
}

enum sent {
    SENT,
    SOCKET_IS_FULL,
    NOT_SENT
};

/* Returns the requests for a Detach of each of the ids, one after the other, and their length; or
 * NULL. */
static char *detach_texts(const int64_t *ids, size_t n, size_t *ret_bytes)
{
    char *all = NULL;
    *ret_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *text = wire_detach_text(ids[i]);
        size_t bytes = text ? strlen(text) + 1 : 0;
        char *more = text ? realloc(all, *ret_bytes + bytes) : NULL;
        if (!more) {
            free(all);
            return NULL;
        }
        all = more;
        memcpy(all + *ret_bytes, text, bytes);
        *ret_bytes += bytes;
    }
    return all;
}

/* Sends a Detach for each of the ids, which have no replies. A part that was sent counts as
 * NOT_SENT, and the caller must hang up. */
static enum sent send_detaches(struct shmview_connection *c, const int64_t *ids, size_t n_ids,
                               bool may_wait)
{
    size_t n;
    CLEANUP_FREE char *text = detach_texts(ids, n_ids, &n);
    if (!text || !connection_has_socket(c))
        return NOT_SENT;
    ssize_t sent = send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN && may_wait && has_room_soon(c->fd))
        sent = send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)n)
        return SENT;
    return sent < 0 && errno == EAGAIN ? SOCKET_IS_FULL : NOT_SENT;
}

/* Reports the marked attachments. If that fails, it hangs up, because the next claim does not name
 * them, which has the same effect. Without a presence a hang-up would end this client; then a full
 * socket leaves the report to the next call. */
static void tell_detached(struct shmview_connection *c, bool may_wait)
{
    int64_t ids[REPORTS_MAX];
    size_t n;
    while ((n = take_marked(c, ids))) {
        enum sent sent = c->fd >= 0 ? send_detaches(c, ids, n, may_wait && !c->greets) : SENT;
        if (sent == SOCKET_IS_FULL && !c->presence) {
            mark_again(c, ids, n);
            c->is_late = true;
            return;
        }
        if (sent != SENT)
            connection_hang_up(c);
    }
}

/* Whether the daemon has hung up. */
static bool has_ended(const struct shmview_connection *c)
{
    return connection_has_socket(c) && descriptor_hung_up(c->fd);
}

/* Reports a change after the bell could not be rung: by a new bell, or by a claim. Returns whether
 * the daemon will receive the report, or no daemon is there. Without a presence a hang-up would end
 * this client, unless the daemon has hung up already. */
static bool tell_change(struct shmview_connection *c)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        if (c->fd >= 0 && !c->greets) {
            if (bell_ring(c, 0))
                return true;
            /* over the old socket: if there is no descriptor for a new one, the client would lose
             * the old one too */
            int r = has_ended(c) ? -ECONNRESET : connection_claim(c);
            if (r == 0)
                connection_reopen(c);
            if (r == 0 || r == -ENOMEM || (r == -EAGAIN && !c->presence))
                return r == 0;
            connection_hang_up(c);
        }
        bool claims = c->fd < 0; /* a claim after the change makes the daemon wake event loops */
        bool is_reopened = connection_reopen(c);
        if (claims)
            return is_reopened;
        /* the claim is older than the change, so its reply proves nothing about the change */
        if (c->greets && !has_ended(c))
            return false;
        if (c->greets)
            connection_hang_up(c);
    }
    return false;
}

void connection_settle(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    if (!atomic_exchange(&c->owes, false) && !c->is_late)
        return;
    bool rings = atomic_exchange(&c->rings, false);
    bool may_wait = !rings && !c->is_late && !wait_is_asking();
    c->is_late = false;
    tell_detached(c, may_wait);
    if (rings && !tell_change(c)) {
        atomic_store(&c->rings, true); /* without owes, which connection_unlock() would try again */
        c->is_late = true;
    }
    /* if the daemon is gone, a later claim reports what is left, so nothing waits for it here */
    if (!rings && (c->fd < 0 || c->greets))
        connection_reopen(c);
}

void connection_detach(struct shmview_connection *connection, int64_t attachment)
{
    NOT_CANCELLED;
    mark(connection, attachment);
    atomic_store(&connection->owes, true);
    if (connection_trylock(connection))
        connection_unlock(connection); /* sends it; otherwise the owner of the mutex does */
}
