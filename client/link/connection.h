/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a connection, and the functions that the files of this room share. */
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

/* One connection. The program owns it, from shmview_connect() to shmview_disconnect().
 *
 * The mutex protects every member that is not atomic and has no other note. A thread holds it for
 * a whole call, because replies come in the order of the requests. A thread that must not wait sets
 * an atomic flag instead, and the owner of the mutex does the work before it unlocks. A change of
 * a descriptor is also made under NOT_FORKED, because a forked child closes them all. */
struct shmview_connection {
    pthread_mutex_t mutex;
    _Atomic uint32_t epoch; /* of the process that uses it; changed under process->mutex */
    int fd;                 /* -1: connect before the next call */
    dev_t socket_device;    /* with socket_inode: the file that fd was when it was opened */
    ino_t socket_inode;
    void *presence;   /* a mapping by which the daemon knows that this process lives, or NULL */
    _Atomic int bell; /* -1: none. Changed by the owner of mutex, rung by any thread */
    _Atomic dev_t bell_device;
    _Atomic ino_t bell_inode;
    size_t n_follow;  /* replies that are due after the next one */
    bool is_answered; /* a reply of the batch has come, so that the next one may be there, too */
    bool greets;      /* a claim was sent, and its reply is not yet read */
    bool may_start;   /* starts a session daemon if there is none */
    struct endpoint where;
    int64_t client; /* the number by which the daemon knows this client */
    _Atomic unsigned n_segments;
    _Atomic bool owes;            /* the daemon must get reports of detaching or of changes */
    _Atomic bool rings;           /* ... of changes */
    bool is_late;                 /* a report could not be sent: the next call tries again */
    int64_t *held;                /* ids of attachments; negative: the end is not yet reported */
    size_t n_held, held_capacity; /* of held; all three under process->details */
    struct frame in;
    struct frame_descriptors arrived; /* with the reply to a claim, or with a part of it */
    struct spin spin;                 /* how long to poll for a reply */
    LIST_ENTRY(shmview_connection) link;
};

/* --- call.c -------------------------------------------------------------- */

/* Closes the socket and drops all that was read from it. */
void connection_hang_up(struct shmview_connection *connection);
/* Hangs up and sets the text of the error. Returns -error. */
int connection_fail(struct shmview_connection *connection, int error, const char *why);
/* Hangs up, because the caller's function has ended a wait. Otherwise the next request would get
 * the reply to this one. Returns -SHMVIEW_ERR_INTERRUPTED. */
int connection_interrupted(struct shmview_connection *connection);
/* Sends n bytes of text, and waits while the socket is full. Returns 0 or -errno; -ECANCELED if the
 * caller's function has ended the wait. */
int connection_send(const struct shmview_connection *connection, const char *text, size_t n);
/* Whether sending failed with r because the daemon has hung up. A daemon that refuses a client
 * sends the reason first. So the caller should receive that reply, which cannot block then. */
bool connection_is_refused(const struct shmview_connection *connection, int r);
/* Waits for a reply and reads it. Returns 0, after which the caller must call reply_deinit(), or an
 * error after it has hung up. */
int connection_receive(struct shmview_connection *connection, struct reply *reply);
/* Hangs up after a failure of frame_receive(), which returned r: 0, or -errno. Returns an error. */
int connection_receive_failed(struct shmview_connection *connection, ssize_t r);
/* Like connection_receive_failed(), but for a reply that could not be read. If it gave an
 * attachment, the daemon ends it when it reads a claim that does not name it. */
int connection_unreadable(struct shmview_connection *connection, const struct wire_fault *fault);

/* Begins a call: checks that this thread may make one, locks connection->mutex, and sends the
 * reports that earlier calls have left. Returns 0, after which the caller must call
 * connection_unlock(), or an error. */
int connection_begin(struct shmview_connection *connection);
/* Connects if necessary, and allocates room for n replies and the ids of their attachments, so that
 * a lack of memory cannot make the client lose a reply. Returns 0 or an error. */
int connection_be_ready(struct shmview_connection *connection, size_t n);
/* Sends the request and receives the reply. *ret_sent: whether the request was sent whole. Returns
 * 0 or an error. */
int connection_ask(struct shmview_connection *connection, const char *text, size_t n,
                   struct reply *reply, bool *ret_sent);
/* Returns the result of a call that has ended with r: r, or the error that the reply is. After an
 * error it has called reply_deinit(). */
int connection_result(int r, struct reply *reply);
/* Adds the attachment of a reply to the list while this thread still has the mutex, so that a claim
 * by another thread names it. connection_be_ready() has made the room. */
void connection_note_held(struct shmview_connection *connection, struct reply *reply);

/* --- claim.c ------------------------------------------------------------- */

/* Connects to the daemon at where, sends a claim and reads its reply. Returns an enum reach or an
 * error. */
int connection_open(struct shmview_connection *connection);
/* Like connection_open(), but waits at most 0.3 ms and does not run the caller's function. A reply
 * that has not arrived by then is left to the next call. Keeps errno and the text of the last
 * error. Returns false if it failed although a daemon may be there. */
bool connection_reopen(struct shmview_connection *connection);
/* Sends a claim over the existing socket, without waiting; connection_reopen() reads the reply.
 * The daemon then wakes the watchers of all segments that this client has attached, and sends a new
 * bell. Returns 0; -ENOMEM; -EAGAIN if the socket is full; or another -errno if it is broken. */
int connection_claim(struct shmview_connection *connection);
/* Waits for the reply to a claim that was sent, and reads it. Returns an enum reach (NOT_REACHED
 * also if the daemon is about to exit) or an error. */
int connection_be_greeted(struct shmview_connection *connection);

/* --- socket.c ------------------------------------------------------------ */

/* Add the connection to the list of those whose descriptors a forked child closes; remove it. */
void connection_enlist(struct shmview_connection *connection);
void connection_delist(struct shmview_connection *connection);
/* Returns a random number above 0, by which the daemon recognises this client. */
int64_t client_number(void);
/* Drops what the parent had and gives the connection a new client number. For a forked child, under
 * NOT_FORKED. */
void connection_disown(struct shmview_connection *connection);

/* Gives the connection a socket, and closes fd on failure. Returns 0 or an error. */
int connection_take_socket(struct shmview_connection *connection, int fd);
/* Whether the connection has a socket and fd is still that socket. The program may have closed it
 * by mistake and reused the number. Safe in a signal handler. */
bool connection_has_socket(const struct shmview_connection *connection);
/* Closes the socket unless the program has given its number to another file. */
void connection_close_socket(struct shmview_connection *connection);

/* Maps the presence that the daemon has sent, and unmaps an older one. If that fails, the older one
 * stays. The caller still owns fd. */
void connection_map_presence(struct shmview_connection *connection, int fd);
void connection_unmap_presence(struct shmview_connection *connection);

/* --- bell.c --------------------------------------------------------------- */

/* Makes *fd the bell and sets *fd to -1. If there is an older bell, the new one gets its number if
 * it can, so that other threads can ring at any time. If *fd cannot be examined, the older bell
 * stays. */
void bell_take(struct shmview_connection *connection, int *fd);
/* Closes the bell, if there is one. Safe in a signal handler. */
void bell_close(struct shmview_connection *connection);
/* Reports a change of one attachment's segment, or of all (attachment 0), without waiting. Returns
 * whether the daemon will receive the report. */
bool bell_ring(const struct shmview_connection *connection, int64_t attachment);

/* --- held.c --------------------------------------------------------------- */

/* Makes room for n more attachments. Returns 0 or -ENOMEM. */
int connection_reserve(struct shmview_connection *connection, size_t n);
/* Adds an attachment, for which connection_reserve() has made room. */
void connection_hold(struct shmview_connection *connection, int64_t attachment);
/* Removes the attachments that the daemon does not have. held lists those that it has, sorted. Ids
 * whose end is not yet reported stay. */
void connection_keep(struct shmview_connection *connection, const int64_t *held, size_t n);
/* Whether there is any attachment, or one whose end is not yet reported. */
bool connection_holds_any(struct shmview_connection *connection);
/* Sends the reports that other threads have left to the owner of the mutex, which is the caller. If
 * the socket is full, it waits for at most 0.1 s, or not at all if a change must be reported. It
 * does not run the caller's function, because a call that frees a handle could not return that the
 * wait was ended. */
void connection_settle(struct shmview_connection *connection);
/* Returns the ids that a claim names, which the caller frees, or NULL if there is no memory. */
int64_t *connection_claims(struct shmview_connection *connection, size_t *ret_n);

/* --- session.c ----------------------------------------------------------- */

/* A result of session_start(): the daemon listens or has failed, as a try to connect shows. */
#define SESSION_UNKNOWN 1

/* Starts a session daemon for this user and waits until it listens or has failed. Returns 0,
 * SESSION_UNKNOWN or -1 with the cause of a failure as one line in text, or
 * -SHMVIEW_ERR_INTERRUPTED. */
int session_start(const char *path, char *text, size_t bytes);

#pragma GCC visibility pop

#endif
