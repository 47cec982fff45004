/* SPDX-License-Identifier: Apache-2.0 */
/* One client: its socket, its process, its messages, its attachments.
 *
 *   new -> reading -> (answering -> reading)* -> closing -> freed
 *                          \-> streaming -------/
 *
 * Requests are taken one at a time; while an answer is being made or does not
 * fit into the socket, nothing more is read. So a client that does not read its
 * replies costs one reply; what all connections of a user hold, requests that are
 * not whole among it, is charged to him beyond a page each. The connection ends when the client's
 * process does (pidfd), or when its socket hangs up. A hang-up is the client's death only if it has
 * no presence: else what it has stays with it (client.h). */
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

/* An answer in the making. */
struct answer {
    int error;                    /* SHMVIEW_ERR_* or one of the above; 0: success */
    char *reason;                 /* owned; why it is refused; NULL: not known */
    json_t *parameters;           /* owned; of an error its other facts; NULL: none */
    char *text;                   /* owned; the whole reply, in their place */
    size_t text_bytes;            /* with its NUL */
    struct frame_descriptors fds; /* owned, or borrowed until the answer is taken */
    bool fds_borrowed;
    char *spare; /* owned; the whole reply if the descriptors cannot be sent; NULL: an error then */
    uint64_t attachment; /* that it tells of; 0: none */
    uint64_t created;    /* segment that was created for it; 0: none */
    bool pending;        /* comes later, by connection_answer() */
};

/* So long the last requests of a client that has gone may wait for their turn while it keeps its
 * attachments. */
#define CONNECTION_LINGER_MS 40

/* What a connection needs of the house above it. */
struct connection_events {
    /* A request; fills *answer, which is zeroed. */
    void (*call)(struct connection *connection, const struct wire_call *call,
                 struct answer *answer);
    /* It was closed: end its attachments, forget it, refund it unless strays is set. Freed soon
     * after. */
    void (*closed)(struct connection *connection);
    /* There is something to do for it: whether it may be done now; then end is called after it.
     * Else it waits until the owner calls turn.serve(). May be NULL: always. */
    bool (*begin)(struct connection *connection);
    void (*end)(struct connection *connection);
    /* It has more requests buffered than one turn may take. */
    void (*again)(struct connection *connection);
    /* It streams, and what was sent is on its way: there is room for more. May be NULL. */
    void (*drained)(struct connection *connection);
    /* A request of it is there: whether it may be taken now. If not, the owner sets throttled, and
     * calls connection_resume() when it may; nothing is read until then. May be NULL: always. */
    bool (*may_ask)(struct connection *connection);
    /* Nobody would hear the answer that is pending: there will be none. May be NULL. */
    void (*cancel)(struct connection *connection);
    /* Its client has died or hung up, and has sent requests that must wait: end its attachments
     * now. Called again whenever it waits again. May be NULL. */
    void (*gone)(struct connection *connection);
    /* Its client has gone too, but its turn may come before CONNECTION_LINGER_MS have passed: call
     * connection_end() soon, unless it was closed by then. May be NULL: gone is called at once. */
    void (*lingers)(struct connection *connection);
    /* A reply cannot be sent: undo what it gives. May be NULL. */
    void (*take_back)(struct connection *connection, const struct answer *answer);
};

struct connection {
    const struct connection_events *events;
    struct tally *tally;
    void *owner; /* of the events */
    struct peer peer;
    struct store_holder holder; /* as what it has is kept */
    struct client *client;      /* NULL: it has not said who it is */
    int fd;
    uv_poll_t socket_poll, process_poll;
    int watched;        /* events that socket_poll is armed for */
    unsigned n_handles; /* not yet closed by libuv */
    bool answering;     /* an answer is pending */
    bool oneway;        /* ... and nobody wants to hear it */
    bool more;          /* ... or many */
    bool streaming;     /* ... without an end: its client says nothing any more */
    bool half_closed;   /* the client has shut down its side; more may be unread */
    bool end_of_stream; /* the client has said all it will say */
    bool gone;          /* the client has died or hung up; its last requests are being done */
    int64_t gone_until_ns;
    bool closing;
    bool strays;      /* descriptors may lie in the socket; once it is closed: they do */
    struct turn turn; /* if it waits for that, no event is looked for */
    int due;          /* events that it waits with */
    bool throttled;   /* waits until it may ask again; never both */
    bool resumed;     /* may ask again, before others of its user that wait for that */
    struct frame in;
    char *out; /* what did not fit into the socket */
    size_t out_bytes, out_sent;
    struct frame_descriptors out_fds; /* owned; they go with the first byte */
    struct quota_user *payer;         /* who is charged for it; NULL: nobody */
    uint64_t in_charged, out_charged; /* bytes of in and out that he is charged for */
    struct bell *bell;                /* NULL: its client has none */
    struct attachments attachments;
    struct created_segments created; /* with lifetime "creator" */
    void *job;                       /* what it waits for, if answering */
    struct monitor *monitor;         /* what it tells, if streaming */
    LIST_ENTRY(connection) link;
    bool lingers; /* for the owner, as the next */
    TAILQ_ENTRY(connection) lingering;
    TAILQ_ENTRY(connection) waiting; /* of those that are throttled */
};

/* Takes over fd, a connected socket, and watches it. Returns the connection, which tally counts, or
 * NULL (fd is closed then). */
struct connection *connection_new(uv_loop_t *loop, int fd, const struct connection_events *events,
                                  struct tally *tally, void *owner);

/* Its process; ACTOR_NONE for NULL. */
struct actor connection_actor(const struct connection *connection);

/* Sends an answer that was pending. Takes what *answer owns. */
void connection_answer(struct connection *connection, struct answer *answer);

/* Sends one of many answers to a call that is pending: a reply of n bytes of text with its NUL
 * (new; stolen; NULL means memory was short). The connection has room for it: out is NULL. It may
 * be closed by that. */
void connection_stream(struct connection *connection, char *text, size_t n);

/* Sends an answer, to a call that was made or will be, and closes. Takes what *answer owns. */
void connection_refuse(struct connection *connection, struct answer *answer);

/* Takes up to one turn of the requests that are buffered. */
void connection_take_turn(struct connection *connection);

/* It is throttled no longer: takes the requests that are buffered, now or in its turn. */
void connection_resume(struct connection *connection);

/* Whether the peer can neither send nor receive any more. */
bool connection_hung_up(const struct connection *connection);

/* Closes it, after what its client has said before it died was read. */
void connection_end(struct connection *connection);

/* The client has died or hung up: nobody hears replies. What it has sent is still read and done,
 * but nothing can be added, although a forked child may hold the socket too. */
void connection_lose(struct connection *connection);

/* Charges for a buffer of bytes, in place of *charged. One that is larger than all of them may
 * be together counts as that, so that it may be there alone. Returns 0 or -EDQUOT. */
int connection_charge(struct connection *connection, uint64_t *charged, uint64_t bytes,
                      struct quota_excess *ret_excess);
void connection_refund(struct connection *connection, uint64_t *charged);

/* Closes it; at once for the caller, and for libuv when it can. */
void connection_close(struct connection *connection);

void answer_deinit(struct answer *answer);

#endif
