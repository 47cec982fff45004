/* SPDX-License-Identifier: Apache-2.0 */
#include "echo.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"

/* --- Messages ------------------------------------------------------------ */

static int send_text(int fd, const char *text, size_t n)
{
    struct iovec iov = {(char *)(uintptr_t)text, n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

static int take_descriptors(struct msghdr *msg, int *ret_fds)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t bytes = c->cmsg_len - CMSG_LEN(0);
    memcpy(ret_fds, CMSG_DATA(c), bytes);
    return (int)(bytes / sizeof *ret_fds);
}

/* Receives one message up to its NUL. With MSG_DONTWAIT in flags, polls. Returns the number of
 * descriptors or -1. */
static int receive_text(int fd, int flags, char *text, size_t bytes, size_t *ret_n, int *ret_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * ECHO_DESCRIPTORS)];
    } control;
    size_t have = 0;
    int n_fds = 0;
    do {
        struct iovec iov = {text + have, bytes - have};
        struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
        if (ret_fds) {
            msg.msg_control = control.bytes;
            msg.msg_controllen = sizeof control.bytes;
        }
        ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
        if (n < 0 && errno == EAGAIN && flags)
            continue;
        if (n <= 0)
            return -1;
        if (ret_fds && n_fds == 0)
            n_fds = take_descriptors(&msg, ret_fds);
        have += (size_t)n;
    } while (have == 0 || (text[have - 1] != '\0' && have < bytes));
    *ret_n = have;
    return n_fds;
}

static void limit_wait(int fd)
{
    struct timeval limit = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* --- Recording ----------------------------------------------------------- */

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int record(struct exchange *e, int fd)
{
    int fds[ECHO_DESCRIPTORS];
    e->request_bytes = strlen(e->request_text) + 1;
    if (send_text(fd, e->request_text, e->request_bytes))
        return failed("the daemon takes no request: %s", strerror(errno));
    int n = receive_text(fd, 0, e->reply_text, sizeof e->reply_text, &e->reply_bytes, fds);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    e->request = json_loads(e->request_text, JSON_REJECT_DUPLICATES, NULL);
    e->reply = n < 0 ? NULL : json_loads(e->reply_text, JSON_REJECT_DUPLICATES, NULL);
    if (!e->request || !e->reply || json_object_get(e->reply, "error"))
        return failed("the daemon answers '%s' with '%s'", e->request_text, e->reply_text);
    return 0;
}

/* Writes request with the id of first's attachment for its "%". */
static void expand(char *ret, size_t bytes, const char *request, const struct exchange *first)
{
    json_int_t id = 0;
    size_t n = strcspn(request, "%");
    const char *rest = request[n] ? request + n + 1 : NULL;
    if (!rest) {
        snprintf(ret, bytes, "%s", request);
        return;
    }
    json_unpack(first->reply, "{s:{s:{s:I}}}", "parameters", "attachment", "id", &id);
    snprintf(ret, bytes, "%.*s%lld%s", (int)n, request, (long long)id, rest);
}

int exchange_record(struct exchange *list, size_t n, const char *const *requests,
                    const char *socket)
{
    memset(list, 0, n * sizeof *list);
    int fd = connect_to(socket);
    if (fd < 0)
        return failed("%s: %s", socket, strerror(errno));
    limit_wait(fd);
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        expand(list[i].request_text, sizeof list[i].request_text, requests[i], &list[0]);
        r = record(&list[i], fd);
    }
    close(fd);
    if (r)
        exchange_free(list, n);
    return r;
}

void exchange_free(struct exchange *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_decref(list[i].request);
        json_decref(list[i].reply);
        list[i].request = list[i].reply = NULL;
    }
}

/* --- The client ---------------------------------------------------------- */

int echo_start(struct echo *echo, bool json, struct exchange *list, size_t n, uint64_t data_bytes)
{
    int ends[2];
    *echo = (struct echo){
        .pid = -1, .fd = -1, .json = json, .polls = echo->polls, .list = list, .n = n};
    echo->data_bytes = data_bytes;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return failed("socketpair: %s", strerror(errno));
    struct echo server = *echo;
    server.fd = ends[1];
    echo->pid = child_start(echo_serve, &server);
    close(ends[1]);
    echo->fd = ends[0];
    limit_wait(echo->fd);
    return echo->pid < 0 ? failed("fork: %s", strerror(errno)) : 0;
}

void echo_stop(struct echo *echo)
{
    child_end(echo->pid);
    if (echo->fd >= 0)
        close(echo->fd);
    *echo = (struct echo){.pid = -1, .fd = -1};
}

/* What a program does with an answer: it looks at it. */
static bool is_success(const char *text, size_t n)
{
    json_t *reply = json_loadb(text, n - 1, JSON_REJECT_DUPLICATES, NULL);
    bool good =
        json_is_object(json_object_get(reply, "parameters")) && !json_object_get(reply, "error");
    json_decref(reply);
    return good;
}

static int send_json(struct echo *echo, const struct exchange *e)
{
    json_t *request = json_deep_copy(e->request);
    char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    int r = text ? send_text(echo->fd, text, strlen(text) + 1) : -1;
    free(text);
    return r;
}

int echo_call(struct echo *echo, size_t which, int *ret_fds)
{
    char text[ECHO_TEXT_BYTES];
    size_t n;
    const struct exchange *e = &echo->list[which];
    int r =
        echo->json ? send_json(echo, e) : send_text(echo->fd, e->request_text, e->request_bytes);
    if (r == 0)
        r = receive_text(echo->fd, echo->polls ? MSG_DONTWAIT : 0, text, sizeof text, &n, ret_fds);
    if (r < 0 || n != e->reply_bytes || (echo->json && !is_success(text, n)))
        return failed("the echo server gives no answer: %s", strerror(errno));
    return r;
}
