/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/stray.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/log.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Threads at a time. Each may block in close() for as long as the client likes, so several are
 * needed. Further sockets wait in the queue; their users are still charged for them. */
#define THREADS_MAX 16
#define STACK_BYTES ((size_t)128 << 10)

/* A socket to close; in `queue` until a thread takes it, and then in `closed` for the loop. */
struct closing {
    int fd;
    void (*done)(void *arg);
    void *arg;
    STAILQ_ENTRY(closing) link;
};
STAILQ_HEAD(closings, closing);

/* Protects the lists, n_threads and has_loop. Static, because threads may outlive the server. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct closings queue = STAILQ_HEAD_INITIALIZER(queue);
static struct closings closed = STAILQ_HEAD_INITIALIZER(closed);
static unsigned n_threads;
static uv_async_t async;
static bool has_loop;

/* Calls done() for each closed socket, on the loop. The mutex is free while done() runs. */
static void on_closed(uv_async_t *handle)
{
    struct closing *c;
    (void)handle;
    for (;;) {
        pthread_mutex_lock(&lock);
        c = STAILQ_FIRST(&closed);
        if (c)
            STAILQ_REMOVE_HEAD(&closed, link);
        pthread_mutex_unlock(&lock);
        if (!c)
            return;
        if (c->done)
            c->done(c->arg);
        free(c);
    }
}

void stray_init(uv_loop_t *loop)
{
    bool has = loop && uv_async_init(loop, &async, on_closed) == 0;
    pthread_mutex_lock(&lock);
    has_loop = has;
    pthread_mutex_unlock(&lock);
}

/* --- Keeping them out ---------------------------------------------------- */

void stray_keep_order(int fd)
{
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
}

void stray_refuse(int fd)
{
    int no = 0;
    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
    stray_keep_order(fd);
}

bool stray_possible(int fd)
{
    int may;
    socklen_t n = sizeof may;
    return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &may, &n) || may;
}

/* Copies up to n bytes, which stay unread. The call has no room for descriptors, so these stay in
 * the socket as well, and the kernel only reports them, by MSG_CTRUNC. Returns the number of bytes,
 * 0 at the end of the stream, -EPROTO if descriptors come with these bytes, or another -errno. */
static ssize_t peek(int fd, void *bytes, size_t n)
{
    struct iovec iov = {bytes, n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t r;
    do
        r = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    return msg.msg_flags & MSG_CTRUNC ? -EPROTO : r;
}

ssize_t stray_receive(struct frame *frame, int fd, size_t limit)
{
    int r = frame_reserve(frame, limit);
    if (r)
        return r;
    size_t room = limit + 1 - frame->n;
    if (room > frame->capacity - frame->n)
        room = frame->capacity - frame->n;
    ssize_t n = peek(fd, frame->bytes + frame->n, room);
    /* receive only the bytes that were peeked at: bytes that arrive now may have descriptors */
    return n <= 0 ? n : frame_receive(frame, fd, frame->n + (size_t)n - 1, NULL);
}

ssize_t stray_receive_message(int fd, void *bytes, size_t n)
{
    ssize_t r = peek(fd, bytes, n);
    if (r > 0 && recv(fd, bytes, n, MSG_DONTWAIT) != r)
        return -EIO; /* only another reader could take the message away */
    return r;
}

bool stray_left(int fd)
{
    static char bytes[16384];
    ssize_t n;
    while ((n = peek(fd, bytes, sizeof bytes)) > 0)
        if (recv(fd, bytes, (size_t)n, MSG_DONTWAIT) != n)
            return true;
    return n == -EPROTO;
}

/* --- Closing ------------------------------------------------------------- */

/* The thread: closes sockets until the queue is empty, and ends. */
static void *close_all(void *arg)
{
    (void)arg;
    struct closing *c;
    pthread_mutex_lock(&lock);
    while ((c = STAILQ_FIRST(&queue))) {
        STAILQ_REMOVE_HEAD(&queue, link);
        pthread_mutex_unlock(&lock);
        close(c->fd);
        pthread_mutex_lock(&lock);
        STAILQ_INSERT_TAIL(&closed, c, link);
        if (has_loop)
            uv_async_send(&async);
    }
    n_threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int start_thread(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int r = pthread_create(&thread, &attributes, close_all, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

void stray_close(int fd, void (*done)(void *arg), void *arg)
{
    struct closing *c = malloc(sizeof *c);
    if (!c) {
        log_error("out of memory: a socket with descriptors of a client stays open");
        return;
    }
    *c = (struct closing){.fd = fd, .done = done, .arg = arg};
    pthread_mutex_lock(&lock);
    STAILQ_INSERT_TAIL(&queue, c, link);
    /* if no thread can be started, the socket waits for one that runs, or for the next call */
    if (n_threads < THREADS_MAX && start_thread() == 0)
        n_threads++;
    pthread_mutex_unlock(&lock);
}
