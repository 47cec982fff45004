/* SPDX-License-Identifier: Apache-2.0 */
#include "storm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"

#define PIPELINED   32
#define ROOM_NEEDED 65536
#define WAIT_S      20

int storm_check(int r, const char *what)
{
    return r ? failed("%s: %s", what, shmview_error_text()) : 0;
}

int storm_connect(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return failed("cannot connect");
}

void methods_note(struct methods *methods, const char *name)
{
    if (methods_have(methods, name) || methods->n == ARRAY_LEN(methods->names))
        return;
    snprintf(methods->names[methods->n++], sizeof methods->names[0], "%s", name);
}

bool methods_have(const struct methods *methods, const char *name)
{
    for (size_t i = 0; i < methods->n; i++)
        if (strcmp(methods->names[i], name) == 0)
            return true;
    return false;
}

/* --- A connection -------------------------------------------------------- */

int caller_open(struct caller *caller, const char *socket, struct methods *called)
{
    const struct timeval limit = {.tv_sec = WAIT_S};
    *caller = (struct caller){.fd = storm_connect(socket), .called = called};
    if (caller->fd < 0)
        return -1;
    setsockopt(caller->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return 0;
}

static void drop_descriptors(struct caller *caller)
{
    while (caller->n_fds)
        close(caller->fds[--caller->n_fds]);
}

void caller_close(struct caller *caller)
{
    drop_descriptors(caller);
    if (caller->fd >= 0)
        close(caller->fd);
    free(caller->text);
    *caller = (struct caller){.fd = -1};
}

int caller_send(struct caller *caller, const char *method, json_t *parameters)
{
    bool more = strcmp(method, "io.shmview.Monitor") == 0;
    json_t *call =
        json_pack("{s:s, s:o, s:b}", "method", method, "parameters", parameters, "more", more);
    char *text = call ? json_dumps(call, JSON_COMPACT) : NULL;
    int r = text ? 0 : failed("%s: out of memory", method);
    size_t n = text ? strlen(text) + 1 : 0;
    for (size_t sent = 0; r == 0 && sent < n;) {
        ssize_t now = send(caller->fd, text + sent, n - sent, MSG_NOSIGNAL);
        if (now < 0)
            r = failed("%s: %s", method, strerror(errno));
        else
            sent += (size_t)now;
    }
    if (r == 0 && caller->called)
        methods_note(caller->called, method);
    free(text);
    json_decref(call);
    return r;
}

static void take_descriptors(struct caller *caller, struct msghdr *msg)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return;
    drop_descriptors(caller);
    caller->n_fds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(caller->fds, CMSG_DATA(c), caller->n_fds * sizeof(int));
}

/* Receives what there is. Returns 0 or -1. */
static int receive(struct caller *caller)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * CALLER_DESCRIPTORS)];
    } control;
    if (caller->room - caller->n < ROOM_NEEDED) {
        char *text = realloc(caller->text, caller->n + 2 * ROOM_NEEDED);
        if (!text)
            return failed("out of memory");
        caller->text = text;
        caller->room = caller->n + 2 * ROOM_NEEDED;
    }
    struct iovec iov = {caller->text + caller->n, caller->room - caller->n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(caller->fd, &msg, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return failed("no reply: %s", n < 0 ? strerror(errno) : "the daemon has hung up");
    take_descriptors(caller, &msg);
    caller->n += (size_t)n;
    return 0;
}

json_t *caller_read(struct caller *caller)
{
    struct caller *c = caller;
    const char *end;
    memmove(c->text ? c->text : "", c->text ? c->text + c->n_read : "", c->n - c->n_read);
    c->n -= c->n_read;
    c->n_read = 0;
    for (size_t looked = 0;
         !(end = c->n > looked ? memchr(c->text + looked, 0, c->n - looked) : NULL);) {
        looked = c->n;
        if (receive(c))
            return NULL;
    }
    c->n_read = (size_t)(end - c->text) + 1;
    json_t *reply = json_loads(c->text, 0, NULL);
    json_t *parameters = json_incref(json_object_get(reply, "parameters"));
    if (!reply || json_object_get(reply, "error")) {
        failed("%.200s", c->text);
        json_decref(parameters);
        parameters = NULL;
    } else if (!parameters) {
        parameters = json_object();
    }
    json_decref(reply);
    return parameters;
}

json_t *caller_ask(struct caller *caller, const char *method, json_t *parameters)
{
    return caller_send(caller, method, parameters) ? NULL : caller_read(caller);
}

int caller_ask_many(struct caller *caller, const char *method, unsigned n,
                    json_t *(*make)(unsigned i, void *arg), void *arg, json_int_t *ids)
{
    for (unsigned i = 0, n_read = 0; n_read < n; n_read++) {
        for (; i < n && i < n_read + PIPELINED; i++)
            if (caller_send(caller, method, make(i, arg)))
                return -1;
        json_t *reply = caller_read(caller);
        if (!reply)
            return -1;
        if (ids)
            ids[n_read] =
                json_integer_value(json_object_get(json_object_get(reply, "attachment"), "id"));
        json_decref(reply);
    }
    return 0;
}

void caller_drain(const struct caller *caller)
{
    char text[ROOM_NEEDED];
    while (recv(caller->fd, text, sizeof text, MSG_DONTWAIT) > 0)
        continue;
}
