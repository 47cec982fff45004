/* SPDX-License-Identifier: Apache-2.0 */
/* What other rooms need of a connection: calls, and what becomes of an attachment. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#include "common/base/address.h"
#include "common/wire/frame.h"
#include "common/wire/wire.h"

#pragma GCC visibility push(hidden)

/* Where a daemon is. */
struct endpoint {
    address_path path;
    bool is_checked; /* the process that serves the socket must be root's or this user's */
};

/* What comes of an attempt to reach a daemon, unless it fails. */
enum reach {
    REACHED,
    NOT_REACHED, /* with errno: no daemon answers there */
};

/* Connects: *ret_fd is a socket, the caller's. waits: also where the daemon's queue of new
 * connections is full, until there is room. Otherwise a full queue is NOT_REACHED with EAGAIN.
 * Returns an enum reach or an error. */
int connection_dial(const struct endpoint *where, bool waits, int *ret_fd);
const struct endpoint *connection_endpoint(const struct shmview_connection *connection);

/* A reply and the descriptors that came with it. */
struct reply {
    struct wire_reply wire;             /* nothing, if it is_attached */
    bool is_attached;                   /* the usual one to Attach and Create */
    struct shmview_description segment; /* ... then what it tells; strings are in room */
    struct wire_attachment attachment;
    char room[LIMIT_NAME_BYTES + 1];
    struct frame_descriptors fds;
    int64_t held; /* the id of the attachment that it gives, which is noted; 0: none */
};

/* Makes the call of method, the whole of which is the text call (new; stolen; NULL means memory was
 * short), and waits for the reply. Returns 0 and owes reply_deinit(), or the error, the daemon's
 * included. */
int connection_call(struct shmview_connection *connection, const char *method, char *call,
                    struct reply *reply);

void reply_deinit(struct reply *reply);

/* One more segment is attached through it, or one less. */
void connection_count(struct shmview_connection *connection, int n);
/* The attachment has ended: notifies the daemon, and waits for no reply and no other call. Requests
 * on the connection from then on come after that. */
void connection_detach(struct shmview_connection *connection, int64_t attachment);
/* Whether the daemon has the attachment, as far as it has reported. */
bool connection_holds(struct shmview_connection *connection, int64_t attachment);
/* The segment has changed: lets the daemon wake those who watch it. Waits for nobody. */
void connection_ring(struct shmview_connection *connection, int64_t attachment);

#pragma GCC visibility pop

#endif
