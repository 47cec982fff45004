/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a connection that other rooms use: calls, detaching, and reports of changes. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#include "common/base/address.h"
#include "common/wire/frame.h"
#include "common/wire/wire.h"

#pragma GCC visibility push(hidden)

/* The place of a daemon. */
struct endpoint {
    address_path path;
    bool is_checked; /* the process that serves the socket must be root's or this user's */
};

/* The result of an attempt to reach a daemon; errors are negative. */
enum reach {
    REACHED,
    NOT_REACHED, /* with errno: no daemon answers there */
};

/* Connects to a daemon. *ret_fd is a socket, which the caller owns. If the daemon's queue of new
 * connections is full, the call waits for room; without waits it returns NOT_REACHED with EAGAIN.
 * Returns an enum reach or an error. */
int connection_dial(const struct endpoint *where, bool waits, int *ret_fd);
/* Returns the place to which the connection belongs; it lives as long as the connection. */
const struct endpoint *connection_endpoint(const struct shmview_connection *connection);

/* A reply and the descriptors that came with it. The caller of connection_call() owns it.
 *
 * The common reply to Attach and Create is read without JSON values, because that takes 0.5 us
 * instead of 11. Then is_attached is set, and segment and attachment have the content. A reply to
 * Stats stays text, which stats.c reads without JSON values. */
struct reply {
    struct wire_reply wire; /* any other reply; empty if is_attached, or if there is stats */
    bool is_attached;
    struct shmview_description segment; /* its strings are in room */
    struct wire_attachment attachment;
    char room[LIMIT_NAME_BYTES + 1];
    char *stats;        /* owned: the text of a reply to Stats, or NULL */
    size_t stats_bytes; /* of it, without the NUL */
    char *layouts;      /* owned: their text, an array; NULL: none, or no memory */
    struct frame_descriptors fds;
    int64_t held; /* the id of the attachment that the reply gives, which held.c has; 0: none */
};

/* Sends the request in call and waits for its reply. call is the whole text, for the method called
 * method. The function frees call; NULL means that there was no memory for it. Returns 0, after
 * which the caller must call reply_deinit(), or an error of the library or the daemon. */
int connection_call(struct shmview_connection *connection, const char *method, char *call,
                    struct reply *reply);

/* Like connection_call() for Create, but hands memory over to the daemon before that: fd, which
 * stays the caller's. */
int connection_hand_over(struct shmview_connection *connection, int fd, char *call,
                         struct reply *reply);

/* The most requests of a batch. */
#define BATCH_MAX 32

/* Sends n requests at once, and waits for their replies. text has all of them, each with its NUL.
 * replies has room for n. *ret_n is the number of replies that came, each of which is a success or
 * a refusal and needs reply_deinit(), also after an error. Returns 0; or an error if not all came:
 * -SHMVIEW_ERR_DISCONNECTED means that the daemon may have carried out some of the other requests,
 * or none. */
int connection_call_batch(struct shmview_connection *connection, const char *text, size_t bytes,
                          struct reply *replies, size_t n, size_t *ret_n);

void reply_deinit(struct reply *reply);

/* Registers a function that each shmview_disconnect() calls, because this room does not know
 * mappings. */
void connection_at_disconnect(void (*drop)(void));
/* Adds n to the number of segments that are attached through the connection. */
void connection_count(struct shmview_connection *connection, int n);
/* Reports to the daemon that the attachment has ended. Waits for no reply and for no other call; if
 * another thread uses the connection, that thread sends the report. The daemon receives it before
 * any later request of the connection. */
void connection_detach(struct shmview_connection *connection, int64_t attachment);
/* Locks the mutex of the connection unless another thread has it. Reports of the caller then wait
 * for connection_unlock() as well, which sends them together. In a forked child it first drops what
 * the parent had. Returns whether the caller has the mutex. */
bool connection_trylock(struct shmview_connection *connection);
/* Sends the reports that were left to the owner of the mutex, and unlocks it. */
void connection_unlock(struct shmview_connection *connection);
/* Whether the daemon still has the attachment, according to the replies read so far. */
bool connection_holds(struct shmview_connection *connection, int64_t attachment);
/* Reports to the daemon that the segment of this attachment has changed, so that it wakes the event
 * loops of the watchers. Does not wait. */
void connection_ring(struct shmview_connection *connection, int64_t attachment);
/* Reports to the daemon that a thread waits for `holder`, an id in the lock of the attachment's
 * segment. The daemon looks whether the holder's process is being ended. Does not wait, and keeps
 * errno. The report is lost if the daemon is away or busy. */
void connection_report_wait(const struct shmview_connection *connection, int64_t attachment,
                            uint32_t holder);

#pragma GCC visibility pop

#endif
