/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/bell.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/loop.h"
#include "daemon/base/slice.h"
#include "daemon/clients/client.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/stray.h"
#include "daemon/rights/quota.h"
#include "daemon/rights/turns.h"
#include "daemon/segments/ringing.h"
#include "daemon/segments/use.h"

#define RINGS_A_TURN 64
/* A client drops a ring if the queue is full. After this many rings without a pause some may thus
 * be missing, so the watchers of all segments that the client has attached are woken. The queue has
 * room for many more, so no ring is dropped before this number is reached. */
#define MANY_RINGS  8
#define QUEUE_BYTES 65536

/* Used on the loop only. Belongs to its connection; freed when libuv has closed `poll`. */
struct bell {
    uv_poll_t poll;
    struct turns *turns;
    struct turn turn;
    struct connection *connection;
    struct quota_user *payer; /* once it is closed with descriptors: is charged for it */
    int fd;                   /* the daemon's end, owned */
    unsigned n;               /* messages since the queue was empty */
    bool for_all;             /* there were so many of them that all segments must be rung for */
    bool has_ended;           /* the client has closed its end, or sent a descriptor */
    bool strays;              /* descriptors may lie in the socket; once it is closed: they do */
};

/* What a client sends: the first member alone for a change, both if it waits for a holder. */
struct message {
    uint64_t attachment;
    uint64_t holder; /* the id that the lock has for it */
};

static void ring_one(const struct bell *b, uint64_t id)
{
    const struct attachment *a = attachment_find(&b->connection->attachments, id);
    if (a && a->slot != SLOT_NONE) /* an attachment without a slot has no counter to change */
        attachment_ring(a->segment);
}

/* Queues every watched segment of the connection. Wakes nobody itself, because there may be
 * thousands of segments. */
static void ring_all(const struct connection *c)
{
    const struct attachment *a;
    LIST_FOREACH (a, &c->attachments, link)
        if (a->slot != SLOT_NONE && a->segment->use->n_watches)
            ringing_add(a->segment->use);
}

/* A thread of the client waits for a holder of the lock. Returns the client that holds it if the
 * kernel is ending its process, otherwise NULL. */
static struct client *look_at_holder(const struct bell *b, const struct message *m)
{
    const struct client *own = b->connection->client;
    const struct attachment *a = attachment_find(&b->connection->attachments, m->attachment),
                            *holder;
    if (!own || !a || !(holder = attachment_of_holder(a->segment, m->holder)))
        return NULL;
    return client_look(own, &holder->holder);
}

/* Returns the length of the message, 0 at the end, or -errno. */
static ssize_t receive(const struct bell *b, struct message *m)
{
    if (b->strays)
        return stray_receive_message(b->fd, m, sizeof *m);
    ssize_t n = recv(b->fd, m, sizeof *m, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

/* Takes up to `most` messages from the queue, and rings for each until there are too many of them.
 * Looks at one holder at most, because a look takes time and a client that waits sends the next
 * message soon. Returns a client for client_end_exiting(), or NULL. */
static struct client *take_rings(struct bell *b, int most)
{
    ssize_t n = 1;
    struct client *exiting = NULL;
    bool has_looked = false;
    for (int i = 0; i < most; i++) {
        struct message m = {0};
        n = receive(b, &m);
        if (n <= 0)
            break;
        bool is_look = n == sizeof m;
        /* 0 is the id of no attachment: it stands for all of them */
        b->n += is_look || m.attachment ? 1 : MANY_RINGS;
        if (b->n >= MANY_RINGS)
            b->for_all = true;
        else if (n == sizeof m.attachment)
            ring_one(b, m.attachment);
        if (is_look && !has_looked)
            exiting = look_at_holder(b, &m);
        has_looked |= is_look;
    }
    if (n <= 0)
        b->n = 0;
    if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
        b->has_ended = true;
    return exiting;
}

static void on_ring(uv_poll_t *poll, int status, int events);

/* Polls the socket unless that is useless: a socket at its end, or one whose rings must wait, would
 * stay readable and keep the loop awake. */
static void watch(struct bell *b)
{
    if (b->has_ended || b->turn.waits)
        uv_poll_stop(&b->poll);
    else
        uv_poll_start(&b->poll, UV_READABLE, on_ring); /* fails only for handles that are closed */
}

/* Called in a turn for which the bell had to wait, because its client is slow or rang often. */
static void serve(struct turn *turn)
{
    struct bell *b = CONTAINER_OF(turn, struct bell, turn);
    b->turn.is_heavy = false;
    struct client *exiting = take_rings(b, RINGS_A_TURN);
    if (b->for_all)
        ring_all(b->connection);
    b->for_all = false;
    watch(b);
    if (exiting)
        client_end_exiting(exiting);
}

static void on_ring(uv_poll_t *poll, int status, int events)
{
    struct bell *b = CONTAINER_OF(poll, struct bell, poll);
    struct client *exiting = NULL;
    (void)events;
    if (status == 0 && slice_is_late())
        return;
    b->has_ended = status < 0;
    if (status == 0 && turns_begin(b->turns, &b->turn)) {
        exiting = take_rings(b, MANY_RINGS);
        turns_end(b->turns, &b->turn);
    }
    if (b->for_all) { /* until that turn the socket is not polled, so more rings cost nothing */
        b->turn.is_heavy = true;
        turns_again(b->turns, &b->turn);
    }
    if (b->has_ended || b->turn.waits)
        watch(b);
    if (exiting)
        client_end_exiting(exiting);
}

static void refund(void *payer)
{
    quota_refund(payer, QUOTA_CONNECTIONS, 1);
}

static void on_closed(uv_handle_t *handle)
{
    struct bell *b = CONTAINER_OF((uv_poll_t *)handle, struct bell, poll);
    if (b->strays)
        stray_close(b->fd, refund, b->payer);
    else
        close(b->fd);
    free(b);
}

/* Whether descriptors lie in the bell. The client can send none afterwards, and all rings are lost,
 * unless the kernel refuses descriptors. */
static bool has_strays(const struct bell *b)
{
    if (!b->strays)
        return false;
    shutdown(b->fd, SHUT_RDWR);
    return stray_left(b->fd);
}

void bell_close(struct bell *bell)
{
    if (!bell)
        return;
    take_rings(bell, MANY_RINGS);
    if (bell->for_all)
        ring_all(bell->connection);
    turns_cancel(bell->turns, &bell->turn);
    const struct quota_user *payer = bell->connection->payer;
    bell->strays = has_strays(bell);
    if (bell->strays && payer)
        bell->payer = quota_restore(payer->quota, payer->uid, QUOTA_CONNECTIONS, 1);
    uv_close((uv_handle_t *)&bell->poll, on_closed);
}

/* Makes a bell and closes the old one. After an error the old one remains; if descriptors can come
 * there, it is shut down and its last rings are dropped, which costs nothing because the caller
 * rings for all segments. Returns the client's end, or -errno. */
static int open_bell(struct turns *turns, struct connection *connection)
{
    int ends[2], queue = QUEUE_BYTES;
    if (connection->bell && has_strays(connection->bell))
        return -EPROTO;
    struct bell *b = calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
        free(b);
        return -errno;
    }
    stray_refuse(ends[0]);
    b->strays = stray_possible(ends[0]);
    b->fd = ends[0];
    b->connection = connection;
    b->turns = turns;
    b->turn = (struct turn){
        .serve = serve,
        .payer = connection->payer ? connection->payer : &turns->own,
        .who = connection,
    };
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &queue, sizeof queue);
    int r = loop_poll_init(connection->socket_poll.loop, &b->poll, b->fd);
    if (r) {
        close(ends[0]);
        close(ends[1]);
        free(b);
        return r;
    }
    bell_close(connection->bell);
    connection->bell = b;
    watch(b);
    return ends[1];
}

int bell_open(struct turns *turns, struct connection *connection, bool wanted)
{
    int fd = wanted ? open_bell(turns, connection) : -ENOENT;
    ring_all(connection);
    return fd;
}
