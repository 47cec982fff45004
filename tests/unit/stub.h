/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that sends the replies of the test, for tests of the library.
 *
 *     const struct stub_step steps[] = {STUB_PONG, {"Describe", "{'parameters':{}}"}};
 *     stub_start(&stub, steps, 2);
 *     shmview_connect(stub.path, 0, &conn);
 *     ...
 *     stub_end(&stub);           asserts that every step was made
 *
 * It serves one connection after the other, in a thread whose calls faults.h never fails. It
 * answers the claim itself if the next step is for another method. Includes faults.h. */
#ifndef UNIT_STUB_H
#define UNIT_STUB_H

#include "unit/unit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/wire/frame.h"
#include "unit/faults.h"

struct stub_step {
    const char *method; /* method that must be called, or a part of the request */
    const char *reply;  /* with ' for "; NULL: hang up */
    int fds[2 * LIMIT_DESCRIPTORS];
    size_t n_fds;
    size_t bytes;    /* length of reply, which is then sent unchanged; 0: to its NUL */
    bool one_by_one; /* sends one byte at a time */
    bool is_oneway;  /* must be called so; then there is no reply */
};

/* The claim with which every connection begins, and its reply. */
#define STUB_GREETING                                                                              \
    {                                                                                              \
        .method = "io.shmview.Claim", .reply = "{'parameters':{'held':[]}}"                        \
    }
#define STUB_PONG                                                                                  \
    {                                                                                              \
        .method = "io.shmview.Ping", .reply = "{'parameters':{}}"                                  \
    }

struct stub {
    char path[108];
    int listener;
    const struct stub_step *steps;
    size_t n_steps, n_done;
    char wrong[400];
    char requests[16][1000]; /* the requests, in order */
    pthread_t thread;
};

/* Sends with more descriptors than frame_send() allows. */
static inline void stub_send(int fd, const struct stub_step *step)
{
    char text[10000];
    size_t n = step->bytes;
    if (n == 0) {
        n = strlen(step->reply) + 1;
        memcpy(text, step->reply, n);
        for (char *p = text; *p; p++)
            *p = *p == '\'' ? '"' : *p;
    }
    const char *from = step->bytes ? step->reply : text;
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof step->fds)];
    } control = {0};
    struct iovec iov = {(char *)from, step->one_by_one ? 1 : n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (step->n_fds) {
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * step->n_fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * step->n_fds);
        memcpy(CMSG_DATA(c), step->fds, sizeof(int) * step->n_fds);
    }
    ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
    for (size_t at = sent > 0 ? (size_t)sent : n; at<n; at += sent> 0 ? (size_t)sent : n)
        sent = send(fd, from + at, step->one_by_one ? 1 : n - at, MSG_NOSIGNAL);
}

/* Serves one request. Returns whether the connection goes on. */
static inline bool stub_serve(struct stub *stub, struct frame *in, int fd)
{
    char *text;
    size_t n;
    while (!frame_next(in, &text, &n))
        if (frame_receive(in, fd, LIMIT_REQUEST_BYTES, NULL) <= 0)
            return false;
    if (stub->n_done == stub->n_steps) {
        snprintf(stub->wrong, sizeof stub->wrong, "one call too many: %.300s", text);
        return false;
    }
    const struct stub_step *step = &stub->steps[stub->n_done], greeting = STUB_GREETING;
    if (strstr(text, greeting.method) && !strstr(step->method, "Claim")) {
        stub_send(fd, &greeting); /* the step is not for a claim */
        return true;
    }
    snprintf(stub->requests[stub->n_done % 16], sizeof stub->requests[0], "%s", text);
    stub->n_done++;
    if (!strstr(text, step->method))
        snprintf(stub->wrong, sizeof stub->wrong, "%.200s where %.100s should be", text,
                 step->method);
    bool oneway = strstr(text, "\"oneway\":true");
    if (step->is_oneway && !oneway)
        snprintf(stub->wrong, sizeof stub->wrong, "not oneway: %.200s", text);
    if (step->reply && !oneway)
        stub_send(fd, step);
    return step->reply || oneway;
}

static inline void *stub_run(void *arg)
{
    struct stub *stub = arg;
    int fd;
    faults_spare_thread();
    while ((fd = accept4(stub->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct frame in = {0};
        while (stub_serve(stub, &in, fd))
            continue;
        frame_deinit(&in);
        close(fd);
    }
    return NULL;
}

static inline void stub_start(struct stub *stub, const struct stub_step *steps, size_t n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(stub, 0, sizeof *stub);
    stub->steps = steps;
    stub->n_steps = n;
    snprintf(stub->path, sizeof stub->path, "%s/stub", unit_directory());
    snprintf(address.sun_path, sizeof address.sun_path, "%s", stub->path);
    unlink(stub->path);
    stub->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(stub->listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(stub->listener, 8), 0);
    ck_assert_int_eq(pthread_create(&stub->thread, NULL, stub_run, stub), 0);
}

/* Call it after the library has disconnected. */
static inline void stub_end(struct stub *stub)
{
    shutdown(stub->listener, SHUT_RDWR);
    pthread_join(stub->thread, NULL);
    close(stub->listener);
    ck_assert_msg(!stub->wrong[0], "%s", stub->wrong);
    ck_assert_msg(stub->n_done == stub->n_steps, "%zu of %zu calls were made", stub->n_done,
                  stub->n_steps);
}

#endif
