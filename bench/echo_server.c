/* SPDX-License-Identifier: Apache-2.0 */
/* As little as a libuv server can be: one uv_poll, one buffer, recvmsg, sendmsg. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "bench.h"
#include "echo.h"

struct server {
    struct echo *echo;
    char in[ECHO_TEXT_BYTES];
    size_t n;
};

/* --- A segment's objects ------------------------------------------------- */

static void object_name(char *ret, int i)
{
    static const char *const parts[ECHO_OBJECTS] = {"data", "control", "liveness"};
    instance_object_name(ret, ECHO_NAME_BYTES, parts[i]);
}

static int make_object(int i, uint64_t bytes)
{
    static const char header[64];
    char name[ECHO_NAME_BYTES];
    object_name(name, i);
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) ||
        (i > 0 && pwrite(fd, header, sizeof header, 0) != sizeof header))
        abort();
    return fd;
}

static int make_objects(const struct echo *echo, int *ret_fds)
{
    for (int i = 0; i < ECHO_OBJECTS; i++)
        ret_fds[i] = make_object(i, i == 0 ? echo->data_bytes : ECHO_LOCK_BYTES);
    return ECHO_OBJECTS;
}

static void unmake_objects(void)
{
    char name[ECHO_NAME_BYTES];
    for (int i = 0; i < ECHO_OBJECTS; i++) {
        object_name(name, i);
        shm_unlink(name);
    }
}

/* --- Answers ------------------------------------------------------------- */

static void send_reply(int fd, const char *text, size_t n, const int *fds, int n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * ECHO_OBJECTS)];
    } control;
    struct iovec iov = {(char *)(uintptr_t)text, n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)n_fds);
    }
    if (sendmsg(fd, &msg, MSG_NOSIGNAL) != (ssize_t)n)
        raise(SIGKILL); /* the client is gone */
}

static void answer_json(const struct echo *echo, const char *text, size_t n)
{
    json_t *request = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    const char *method = json_string_value(json_object_get(request, "method"));
    for (size_t i = 0; method && i < echo->n; i++) {
        const struct exchange *e = &echo->list[i];
        if (strcmp(method, json_string_value(json_object_get(e->request, "method"))) != 0)
            continue;
        json_t *reply = json_deep_copy(e->reply);
        char *out = json_dumps(reply, JSON_COMPACT);
        send_reply(echo->fd, out, strlen(out) + 1, NULL, 0);
        json_decref(reply);
        free(out);
    }
    json_decref(request);
}

static void answer_bytes(const struct echo *echo, const char *text)
{
    for (size_t i = 0; i < echo->n; i++) {
        const struct exchange *e = &echo->list[i];
        int fds[ECHO_OBJECTS], n_fds = 0;
        if (strcmp(text, e->request_text) != 0)
            continue;
        if (e->action == ECHO_MAKE)
            n_fds = make_objects(echo, fds);
        else if (e->action == ECHO_UNMAKE)
            unmake_objects();
        send_reply(echo->fd, e->reply_text, e->reply_bytes, fds, n_fds);
        for (int k = 0; k < n_fds; k++)
            close(fds[k]);
    }
}

/* --- The loop ------------------------------------------------------------ */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct server *s = poll->data;
    struct iovec iov = {s->in + s->n, sizeof s->in - s->n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    (void)status;
    (void)events;
    ssize_t n = recvmsg(s->echo->fd, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        _exit(0);
    s->n += (size_t)n;
    char *end = memchr(s->in, 0, s->n);
    if (!end)
        return;
    s->n = 0; /* the client waits for the answer: nothing follows */
    if (s->echo->json)
        answer_json(s->echo, s->in, (size_t)(end - s->in));
    else
        answer_bytes(s->echo, s->in);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active one alone keeps the loop from sleeping */
}

void echo_serve(void *echo)
{
    uv_idle_t idle;
    static struct server s;
    uv_loop_t loop;
    uv_poll_t poll;
    s.echo = echo;
    poll.data = &s;
    if (uv_loop_init(&loop) || uv_poll_init(&loop, &poll, s.echo->fd) ||
        uv_poll_start(&poll, UV_READABLE, on_readable))
        return;
    uv_idle_init(&loop, &idle);
    if (s.echo->polls)
        uv_idle_start(&idle, on_idle);
    uv_run(&loop, UV_RUN_DEFAULT);
}
