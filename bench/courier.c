/* SPDX-License-Identifier: Apache-2.0 */
/* The couriers that need no daemon: a ring in shared memory, a pipe, and ZeroMQ. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef BENCH_ZEROMQ
#include <zmq.h>
#endif

#include "courier.h"

/* --- A ring -------------------------------------------------------------- */

#define CELLS 64

struct courier_ring {
    struct {
        _Alignas(128) _Atomic uint32_t number; /* of the frame, from 1; a futex */
        unsigned char bytes[COURIER_BYTES];
    } cell[CELLS];
};

static int begin_bare(struct courier *c)
{
    void *p =
        mmap(NULL, sizeof *c->ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return failed("mmap: %s", strerror(errno));
    c->ring = p;
    return 0;
}

static void end_bare(struct courier *c)
{
    munmap(c->ring, sizeof *c->ring);
}

static int open_bare(struct courier *c, bool writes)
{
    (void)writes;
    c->n = 0;
    return 0;
}

static int send_bare(struct courier *c)
{
    uint64_t i = c->n++ % CELLS;
    int64_t now = now_ns();
    memcpy(c->ring->cell[i].bytes, &now, sizeof now);
    atomic_store_explicit(&c->ring->cell[i].number, (uint32_t)c->n, memory_order_release);
    if (!c->polls)
        syscall(SYS_futex, &c->ring->cell[i].number, FUTEX_WAKE, 1, NULL, NULL, 0);
    return 0;
}

static int receive_bare(struct courier *c, int64_t *ret_sent_ns)
{
    uint64_t i = c->n++ % CELLS;
    _Atomic uint32_t *at = &c->ring->cell[i].number;
    for (uint32_t v; (v = atomic_load_explicit(at, memory_order_acquire)) != (uint32_t)c->n;)
        if (!c->polls)
            syscall(SYS_futex, at, FUTEX_WAIT, v, NULL, NULL, 0);
    memcpy(ret_sent_ns, c->ring->cell[i].bytes, sizeof *ret_sent_ns);
    return 0;
}

const struct courier courier_bare = {
    .name = "bare futex",
    .begin = begin_bare,
    .end = end_bare,
    .open = open_bare,
    .send = send_bare,
    .receive = receive_bare,
};

/* --- A pipe -------------------------------------------------------------- */

static int begin_pipe(struct courier *c)
{
    return pipe2(c->fd, O_CLOEXEC | (c->polls ? O_NONBLOCK : 0))
               ? failed("pipe: %s", strerror(errno))
               : 0;
}

static void end_pipe(struct courier *c)
{
    close(c->fd[0]);
    close(c->fd[1]);
}

static int open_pipe(struct courier *c, bool writes)
{
    (void)c;
    (void)writes;
    return 0;
}

static int send_pipe(struct courier *c)
{
    int64_t frame[COURIER_BYTES / 8] = {now_ns()};
    return write(c->fd[1], frame, sizeof frame) == sizeof frame ? 0 : failed("the pipe is full");
}

static int receive_pipe(struct courier *c, int64_t *ret_sent_ns)
{
    int64_t frame[COURIER_BYTES / 8];
    ssize_t n;
    do
        n = read(c->fd[0], frame, sizeof frame);
    while (n < 0 && errno == EAGAIN);
    *ret_sent_ns = frame[0];
    return n == sizeof frame ? 0 : failed("nothing in the pipe: %s", strerror(errno));
}

const struct courier courier_pipe = {
    .name = "a pipe",
    .begin = begin_pipe,
    .end = end_pipe,
    .open = open_pipe,
    .send = send_pipe,
    .receive = receive_pipe,
};

/* --- ZeroMQ -------------------------------------------------------------- */

#ifdef BENCH_ZEROMQ

static int open_zeromq(struct courier *c, bool writes)
{
    char address[PATH_MAX + 16];
    snprintf(address, sizeof address, "ipc://%s/zeromq", c->instance->directory);
    c->context = zmq_ctx_new();
    c->socket = c->context ? zmq_socket(c->context, writes ? ZMQ_PUSH : ZMQ_PULL) : NULL;
    if (!c->socket)
        return failed("ZeroMQ: %s", zmq_strerror(zmq_errno()));
    int r = writes ? zmq_bind(c->socket, address) : zmq_connect(c->socket, address);
    return r ? failed("ZeroMQ, %s: %s", address, zmq_strerror(zmq_errno())) : 0;
}

static void close_zeromq(struct courier *c, bool writes)
{
    (void)writes;
    zmq_close(c->socket);
    zmq_ctx_term(c->context);
}

static int send_zeromq(struct courier *c)
{
    int64_t frame[COURIER_BYTES / 8] = {now_ns()};
    int n = zmq_send(c->socket, frame, sizeof frame, 0);
    return n == sizeof frame ? 0 : failed("ZeroMQ: %s", zmq_strerror(zmq_errno()));
}

static int receive_zeromq(struct courier *c, int64_t *ret_sent_ns)
{
    int64_t frame[COURIER_BYTES / 8];
    int n;
    do
        n = zmq_recv(c->socket, frame, sizeof frame, c->polls ? ZMQ_DONTWAIT : 0);
    while (n < 0 && zmq_errno() == EAGAIN);
    *ret_sent_ns = frame[0];
    return n == sizeof frame ? 0 : failed("ZeroMQ: %s", zmq_strerror(zmq_errno()));
}

static const struct courier zeromq = {
    .name = "ZeroMQ ipc",
    .open = open_zeromq,
    .close = close_zeromq,
    .send = send_zeromq,
    .receive = receive_zeromq,
};
const struct courier *const courier_zeromq = &zeromq;

#else

const struct courier *const courier_zeromq = NULL;

#endif
