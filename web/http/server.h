/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server, on libmicrohttpd: checks each request, finds its handler, and sends the answer.
 *
 * A request passes these checks in this order, and the first that fails is the answer:
 *
 *   method      405, unless GET, HEAD or POST
 *   Host        403, unless it names this machine or the name of --host
 *   Origin      403, if it is another page's, or missing with POST
 *   rate        429, beyond LIMIT_REQUESTS_PER_S of all sessions together, or of all other requests
 *   size        413 beyond LIMIT_BODY_BYTES; libmicrohttpd refuses long headers
 *   token       GET /?token=... exchanges it for a cookie
 *   cookie      401 without a session, for every path
 *   path        404; 405 with another method; 403 for a change without --allow-changes
 *   memory      503, if this answer and those that are not sent yet exceed LIMIT_ANSWERS_BYTES
 *
 * Each connection has a thread, because a handler may wait for the daemon or a lock, and that must
 * delay nobody else. */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include "web/base/room.h"
#include "web/http/reply.h"
#include "web/http/sessions.h"

struct MHD_Connection;
struct server;

/* A request that has passed the checks. Its strings are valid while its handler runs. */
struct request {
    struct MHD_Connection *connection;
    struct server *server;
    void *context; /* of the options */
    const char *path;
    const char *body; /* of a POST; not terminated */
    size_t body_bytes;
    struct hold *held; /* what the answer holds until it is sent */
};

/* Counts bytes of an answer before a handler allocates them, against LIMIT_ANSWERS_BYTES. They
 * count until the answer is sent. Returns false after making the reply an error. */
bool request_hold(const struct request *q, struct reply *r, size_t bytes);

/* Returns a parameter of the URL, or NULL if it is missing or has a NUL. */
const char *request_text(const struct request *q, const char *name);
/* Reads a decimal parameter. Without it, *ret stays. Returns false after making the reply an error
 * if it is no number from least to most. */
bool request_number(const struct request *q, struct reply *r, const char *name, int64_t least,
                    int64_t most, int64_t *ret);
/* Like request_number(), but for a finite real number. */
bool request_real(const struct request *q, struct reply *r, const char *name, double *ret);
/* Stores the values of a parameter that may come many times. Returns their number, at most n. */
size_t request_texts(const struct request *q, const char *name, const char **ret, size_t n);

/* How a stream finds out that nobody wants it any longer. */
struct request_end {
    const struct server *server;
    int fd; /* of the connection */
};
void request_watch_end(const struct request *q, struct request_end *ret);
/* Whether the server ends, or the browser has closed the connection. Only the thread of the
 * connection may call. Does not block. */
bool request_is_over(const struct request_end *end);

struct route {
    const char *path;
    bool is_post;
    bool is_change; /* needs --allow-changes */
    void (*handle)(const struct request *q, struct reply *reply);
};

struct server_options {
    const int *sockets; /* that listen; the server closes them */
    size_t n_sockets;
    const char *host; /* another name of this machine, for proxies; NULL: none */
    /* The origin whose pages may show this one in a frame, which check_frame() has accepted; NULL:
     * none. */
    const char *frame;
    bool allow_changes;
    const struct route *routes; /* ends with path NULL; borrowed */
    void *context;              /* of handlers; borrowed */
    /* Called by any thread after a token was used. May be NULL. */
    void (*on_exchange)(void *context);
};

/* Starts to serve. options is borrowed until server_stop(). Returns 0, or a negative errno: then
 * the sockets are still the caller's. */
int server_start(const struct server_options *options, struct server **ret_server);
/* Ends all connections, and frees the server. server may be NULL. Blocks until handlers that run
 * have returned. */
void server_stop(struct server *server);
/* Copies the token of the next browser. */
void server_token(struct server *server, char ret[SESSION_BYTES]);

#endif
