/* SPDX-License-Identifier: Apache-2.0 */
/* Passes memory of this process to the daemon: HandOver, the descriptor, and then the request that
 * uses it. The mutex of the connection is held over both requests, because a connection has one
 * handover at a time. If the daemon is restarted between them, they begin again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/link/connection.h"
#include "common/base/util.h"

/* Sends the descriptor through the socket that the reply to HandOver has brought. Hangs up if the
 * daemon has, so that the next attempt connects. Returns 0 or an error. */
static int pass(struct shmview_connection *c, const struct reply *reply, int fd)
{
    const json_t *socket = json_object_get(reply->wire.parameters, "socket");
    const char *reason;
    if (reply->wire.error) {
        int error = wire_error_code(&reply->wire, &reason);
        return fail(error == SHMVIEW_ERR_PROTOCOL ? SHMVIEW_ERR_UNSUPPORTED : error,
                    "memory cannot be handed over: %s", reason);
    }
    if (reply->fds.lost)
        return fail_errno("the socket for memory of a segment", EMFILE);
    if (!json_is_integer(socket) || json_integer_value(socket) != 0 || reply->fds.n != 1)
        return fail(SHMVIEW_ERR_PROTOCOL, "the reply to HandOver has %zu descriptors",
                    reply->fds.n);
    ssize_t n = frame_send(reply->fds.fd[0], "", 1, &fd, 1);
    if (n == -EPIPE || n == -ECONNRESET)
        return connection_fail(c, SHMVIEW_ERR_DISCONNECTED,
                               "the daemon ended while memory was handed over");
    return n == 1 ? 0 : fail_errno("memory of a segment", n < 0 ? (int)-n : EIO);
}

/* Does HandOver, and sends the descriptor. Returns 0 or an error. */
static int hand_over(struct shmview_connection *c, int fd)
{
    struct reply reply = {0};
    bool sent;
    CLEANUP_FREE char *text = wire_hand_over_text();
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = connection_ask(c, text, strlen(text) + 1, &reply, &sent);
    if (r == 0)
        r = pass(c, &reply, fd);
    reply_deinit(&reply);
    return r;
}

int connection_hand_over(struct shmview_connection *connection, int fd, char *call,
                         struct reply *reply)
{
    struct shmview_connection *c = connection;
    CLEANUP_FREE char *text = call;
    *reply = (struct reply){0};
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    NOT_CANCELLED;
    int r = connection_begin(c);
    if (r)
        return r;
    bool sent = false;
    for (int attempt = 0; attempt < 3 && !sent; attempt++) {
        reply_deinit(reply); /* of the attempt before */
        *reply = (struct reply){0};
        r = connection_be_ready(c, 1);
        if (r)
            break;
        r = hand_over(c, fd);
        if (r == 0)
            r = connection_ask(c, text, strlen(text) + 1, reply, &sent);
        if (r == 0)
            connection_note_held(c, reply);
        if (r != -SHMVIEW_ERR_DISCONNECTED)
            break;
    }
    connection_unlock(c);
    return connection_result(r, reply);
}
