/* SPDX-License-Identifier: Apache-2.0 */
#include "support/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "support/await.h"

void raw_connect(struct raw *raw, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = AWAIT_NS / 1000000000};
    *raw = (struct raw){.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ck_assert_int_ge(raw->socket, 0);
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    strcpy(address.sun_path, path);
    setsockopt(raw->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int r = connect(raw->socket, (const struct sockaddr *)&address, sizeof address);
    ck_assert_msg(r == 0, "%s: %s", path, strerror(errno));
}

void raw_close_fds(struct raw *raw)
{
    while (raw->n_fds)
        close(raw->fds[--raw->n_fds]);
}

void raw_close(struct raw *raw)
{
    raw_close_fds(raw);
    close(raw->socket);
    free(raw->bytes);
    *raw = (struct raw){.socket = -1};
}

/* --- Sending ------------------------------------------------------------- */

bool raw_send(struct raw *raw, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n) {
        ssize_t sent = send(raw->socket, p, n, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
            return false;
        ck_assert_msg(sent > 0, "send: %s", strerror(errno));
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

bool raw_send_text(struct raw *raw, const char *text)
{
    char *turned = strdup(text);
    ck_assert_ptr_nonnull(turned);
    for (char *p = turned; (p = strchr(p, '\'')); p++)
        *p = '"';
    bool sent = raw_send(raw, turned, strlen(turned) + 1);
    free(turned);
    return sent;
}

bool raw_send_call(struct raw *raw, const char *method, const char *parameters)
{
    char *text;
    int n =
        asprintf(&text, "{'method': '%s%s', 'parameters': %s}",
                 strchr(method, '.') ? "" : "io.shmview.", method, parameters ? parameters : "{}");
    ck_assert_int_gt(n, 0);
    bool sent = raw_send_text(raw, text);
    free(text);
    return sent;
}

/* --- Receiving ----------------------------------------------------------- */

static void take_descriptors(struct raw *raw, struct msghdr *msg)
{
    ck_assert(!(msg->msg_flags & MSG_CTRUNC));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        ck_assert(c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS);
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        ck_assert_uint_le(raw->n_fds + n, RAW_DESCRIPTORS);
        memcpy(raw->fds + raw->n_fds, CMSG_DATA(c), n * sizeof(int));
        raw->n_fds += (unsigned)n;
    }
}

/* Receives more bytes. Returns false at the end of the connection. */
static bool receive_some(struct raw *raw)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * RAW_DESCRIPTORS)];
    } control;
    char bytes[16384];
    struct iovec iov = {bytes, sizeof bytes};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    await_readable(raw->socket);
    ssize_t n = recvmsg(raw->socket, &msg, MSG_CMSG_CLOEXEC);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return false;
    ck_assert_msg(n > 0, "recvmsg: %s", strerror(errno));
    take_descriptors(raw, &msg);
    raw->bytes = realloc(raw->bytes, raw->n_bytes + (size_t)n);
    ck_assert_ptr_nonnull(raw->bytes);
    memcpy(raw->bytes + raw->n_bytes, bytes, (size_t)n);
    raw->n_bytes += (size_t)n;
    return true;
}

char *raw_receive(struct raw *raw)
{
    const char *end;
    while (!raw->n_bytes || !(end = memchr(raw->bytes, 0, raw->n_bytes)))
        if (!receive_some(raw))
            return NULL;
    size_t n = (size_t)(end - raw->bytes) + 1;
    char *text = strdup(raw->bytes);
    ck_assert_ptr_nonnull(text);
    raw->n_bytes -= n;
    memmove(raw->bytes, raw->bytes + n, raw->n_bytes);
    return text;
}

void raw_expect_end(struct raw *raw)
{
    char *text = raw_receive(raw);
    ck_assert_msg(!text, "a reply where the end of the connection was due: %s", text);
    ck_assert_uint_eq(raw->n_bytes, 0);
}

/* --- Replies ------------------------------------------------------------- */

/* Receives a reply. Returns it as JSON and stores its text; the caller frees both. */
static json_t *receive_json(struct raw *raw, char **ret_text)
{
    *ret_text = raw_receive(raw);
    ck_assert_msg(*ret_text != NULL, "the daemon hung up");
    json_t *reply = json_loads(*ret_text, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(reply), "not an object: %s", *ret_text);
    ck_assert_msg(json_is_object(json_object_get(reply, "parameters")), "no parameters: %s",
                  *ret_text);
    return reply;
}

static json_t *take_parameters(json_t *reply, char *text)
{
    json_t *parameters = json_incref(json_object_get(reply, "parameters"));
    json_decref(reply);
    free(text);
    return parameters;
}

json_t *raw_receive_success(struct raw *raw)
{
    char *text;
    json_t *reply = receive_json(raw, &text);
    ck_assert_msg(!json_object_get(reply, "error"), "an error: %s", text);
    return take_parameters(reply, text);
}

json_t *raw_receive_error(struct raw *raw, const char *error, const char *part)
{
    char *text, whole[128];
    json_t *reply = receive_json(raw, &text);
    const char *got = json_string_value(json_object_get(reply, "error"));
    snprintf(whole, sizeof whole, "%s%s", strchr(error, '.') ? "" : "io.shmview.", error);
    ck_assert_msg(got && strcmp(got, whole) == 0, "not %s: %s", whole, text);
    const json_t *parameters = json_object_get(reply, "parameters");
    const char *reason = json_string_value(json_object_get(parameters, "reason"));
    ck_assert_msg(strstr(reason ? reason : text, part) != NULL, "no '%s' in: %s", part, text);
    return take_parameters(reply, text);
}

json_t *raw_call(struct raw *raw, const char *method, const char *parameters)
{
    ck_assert_msg(raw_send_call(raw, method, parameters), "the daemon hung up before %s", method);
    return raw_receive_success(raw);
}

void raw_do(struct raw *raw, const char *method, const char *parameters)
{
    json_decref(raw_call(raw, method, parameters));
}

void raw_refused(struct raw *raw, const char *method, const char *parameters, const char *error,
                 const char *part)
{
    ck_assert_msg(raw_send_call(raw, method, parameters), "the daemon hung up before %s", method);
    json_decref(raw_receive_error(raw, error, part));
}

json_int_t raw_int(const json_t *json, const char *path)
{
    char name[64];
    const json_t *at = json;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, ".");
        ck_assert_uint_lt(n, sizeof name);
        memcpy(name, p, n);
        name[n] = '\0';
        at = json_object_get(at, name);
        p += n + (p[n] == '.');
    }
    ck_assert_msg(json_is_integer(at), "no integer '%s'", path);
    return json_integer_value(at);
}
