/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/server.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "web/base/bucket.h"
#include "web/http/check.h"

#define MOST_SOCKETS  4
#define COOKIE_PREFIX "shmview"
#define COOKIE_BYTES  (sizeof COOKIE_PREFIX "-65535") /* of the name */
#define POLICY_BYTES  1024
#define METHODS       "GET, HEAD, POST"
#define STREAM_BLOCK  4096
#define STARTS_OF_API "/api/"

/* Only what this server sends may run or be shown, no page but that of --frame may show this one in
 * a frame, and text never becomes markup (trusted types). The argument is the origin that may. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "              \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors %s; "                \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const char *const headers[][2] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

struct server {
    const struct server_options *options;
    struct MHD_Daemon *daemons[MOST_SOCKETS];
    struct sessions sessions;
    struct bucket requests, strangers; /* with and without a session */
    struct room answers;
    atomic_bool ends;
    char policy[POLICY_BYTES];
};

/* A request until its answer is sent. */
struct arrival {
    char *body;
    size_t n;
    struct hold held;
};

bool request_hold(const struct request *q, struct reply *r, size_t bytes)
{
    if (room_take(&q->server->answers, bytes, q->held))
        return true;
    r->retry_after_s = 1;
    reply_error(
        r, 503,
        "the answer has %zu MiB, and with those that are being sent the page's server would "
        "hold more than %zu MiB: try again when a download has ended",
        bytes >> 20, LIMIT_ANSWERS_BYTES >> 20);
    return false;
}

void request_watch_end(const struct request *q, struct request_end *ret)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *ret = (struct request_end){.server = q->server, .fd = info ? info->connect_fd : -1};
}

bool request_is_over(const struct request_end *end)
{
    struct pollfd p = {.fd = end->fd, .events = POLLRDHUP};
    return atomic_load(&end->server->ends) ||
           (poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

void server_token(struct server *server, char ret[SESSION_BYTES])
{
    sessions_token(&server->sessions, ret);
}

/* --- Sending ------------------------------------------------------------- */

static ssize_t read_stream(void *arg, uint64_t position, char *buffer, size_t room)
{
    struct reply_stream *s = arg;
    (void)position;
    ptrdiff_t n = s->read(s->arg, buffer, room);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void free_stream(void *arg)
{
    struct reply_stream *s = arg;
    s->free(s->arg);
    free(s);
}

/* Makes the response of a stream, which owns it then. */
static struct MHD_Response *stream_response(struct reply *r)
{
    struct reply_stream *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = r->stream;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, free_stream);
    if (response)
        r->stream.arg = NULL;
    else
        free(s);
    return response;
}

static struct MHD_Response *make_response(struct reply *r)
{
    if (r->stream.arg)
        return stream_response(r);
    if (r->file) /* the library does not write to what is persistent */
        return MHD_create_response_from_buffer(r->file->n, (void *)(uintptr_t)r->file->bytes,
                                               MHD_RESPMEM_PERSISTENT);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(r->body.n, r->body.bytes, MHD_RESPMEM_MUST_FREE);
    if (response)
        r->body = (struct text){.bytes = NULL};
    return response;
}

static void add_headers(const struct server *s, struct MHD_Response *response,
                        const struct reply *r)
{
    char text[300];
    MHD_add_response_header(response, "Content-Security-Policy", s->policy);
    if (!s->options->frame) /* it knows no origins */
        MHD_add_response_header(response, "X-Frame-Options", "DENY");
    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            r->file   ? r->file->type
                            : r->type ? r->type
                                      : TYPE_JSON);
    if (r->cookie[0])
        MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, r->cookie);
    if (r->allow)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, r->allow);
    if (r->retry_after_s) {
        snprintf(text, sizeof text, "%u", r->retry_after_s);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
    }
    if (r->save_as[0]) {
        snprintf(text, sizeof text, "attachment; filename=\"%s\"", r->save_as);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, text);
    }
}

/* Sends the reply. Returns MHD_NO if that cannot be, which closes the connection. */
static enum MHD_Result send_reply(const struct server *s, struct MHD_Connection *connection,
                                  struct reply *r)
{
    if (r->body.failed) {
        r->retry_after_s = 1;
        reply_error(r, 503, "the page's server is short of memory: ask for less at once");
    }
    struct MHD_Response *response = r->body.failed ? NULL : make_response(r);
    if (!response)
        return MHD_NO;
    add_headers(s, response, r);
    enum MHD_Result result = MHD_queue_response(connection, r->status ? r->status : 200, response);
    MHD_destroy_response(response);
    return result;
}

/* --- Checks -------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Writes the name of the cookie. Browsers send a cookie to all ports of a host, so the name has the
 * port that the browser uses: otherwise two servers, or tunnels to two machines, would replace each
 * other's cookies. */
static void cookie_name(struct MHD_Connection *connection, char ret[COOKIE_BYTES])
{
    const char *host = header(connection, MHD_HTTP_HEADER_HOST);
    const char *port = host ? strrchr(host, ':') : NULL;
    bool has_port = port && port[1] && !port[1 + strspn(port + 1, "0123456789")];
    snprintf(ret, COOKIE_BYTES, "%s%s%.5s", COOKIE_PREFIX, has_port ? "-" : "",
             has_port ? port + 1 : "");
}

static const char *cookie_of(struct MHD_Connection *connection)
{
    char name[COOKIE_BYTES];
    cookie_name(connection, name);
    return MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name);
}

/* Takes one request from its limit. Requests without a session have a limit of their own, and so
 * have those of other pages that bring a cookie along: otherwise every user of this machine, and
 * every page that the browser shows, could use up the requests of our page. */
static bool may_ask(struct server *s, struct MHD_Connection *connection, bool is_our_page)
{
    bool is_known = is_our_page && sessions_has(&s->sessions, cookie_of(connection));
    return bucket_take(is_known ? &s->requests : &s->strangers, 1);
}

/* Refuses what needs no body to be refused. Returns whether the reply is an error now. */
static bool refuse_early(struct server *s, struct MHD_Connection *connection, const char *path,
                         const char *method, struct reply *r)
{
    const char *host = header(connection, MHD_HTTP_HEADER_HOST);
    const char *origin = header(connection, "Origin");
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool is_post = strcmp(method, "POST") == 0, is_root = strcmp(path, "/") == 0;
    bool is_our_page = check_fetch_site(header(connection, "Sec-Fetch-Site"));
    if (!is_post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        r->allow = METHODS;
        reply_error(r, 405, "no resource here has the method %.20s", method);
    } else if (!check_host(host, s->options->host)) {
        reply_error(r, 403,
                    "this server does not answer for the host '%.100s': use localhost, or "
                    "start it with --host",
                    host ? host : "");
    } else if ((origin || is_post) && !check_origin(origin, host)) {
        reply_error(r, 403, "the request comes from the page of another site, '%.100s'",
                    origin ? origin : "");
    } else if (!is_root && !is_our_page) {
        reply_error(r, 403, "the request comes from the page of another site");
    } else if (!may_ask(s, connection, is_our_page)) {
        r->retry_after_s = 1;
        reply_error(r, 429, "more than %d requests come in a second: wait", LIMIT_REQUESTS_PER_S);
    } else if (length && strtoull(length, NULL, 10) > LIMIT_BODY_BYTES) {
        reply_error(r, 413, "a request has at most %d bytes", LIMIT_BODY_BYTES);
    } else {
        return false;
    }
    return true;
}

/* Writes the part of an address after "#", which a browser does not send; at may be NULL. */
static void put_place(struct text *t, const char *at)
{
    if (at) {
        text_put(t, "#");
        text_html(t, at);
    }
}

/* Answers GET /?token=...&at=... The answer is a page that leads to the next one, and no
 * redirection: after a redirection from another site's page a browser would not send a Strict
 * cookie. */
static void exchange(struct server *s, const struct request *q, const char *token, struct reply *r)
{
    char cookie[SESSION_BYTES], name[COOKIE_BYTES];
    const char *old = cookie_of(q->connection);
    const char *at = request_text(q, "at");
    if (!sessions_exchange(&s->sessions, token, old, cookie)) {
        if (sessions_has(&s->sessions, old))
            r->file = files_find("/");
        else
            reply_page(r, 401, "This link has been used",
                       "A link of shmviewctl web lets one browser in, once. The program has "
                       "printed another link: open that one.");
        return;
    }
    r->type = TYPE_HTML;
    text_put(&r->body, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta http-equiv=\"refresh\" content=\"0;url=/");
    put_place(&r->body, at);
    text_put(&r->body, "\"><title>shmview</title></head><body><a href=\"/");
    put_place(&r->body, at);
    text_put(&r->body, "\">Continue</a></body></html>\n");
    cookie_name(q->connection, name);
    snprintf(r->cookie, sizeof r->cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", name, cookie);
    if (s->options->on_exchange)
        s->options->on_exchange(s->options->context);
}

/* Finds the handler of a request, and calls it. */
static void dispatch(const struct server *s, const struct request *q, bool is_post, struct reply *r)
{
    for (const struct route *route = s->options->routes; route->path; route++) {
        if (strcmp(route->path, q->path) != 0)
            continue;
        if (route->is_post != is_post) {
            r->allow = route->is_post ? "POST" : "GET, HEAD";
            reply_error(r, 405, "%s has the method %s", q->path, r->allow);
        } else if (route->is_change && !s->options->allow_changes) {
            reply_error(r, 403, "this page only shows: start shmviewctl web with --allow-changes");
        } else {
            route->handle(q, r);
        }
        return;
    }
    r->file = files_find(q->path);
    if (r->file && is_post) {
        r->file = NULL;
        r->allow = "GET, HEAD";
        reply_error(r, 405, "%.100s has the method GET", q->path);
    } else if (!r->file) {
        reply_error(r, 404, "there is no %.100s here", q->path);
    }
}

static void answer(struct server *s, const struct request *q, bool is_post, struct reply *r)
{
    const char *token = request_text(q, "token");
    if (token && !is_post && strcmp(q->path, "/") == 0)
        exchange(s, q, token, r);
    else if (sessions_has(&s->sessions, cookie_of(q->connection)))
        dispatch(s, q, is_post, r);
    else if (strcmp(q->path, "/") == 0)
        reply_page(r, 401, "Open the link of shmviewctl web",
                   "This page shows memory only to the user who started it. The program prints a "
                   "link when it starts: open that link in this browser.");
    else
        reply_error(r, 401, "no session: open the link that shmviewctl web has printed");
}

/* --- libmicrohttpd ------------------------------------------------------- */

/* Adds a piece of the body. Returns MHD_NO, which closes the connection, if it becomes too large:
 * only a body that did not announce its length gets here. */
static enum MHD_Result receive(struct arrival *a, const char *bytes, size_t *n)
{
    if (*n > LIMIT_BODY_BYTES - a->n)
        return MHD_NO;
    char *body = realloc(a->body, a->n + *n);
    if (!body)
        return MHD_NO;
    memcpy(body + a->n, bytes, *n);
    a->body = body;
    a->n += *n;
    *n = 0;
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n_bytes, void **state)
{
    struct server *s = arg;
    struct arrival *a = *state;
    CLEANUP_REPLY struct reply reply = {.status = 0};
    (void)version;
    if (!a) { /* the headers are there */
        if (refuse_early(s, connection, path, method, &reply))
            return send_reply(s, connection, &reply);
        *state = calloc(1, sizeof *a);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*n_bytes)
        return receive(a, bytes, n_bytes);
    const struct request q = {.connection = connection,
                              .server = s,
                              .context = s->options->context,
                              .path = path,
                              .body = a->body,
                              .body_bytes = a->n,
                              .held = &a->held};
    answer(s, &q, strcmp(method, "POST") == 0, &reply);
    if (reply.body.n > LIMIT_ANSWER_FREE && !a->held.room)
        request_hold(&q, &reply, reply.body.n);
    return send_reply(s, connection, &reply);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct arrival *a = *state;
    (void)arg, (void)connection, (void)code;
    if (a) {
        free(a->body);
        hold_end(&a->held);
    }
    free(a);
    *state = NULL;
}

static struct MHD_Daemon *start_one(struct server *s, int fd)
{
    return MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
        NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_MEMORY_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)LIMIT_STACK_BYTES, MHD_OPTION_END);
}

int server_start(const struct server_options *options, struct server **ret_server)
{
    struct server *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->options = options;
    int n =
        snprintf(s->policy, sizeof s->policy, POLICY, options->frame ? options->frame : "'none'");
    if (n < 0 || (size_t)n >= sizeof s->policy) {
        free(s);
        return -ENAMETOOLONG;
    }
    bucket_init(&s->requests, LIMIT_REQUESTS_PER_S, LIMIT_REQUESTS_BURST);
    bucket_init(&s->strangers, LIMIT_REQUESTS_PER_S, LIMIT_REQUESTS_BURST);
    room_init(&s->answers, LIMIT_ANSWERS_BYTES);
    int r = sessions_init(&s->sessions);
    for (size_t i = 0; r == 0 && i < options->n_sockets && i < MOST_SOCKETS; i++) {
        s->daemons[i] = start_one(s, options->sockets[i]);
        if (!s->daemons[i])
            r = errno ? -errno : -EIO;
    }
    if (r) {
        server_stop(s);
        return r;
    }
    *ret_server = s;
    return 0;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    atomic_store(&server->ends, true);
    for (size_t i = 0; i < MOST_SOCKETS; i++)
        if (server->daemons[i])
            MHD_stop_daemon(server->daemons[i]);
    sessions_deinit(&server->sessions);
    bucket_deinit(&server->requests);
    bucket_deinit(&server->strangers);
    free(server);
}
