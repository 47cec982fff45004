/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection holds: the ids of its attachments. One that is given back is negative until
 * the daemon is told, by whichever thread has the connection; no thread waits to give back. */
#include <stdlib.h>
#include <sys/socket.h>

#include "client/private.h"
#include "common/util.h"

int connection_reserve(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    DETAILS;
    NOT_FORKED;
    if (c->n_held < c->held_capacity)
        return 0;
    size_t capacity = c->held_capacity ? c->held_capacity * 2 : 8;
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

static void mark(struct shmview_connection *c, int64_t attachment)
{
    DETAILS;
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] == attachment)
            c->held[i] = -attachment;
}

/* Takes one that is marked from the list. Returns its id, or 0. */
static int64_t take_marked(struct shmview_connection *c)
{
    DETAILS;
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] < 0) {
            int64_t id = -c->held[i];
            c->held[i] = c->held[--c->n_held];
            return id;
        }
    return 0;
}

/* Returns whether the daemon was told. A daemon that reads nothing for long fills the socket;
 * may_wait: then this waits. */
static bool send_detach(struct shmview_connection *c, int64_t attachment, bool may_wait)
{
    size_t n;
    CLEANUP_FREE char *text = wire_detach_text(attachment, &n);
    if (!text || !connection_has_socket(c))
        return false;
    ssize_t sent = send(c->fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == (ssize_t)n)
        return true;
    size_t done = sent > 0 ? (size_t)sent : 0;
    return may_wait && connection_send(c, text + done, n - done) == 0;
}

void connection_settle(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    int64_t id;
    if (!atomic_exchange(&c->owes, false))
        return;
    bool rings = atomic_exchange(&c->rings, false);
    while ((id = take_marked(c)))
        if (c->fd >= 0 && (c->greets || !send_detach(c, id, !rings && !wait_is_asking())))
            connection_hang_up(c);
    if (rings && !c->greets && c->fd >= 0 && bell_ring(c, 0))
        rings = false;
    else if (rings && !c->greets)
        connection_hang_up(c);
    /* the claim does not name what was given back, and lets the daemon wake event loops; a daemon
     * that is not there is not worth waiting for */
    if (c->fd < 0 || c->greets)
        connection_reopen(c);
    if (rings && !c->greets)
        bell_ring(c, 0);
}

void connection_give_back(struct shmview_connection *connection, int64_t attachment)
{
    NOT_CANCELLED;
    mark(connection, attachment);
    atomic_store(&connection->owes, true);
    if (connection_trylock(connection))
        connection_unlock(connection); /* which settles it; else the owner of the mutex does */
}
