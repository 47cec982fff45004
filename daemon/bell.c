/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bell.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/attachment.h"
#include "daemon/connection.h"
#include "daemon/loop.h"
#include "daemon/use.h"

#define RINGS_A_TURN 64
/* A client does not wait where the queue is full. So after that many rings without a pause some may
 * be missing, and the event loops of all that the client has attached are woken. The queue has room
 * for many more. */
#define MANY_RINGS  8
#define QUEUE_BYTES 65536

struct bell {
    uv_poll_t poll;
    struct connection *connection;
    int fd;
    unsigned n; /* rings since the queue was empty */
};

static void ring_one(const struct bell *b, uint64_t id)
{
    const struct attachment *a = attachment_find(&b->connection->attachments, id);
    if (a && a->slot != WIRE_ABSENT) /* others can change nothing */
        attachment_ring(a->segment);
}

/* Each segment once, of which the connection may have many attachments. */
static void ring_all(const struct connection *c)
{
    static uint64_t n_rings;
    const struct attachment *a;
    n_rings++;
    LIST_FOREACH(a, &c->attachments, link)
    {
        struct segment_use *use = a->segment->use;
        if (a->slot == WIRE_ABSENT || !use->n_watches || use->n_rung == n_rings)
            continue;
        use->n_rung = n_rings;
        attachment_ring(a->segment);
    }
}

/* Takes up to most rings from the queue. Returns what recv() returned last. */
static ssize_t take_rings(struct bell *b, int most)
{
    ssize_t n = 1;
    for (int i = 0; i < most; i++) {
        uint64_t id;
        n = recv(b->fd, &id, sizeof id, MSG_DONTWAIT);
        if (n <= 0)
            break;
        b->n += id ? 1 : MANY_RINGS;
        if (n == sizeof id && b->n < MANY_RINGS)
            ring_one(b, id);
    }
    if (b->n >= MANY_RINGS)
        ring_all(b->connection);
    return n;
}

static void on_ring(uv_poll_t *poll, int status, int events)
{
    struct bell *b = CONTAINER_OF(poll, struct bell, poll);
    ssize_t n = status;
    (void)events;
    if (status == 0)
        n = take_rings(b, RINGS_A_TURN);
    if (n <= 0)
        b->n = 0;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        uv_poll_stop(poll); /* the client has closed its end */
}

static void on_closed(uv_handle_t *handle)
{
    struct bell *b = CONTAINER_OF((uv_poll_t *)handle, struct bell, poll);
    close(b->fd);
    free(b);
}

void bell_close(struct bell *bell)
{
    if (!bell)
        return;
    take_rings(bell, MANY_RINGS);
    uv_close((uv_handle_t *)&bell->poll, on_closed);
}

/* Returns the client's end, or -errno. */
static int open_bell(struct connection *connection)
{
    static const uint64_t all = 0;
    int ends[2], queue = QUEUE_BYTES;
    struct bell *b = calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
        free(b);
        return -errno;
    }
    b->fd = ends[0];
    b->connection = connection;
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &queue, sizeof queue);
    int r = loop_poll_init(connection->socket_poll.loop, &b->poll, b->fd);
    if (r) {
        close(ends[0]);
        close(ends[1]);
        free(b);
        return r;
    }
    uv_poll_start(&b->poll, UV_READABLE, on_ring); /* fails only for handles that are closed */
    bell_close(connection->bell);
    connection->bell = b;
    if (!LIST_EMPTY(&connection->attachments))
        send(ends[1], &all, sizeof all, MSG_DONTWAIT | MSG_NOSIGNAL);
    return ends[1];
}

int bell_open(struct connection *connection, bool wanted)
{
    int fd = wanted ? open_bell(connection) : -ENOENT;
    if (fd < 0)
        ring_all(connection);
    return fd;
}
