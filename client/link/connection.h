/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind a connection, and what the files of this room share. */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "client/link/call.h"
#include "common/base/spin.h"

#pragma GCC visibility push(hidden)

struct shmview_connection {
    pthread_mutex_t mutex; /* everything below */
    _Atomic uint32_t epoch;
    int fd;              /* -1: connect before the next call */
    dev_t socket_device; /* of fd, which is ours as long as it is this file */
    ino_t socket_inode;
    void *presence;   /* mapped as long as this process exists, for the daemon; NULL: not mapped */
    _Atomic int bell; /* changed under mutex; -1: none */
    _Atomic dev_t bell_device;
    _Atomic ino_t bell_inode;
    bool greets;    /* a claim was sent, its reply not yet read */
    bool may_start; /* a session daemon, if there is none */
    struct endpoint where;
    int64_t client; /* the number that the daemon knows it by */
    _Atomic unsigned n_segments;
    _Atomic bool owes;            /* attachments must be given back, or changes reported */
    _Atomic bool rings;           /* ... changes */
    bool is_late;                 /* ... and could not be reported yet: the next call tries again */
    int64_t *held;                /* their ids; negative: must be given back */
    size_t n_held, held_capacity; /* ... under process->details */
    struct frame in;
    struct frame_descriptors arrived; /* with a reply to Claim, or a part of it */
    struct spin spin;                 /* for replies */
    LIST_ENTRY(shmview_connection) link;
};

/* --- call.c -------------------------------------------------------------- */

/* Forgets the socket and what was read from it. */
void connection_hang_up(struct shmview_connection *connection);
/* Hangs up, because of the error, which it returns. */
int connection_fail(struct shmview_connection *connection, int error, const char *why);
/* Hangs up, because the caller has ended a wait: the daemon's answer would be taken for that to the
 * next request. */
int connection_interrupted(struct shmview_connection *connection);
/* Sends all of it. Returns 0 or -errno; -ECANCELED: the caller has ended the wait. */
int connection_send(const struct shmview_connection *connection, const char *text, size_t n);
/* Whether sending failed with r because the daemon does not hear. A daemon that refuses to hear
 * sends its reason before it hangs up, so there may be something to receive where sending fails. */
bool connection_is_refused(const struct shmview_connection *connection, int r);
/* Receives a reply. Returns 0 and owes reply_deinit(), or an error, having hung up. */
int connection_receive(struct shmview_connection *connection, struct reply *reply);
/* Hangs up. r is what frame_receive() returned: 0, or -errno. Returns an error. */
int connection_receive_failed(struct shmview_connection *connection, ssize_t r);
/* Like connection_receive_failed(), for a reply that could not be read: the daemon takes back what
 * the reply gave when it reads a claim that does not name it. */
int connection_unreadable(struct shmview_connection *connection, const struct wire_fault *fault);

/* Locks connection->mutex unless another thread has it; in a forked child as well. */
bool connection_trylock(struct shmview_connection *connection);
/* Does what other threads have left to the owner of the mutex, and unlocks it. */
void connection_unlock(struct shmview_connection *connection);

/* --- claim.c ------------------------------------------------------------- */

/* Connects to path and sends a claim. Returns an enum reach or an error. */
int connection_open(struct shmview_connection *connection);
/* Like connection_open(), but does not wait, and does not ask whether a wait goes on. The reply to
 * the claim, or the rest of it, may still be on its way then: the next call reads it. Returns
 * false if it fails although a daemon may be there. */
bool connection_reopen(struct shmview_connection *connection);
/* Sends a claim over the socket that it has, without waiting; connection_reopen() reads the reply.
 * The daemon then wakes those who watch what is attached, and sends a new bell. Returns 0; -ENOMEM;
 * -EAGAIN if the socket is full; any other -errno if the socket is broken. */
int connection_claim(struct shmview_connection *connection);
/* Reads the reply to a claim that was sent. Returns an enum reach, NOT_REACHED also where the
 * daemon is leaving; or an error. */
int connection_be_greeted(struct shmview_connection *connection);

/* --- socket.c ------------------------------------------------------------ */

/* On the list of those whose descriptors a forked child closes. */
void connection_enlist(struct shmview_connection *connection);
void connection_delist(struct shmview_connection *connection);
/* A number by which a daemon can know a client; no other process has it. */
int64_t client_number(void);
/* In a forked child, under NOT_FORKED: forgets what its ancestor had. */
void connection_disown(struct shmview_connection *connection);

/* Gives it a socket, which is closed on failure. Returns 0 or an error. */
int connection_take_socket(struct shmview_connection *connection, int fd);
/* Whether the connection has a socket, and its number still is that: the program may have closed
 * it and have given the number to another file. Safe in a signal handler. */
bool connection_has_socket(const struct shmview_connection *connection);
/* Closes the socket unless the program has given its number to another file. */
void connection_close_socket(struct shmview_connection *connection);

/* Maps the file that the daemon has sent, in place of an older one; where that fails there is
 * no presence, or the older one. fd stays the caller's. */
void connection_map_presence(struct shmview_connection *connection, int fd);
void connection_unmap_presence(struct shmview_connection *connection);

/* --- bell.c --------------------------------------------------------------- */

/* Has *fd as its bell, and sets that to -1; or a duplicate of it under the number of the older
 * bell, so that others may ring meanwhile. Where that fails the older bell stays. */
void bell_take(struct shmview_connection *connection, int *fd);
/* Safe in a signal handler. */
void bell_close(struct shmview_connection *connection);
/* Returns whether the daemon will hear of it. attachment 0: of all. */
bool bell_ring(const struct shmview_connection *connection, int64_t attachment);

/* --- held.c --------------------------------------------------------------- */

/* Makes room for one more attachment. Returns 0 or -ENOMEM. */
int connection_reserve(struct shmview_connection *connection);
/* Notes that the attachment is there; there is room for it. */
void connection_hold(struct shmview_connection *connection, int64_t attachment);
/* The daemon has these, sorted, and no others of those that a claim has named: forgets the rest. */
void connection_keep(struct shmview_connection *connection, const struct wire_held *held, size_t n);
bool connection_holds_any(struct shmview_connection *connection);
/* Does what other threads have left to the owner of the mutex, the caller. Waits for a moment where
 * the socket is full, and not even that where a change must be reported. No wait here asks the
 * caller's function, so that none can be ended without being reported. */
void connection_settle(struct shmview_connection *connection);
/* The ids that a claim names, new; NULL if memory is short. */
int64_t *connection_claims(struct shmview_connection *connection, size_t *ret_n);

/* --- session.c ----------------------------------------------------------- */

/* Starts this user's session daemon and waits until it listens or has failed.
 * Returns 0, -1 with a line about the cause in text, or -SHMVIEW_ERR_INTERRUPTED. */
int session_start(const char *path, char *text, size_t bytes);

#pragma GCC visibility pop

#endif
