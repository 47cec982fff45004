/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: its socket, the process at the other end, messages and attachments.
 *
 *   new -> reading -> (answering -> reading)* -> closing -> freed
 *                          \-> streaming -------/
 *
 * The connection takes one request at a time. It reads nothing while an answer is being made, or
 * while a part of a reply does not fit into the socket. Thus a client that does not read its
 * replies costs the memory of one reply. Buffers of more than a page, for incomplete requests and
 * unread replies, are charged to the user.
 *
 * The connection ends when the process of its client ends (pidfd), or when the socket hangs up. If
 * the client has a presence, a hang-up is not its death, and it keeps its attachments (client.h).
 * Requests that the client sent before its end are still done, but nobody gets the replies: a
 * Detach among them must not be taken for a death.
 *
 * This module knows no method. The server (server.c) passes it functions for requests, turns and
 * ends. All of this is used on the loop only, and nothing blocks. */
#ifndef DAEMON_CONNECTION_H
#define DAEMON_CONNECTION_H

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "common/wire/frame.h"
#include "common/wire/wire.h"
#include "daemon/clients/peer.h"
#include "daemon/rights/turns.h"
#include "daemon/segments/attachment.h"

struct client;
struct connection;
struct digest;
struct handover;
struct monitor;
struct quota_excess;
struct quota_user;
struct tally;

/* Errors of org.varlink.service that no SHMVIEW_ERR_* stands for. */
enum {
    REFUSAL_NO_METHOD = 61,
    REFUSAL_NO_INTERFACE,
    REFUSAL_EXPECTED_MORE,
    N_REFUSALS
};

/* An answer that is being made by a method, or a refusal. Start from zero. The functions that send
 * it take what it owns; otherwise answer_deinit() frees that. */
struct answer {
    int error;                    /* SHMVIEW_ERR_* or one of the above; 0: success */
    char *reason;                 /* owned; the sentence of a refusal; NULL: none */
    json_t *parameters;           /* owned; results, or the facts of a refusal; NULL: none */
    char *text;                   /* owned; the whole reply, used in place of parameters */
    size_t text_bytes;            /* with its NUL */
    struct frame_descriptors fds; /* owned, or borrowed until the answer is taken */
    bool fds_borrowed;
    char *spare; /* owned; the whole reply if the descriptors cannot be sent; NULL: an error then */
    uint64_t attachment; /* the attachment that the reply gives; 0: none */
    uint64_t created;    /* the segment that was created for it; 0: none */
    uint64_t freezing;   /* the attachment whose freezing the reply begins; 0: none */
    bool pending;        /* comes later, by connection_answer() */
};

/* How long a client that has gone keeps its attachments while its last requests wait for a turn, or
 * for a thread that reads one. */
#define CONNECTION_LINGER_MS 40

/* Functions of the owner, which a connection calls. */
struct connection_events {
    /* Does a request; fills *answer, which is zeroed. */
    void (*call)(struct connection *connection, const struct wire_call *call,
                 struct answer *answer);
    /* A thread begins to read a long request, of n bytes: takes what its call will need and what
     * takes long, so that not all of it is in one turn of the loop. May be NULL. */
    void (*expect)(struct connection *connection, size_t n);
    /* For a long request: does the part of it that takes long and needs no state of the daemon, on
     * a thread. Returns what call() finds in connection->prepared, or NULL. unprepare() frees that
     * if call() is not called. May be NULL, both. */
    void *(*prepare)(const struct wire_call *call);
    void (*unprepare)(void *prepared);
    /* The connection was closed: ends its attachments and forgets it. Refunds it, unless strays is
     * set; stray.c refunds it then. The connection is freed soon after. */
    void (*closed)(struct connection *connection);
    /* There is something to do. Returns whether it may be done now; then end() is called after it.
     * Otherwise the connection waits until the owner calls turn.serve(). NULL: always now. */
    bool (*begin)(struct connection *connection);
    void (*end)(struct connection *connection);
    /* The connection has buffered more requests than one turn may take. */
    void (*again)(struct connection *connection);
    /* A stream has sent all that was kept: there is room for more. May be NULL. */
    void (*drained)(struct connection *connection);
    /* Returns whether a request may be taken now. If not, the owner has set throttled, and calls
     * connection_resume() later; nothing is read until then. NULL: always. */
    bool (*may_ask)(struct connection *connection);
    /* Nobody would get the answer that is pending: the owner must not send it. May be NULL. */
    void (*cancel)(struct connection *connection);
    /* The client has died or hung up, and its last requests must wait: ends its attachments now, so
     * that its locks do not wait too. Called again whenever the requests wait again. May be NULL.
     */
    void (*gone)(struct connection *connection);
    /* Like gone(), but the turn or the thread may come before CONNECTION_LINGER_MS have passed: the
     * owner calls connection_end() soon, unless the connection is closed by then. NULL: gone() is
     * called. */
    void (*lingers)(struct connection *connection);
    /* The socket takes nothing of a reply with descriptors: charges the payer for one connection
     * more, because the reply would keep up to as many descriptors. Returns whether the payer may
     * have it; if not, the reply is not sent. NULL: always, without a charge. */
    bool (*keep)(struct connection *connection);
    /* A reply cannot be sent: undoes what it would have given. May be NULL. */
    void (*take_back)(struct connection *connection, const struct answer *answer);
};

/* One connection. connection_new() makes it, and it is freed after connection_close(), as soon as
 * libuv has closed its handles. Other modules write some members: reply.c the reply in out,
 * throttle.c the state of being throttled, the server and daemon/requests the rest from payer on.
 */
struct connection {
    const struct connection_events *events;
    struct tally *tally;
    void *owner; /* of the events */
    struct peer peer;
    struct store_holder holder; /* the client, as records of its attachments have it */
    struct client *client;      /* NULL: it has not sent Claim */
    int fd;                     /* owned */
    uv_poll_t socket_poll, process_poll;
    int watched;           /* events that socket_poll is armed for */
    unsigned n_handles;    /* not yet closed by libuv */
    bool answering;        /* an answer is pending, or a thread reads a request */
    bool oneway;           /* the call wants no reply */
    bool more;             /* the call accepts many replies */
    bool streaming;        /* replies follow without an end; the client sends no further requests */
    bool half_closed;      /* the client has shut down its side; there may be unread requests */
    bool end_of_stream;    /* everything that the client sent has been received */
    bool gone;             /* the client has died or hung up; its last requests are being done */
    int64_t gone_until_ns; /* requests that still wait then are dropped */
    bool closing;
    bool strays;      /* descriptors may lie in the socket; once it is closed: they do */
    struct turn turn; /* while it waits, the socket is not polled */
    int due;          /* events of the socket to be handled in that turn */
    bool throttled;   /* waits until its user may send a request again; never while turn waits */
    bool resumed;     /* may send one now, before other throttled connections of its user */
    struct frame in;
    struct digest *digest; /* owned; a long request; NULL: none */
    void *prepared;        /* owned; what events->prepare() returned, until call() takes it */
    char *out; /* the reply of which a part did not fit into the socket, owned; or NULL */
    size_t out_bytes, out_sent;
    struct frame_descriptors out_fds; /* owned; sent with the first byte of out */
    bool out_fds_charged;             /* the user is charged for one connection more */
    struct quota_user *payer;         /* the user who is charged; NULL: nobody. Set by the owner */
    uint64_t in_charged, out_charged; /* bytes of in and out that the user is charged for */
    struct bell *bell;                /* owned; NULL: its client has none */
    struct handover *handover;        /* owned; NULL: its client passes no memory */
    struct attachments attachments;
    struct created_segments created; /* with lifetime "creator" */
    void *job;                       /* what a pending answer waits for; of daemon/requests */
    struct monitor *monitor;         /* the events that it sends, if streaming */
    LIST_ENTRY(connection) link;     /* in the owner's list */
    bool lingers;                    /* in the owner's list of connections that linger */
    TAILQ_ENTRY(connection) lingering;
    TAILQ_ENTRY(connection) waiting; /* in the list of throttled connections of its user */
};

/* Takes over fd, a connected socket, and watches it and the process at its other end. Returns the
 * connection, which tally counts. Returns NULL if that process is dead, or after logging an error;
 * fd is closed then. */
struct connection *connection_new(uv_loop_t *loop, int fd, const struct connection_events *events,
                                  struct tally *tally, void *owner);

/* Returns the process of the connection, for events; ACTOR_NONE for NULL. */
struct actor connection_actor(const struct connection *connection);

/* Sends an answer that was pending, and goes on with the next request. Takes what *answer owns. May
 * close the connection. */
void connection_answer(struct connection *connection, struct answer *answer);

/* Sends one of many answers to a call that is pending: a reply of n bytes of text with its NUL. The
 * text is new and stolen; NULL means that memory was short, and closes the connection. There must
 * be room for it: out is NULL. May close the connection. */
void connection_stream(struct connection *connection, char *text, size_t n);

/* Sends an answer and closes the connection. The client may not have called yet: it then gets the
 * answer for its first call. Takes what *answer owns. */
void connection_refuse(struct connection *connection, struct answer *answer);

/* Takes as many of the buffered requests as one turn may take. May close the connection. */
void connection_take_turn(struct connection *connection);

/* Called by digest.c when a thread has read a long request. Takes it with digest_take(), now or in
 * its turn. May close the connection. */
void connection_digested(struct connection *connection);

/* Call when the connection is no longer throttled. Takes the requests that are buffered, now or in
 * its turn. */
void connection_resume(struct connection *connection);

/* Whether the peer can neither send nor receive now. */
bool connection_hung_up(const struct connection *connection);

/* Call when the client has died or hung up. Does its last requests, now or in turns, and then
 * closes the connection. May be called again while they wait. */
void connection_end(struct connection *connection);

/* Stops replies to a client that has died or hung up. Requests that it sent before are still read
 * and done. The socket takes no further ones, although a forked child may hold it as well. Closes a
 * connection that streams. */
void connection_lose(struct connection *connection);

/* Charges the user for a buffer of `bytes`, in place of *charged bytes. A buffer that is larger
 * than the limit for all buffers together counts as that limit, so that it is allowed while it is
 * the only one. Returns 0, or -EDQUOT with *ret_excess. */
int connection_charge(struct connection *connection, uint64_t *charged, uint64_t bytes,
                      struct quota_excess *ret_excess);
/* Refunds *charged bytes, and sets them to 0. */
void connection_refund(struct connection *connection, uint64_t *charged);

/* Closes the connection for the caller at once, and calls closed(). libuv frees it later. Does
 * nothing if it is closed already. */
void connection_close(struct connection *connection);

/* Frees what the answer owns, and zeroes it. */
void answer_deinit(struct answer *answer);

#endif
