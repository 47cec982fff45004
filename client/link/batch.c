/* SPDX-License-Identifier: Apache-2.0 */
/* Many requests in one exchange: all are sent, and then all replies are read.
 *
 * The daemon answers the requests of a connection in their order. A batch is short, so that
 * requests and replies fit into the buffers of the socket and neither side waits for the other to
 * read. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "client/link/connection.h"
#include "common/base/util.h"

/* Returns how many descriptors belong to the reply. */
static size_t own_descriptors(const struct reply *reply)
{
    const json_t *attachment = json_object_get(reply->wire.parameters, "attachment");
    json_int_t n = reply->is_attached
                       ? reply->attachment.descriptors
                       : json_integer_value(json_object_get(attachment, "descriptors"));
    return n < 0 ? 0 : (size_t)n;
}

/* Moves descriptors that do not belong to the reply to the next one: a receive may end
 * with the first byte of the next one, and all its descriptors come with that byte. */
static void pass_on_descriptors(struct reply *reply, struct reply *next)
{
    size_t own = own_descriptors(reply);
    if (reply->fds.n > own) {
        memcpy(next->fds.fd, reply->fds.fd + own, (reply->fds.n - own) * sizeof *next->fds.fd);
        next->fds.n = reply->fds.n - own;
        reply->fds.n = own;
    }
    if (own == 0) {
        next->fds.lost = reply->fds.lost;
        reply->fds.lost = false;
    }
}

/* Reads the replies, the first of which is reply[0]. Returns 0 or an error. */
static int receive_all(struct shmview_connection *c, struct reply *replies, size_t n, size_t *ret_n)
{
    for (*ret_n = 0; *ret_n < n; ++*ret_n) {
        struct reply *reply = &replies[*ret_n];
        c->n_follow = n - *ret_n - 1;
        int r = connection_receive(c, reply);
        if (r) {
            reply_deinit(reply); /* its descriptors may have come without the rest */
            return r;
        }
        c->is_answered = true;
        connection_note_held(c, reply);
        if (c->n_follow)
            pass_on_descriptors(reply, reply + 1);
    }
    return 0;
}

/* Hangs up if the daemon is gone already, or the program has closed the socket by mistake, so that
 * the batch goes over another socket. Otherwise only the send would show it, and then nobody knows
 * which requests a daemon has received. */
static void leave_dead(struct shmview_connection *c)
{
    struct pollfd p = {.fd = c->fd};
    if (c->fd < 0)
        return;
    if (!connection_has_socket(c) || (poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR)))
        connection_hang_up(c);
}

int connection_call_batch(struct shmview_connection *connection, const char *text, size_t bytes,
                          struct reply *replies, size_t n, size_t *ret_n)
{
    struct shmview_connection *c = connection;
    NOT_CANCELLED;
    *ret_n = 0;
    memset(replies, 0, n * sizeof *replies);
    int r = connection_begin(c);
    if (r)
        return r;
    leave_dead(c);
    r = connection_be_ready(c, n);
    if (r == 0) {
        r = connection_send(c, text, bytes);
        if (r == -ECANCELED)
            r = connection_interrupted(c);
        else if (r)
            r = connection_fail(c, SHMVIEW_ERR_DISCONNECTED, strerror(-r));
        else
            r = receive_all(c, replies, n, ret_n);
        c->n_follow = 0;
        c->is_answered = false;
    }
    connection_unlock(c);
    return r;
}
