/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/private.h"
#include "common/util.h"

#define START_TIMEOUT_NS 10000000000
#define START_RETRY_NS   5000000

/* --- Sockets ------------------------------------------------------------- */

/* Returns a connected socket or -errno. */
static int socket_connect(const char *path)
{
    struct sockaddr_un address;
    int r = address_fill(&address, path);
    if (r)
        return r;
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    do
        r = connect(fd, (const struct sockaddr *)&address, sizeof address);
    while (r && errno == EINTR);
    return r ? -errno : steal_fd(&fd);
}

/* A socket in a directory that others may write proves nothing: who serves it? */
static int check_server(int fd, const char *path)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n))
        return fail_errno("SO_PEERCRED", errno);
    if (cred.uid == 0 || cred.uid == geteuid())
        return 0;
    return fail(SHMVIEW_ERR_DENIED, "%s is served by uid %u, neither root nor this user", path,
                cred.uid);
}

/* --- Calls --------------------------------------------------------------- */

void reply_deinit(struct reply *reply)
{
    wire_reply_deinit(&reply->wire);
    frame_descriptors_close(&reply->fds);
}

void connection_lock(struct shmview_connection *connection)
{
    uint32_t epoch = process_epoch();
    if (atomic_load_explicit(&connection->epoch, memory_order_acquire) != epoch) {
        pthread_mutex_lock(&process->mutex);
        if (atomic_load_explicit(&connection->epoch, memory_order_relaxed) != epoch) {
            /* an ancestor's: its thread may have held the mutex, its socket is not ours */
            pthread_mutex_init(&connection->mutex, NULL);
            close_fdp(&connection->fd);
            frame_deinit(&connection->in);
            atomic_store_explicit(&connection->epoch, epoch, memory_order_release);
        }
        pthread_mutex_unlock(&process->mutex);
    }
    pthread_mutex_lock(&connection->mutex);
}

void connection_unlock(struct shmview_connection *connection)
{
    pthread_mutex_unlock(&connection->mutex);
}

static int hang_up(struct shmview_connection *c, int error, const char *why)
{
    close_fdp(&c->fd);
    frame_deinit(&c->in);
    c->gone = true;
    return fail(error, "%s: %s", c->path, why);
}

static int send_all(struct shmview_connection *c, const char *text, size_t n)
{
    while (n) {
        ssize_t sent = frame_send(c->fd, text, n, NULL, 0);
        if (sent < 0)
            return hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror((int)-sent));
        text += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int receive_reply(struct shmview_connection *c, struct reply *reply)
{
    char *text;
    size_t n;
    struct wire_fault fault;
    while (!frame_next(&c->in, &text, &n)) {
        ssize_t r = frame_receive(&c->in, c->fd, LIMIT_REPLY_BYTES, &reply->fds);
        if (r == 0)
            return hang_up(c, SHMVIEW_ERR_DISCONNECTED, "the daemon hung up");
        if (r == -EPROTO || r == -EMSGSIZE)
            return hang_up(c, SHMVIEW_ERR_PROTOCOL, "too many descriptors or too long a reply");
        if (r < 0)
            return hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror((int)-r));
    }
    if (c->in.used != c->in.n)
        return hang_up(c, SHMVIEW_ERR_PROTOCOL, "a reply that nobody asked for");
    if (wire_reply_parse(&reply->wire, text, n, &fault))
        return hang_up(c, SHMVIEW_ERR_PROTOCOL, fault.reason);
    return 0;
}

static int exchange(struct shmview_connection *c, const char *text, size_t n, struct reply *reply)
{
    if (c->gone)
        return fail(SHMVIEW_ERR_DISCONNECTED, "%s: the daemon hung up earlier", c->path);
    if (c->fd < 0) {
        c->fd = socket_connect(c->path);
        if (c->fd < 0)
            return fail(SHMVIEW_ERR_NO_DAEMON, "%s: %s", c->path, strerror(-c->fd));
    }
    int r = send_all(c, text, n);
    return r ? r : receive_reply(c, reply);
}

int connection_call(struct shmview_connection *connection, const char *method, json_t *parameters,
                    struct reply *reply)
{
    size_t n;
    const char *reason;
    *reply = (struct reply){0};
    CLEANUP_FREE char *text = parameters ? wire_call_text(method, parameters, &n) : NULL;
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    NOT_CANCELLED;
    connection_lock(connection);
    int r = exchange(connection, text, n, reply);
    connection_unlock(connection);
    if (r == 0 && reply->wire.error) {
        int error = wire_error_code(&reply->wire, &reason);
        r = fail(error, "%s", reason);
    }
    if (r)
        reply_deinit(reply);
    return r;
}

int shmview_ping(struct shmview_connection *connection)
{
    struct reply reply;
    int r = connection_call(connection, "io.shmview.Ping", json_object(), &reply);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}

/* --- Finding a daemon ---------------------------------------------------- */

/* What was tried, for the error text. */
struct search {
    char text[384];
    size_t n;
};

static void search_note(struct search *search, const char *path, const char *why)
{
    int n = snprintf(search->text + search->n, sizeof search->text - search->n, "%s%s (%s)",
                     search->n ? ", " : "", path, why);
    search->n += n > 0 ? (size_t)n : 0;
    if (search->n >= sizeof search->text)
        search->n = sizeof search->text - 1;
}

/* Whether nobody listens there, so that the next place may be tried. */
static bool nobody_there(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR || r == -EACCES;
}

/* Connects and asks for an answer: a daemon that is leaving takes a connection
 * and hangs up. Returns 0, 1 if nobody is there, or an error. */
static int try_path(struct shmview_connection *c, const char *path, bool check,
                    struct search *search)
{
    if (snprintf(c->path, sizeof c->path, "%s", path) >= (int)sizeof c->path)
        return fail(SHMVIEW_ERR_INVALID, "a socket path has at most %zu bytes: %s",
                    sizeof c->path - 1, path);
    c->fd = socket_connect(path);
    if (nobody_there(c->fd)) {
        search_note(search, path, strerror(-c->fd));
        c->fd = -1;
        return 1;
    }
    if (c->fd < 0) {
        int error = -c->fd;
        c->fd = -1;
        return error == EINVAL ? fail(SHMVIEW_ERR_INVALID, "the socket path is empty")
                               : fail_errno(path, error);
    }
    int r = check ? check_server(c->fd, path) : 0;
    if (r == 0)
        r = shmview_ping(c);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        search_note(search, path, "it hung up");
        c->gone = false;
        return 1;
    }
    return r;
}

static int pause_start(int64_t deadline)
{
    struct timespec step = {.tv_nsec = START_RETRY_NS};
    if (now_ns() > deadline)
        return -1;
    nanosleep(&step, NULL);
    return 0;
}

/* Somebody else may be starting it at the same moment: whoever wins serves us. */
static int connect_session(struct shmview_connection *c, const char *path, bool start,
                           struct search *search)
{
    char text[200] = "";
    int r = try_path(c, path, true, search);
    if (r != 1 || !start)
        return r;
    int64_t deadline = now_ns() + START_TIMEOUT_NS;
    do {
        int failed = session_start(path, text, sizeof text);
        struct search again = {0};
        r = try_path(c, path, true, &again);
        if (r == 1 && failed && !strstr(text, "another shmviewd"))
            break; /* it will not come up */
    } while (r == 1 && pause_start(deadline) == 0);
    if (r == 1)
        search_note(search, "starting one", text[0] ? text : "no answer in 10 s");
    return r;
}

static int connect_default(struct shmview_connection *c, bool start, struct search *search)
{
    address_path user, session;
    const char *set = secure_getenv("SHMVIEW_SOCKET");
    if (set && set[0])
        return try_path(c, set, false, search);
    if (address_user(user) || address_session(session))
        return fail(SHMVIEW_ERR_INVALID, "$XDG_RUNTIME_DIR is too long for a socket path");
    int r = try_path(c, user, true, search);
    if (r == 1)
        r = try_path(c, ADDRESS_SYSTEM, false, search);
    if (r == 1)
        r = connect_session(c, session, start, search);
    return r;
}

int shmview_connect(const char *socket_path, unsigned flags,
                    struct shmview_connection **ret_connection)
{
    struct search search = {0};
    NOT_CANCELLED;
    int r = process_init();
    if (r)
        return r;
    if (flags & ~SHMVIEW_CONNECT_NO_START)
        return fail(SHMVIEW_ERR_INVALID, "unknown flags 0x%x", flags);
    struct shmview_connection *c = calloc(1, sizeof *c);
    if (!c)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    c->fd = -1;
    pthread_mutex_init(&c->mutex, NULL);
    atomic_store(&c->epoch, process_epoch());
    r = socket_path ? try_path(c, socket_path, false, &search)
                    : connect_default(c, !(flags & SHMVIEW_CONNECT_NO_START), &search);
    if (r == 0) {
        *ret_connection = c;
        return 0;
    }
    close_fdp(&c->fd);
    frame_deinit(&c->in);
    free(c);
    return r == 1 ? fail(SHMVIEW_ERR_NO_DAEMON, "no shmviewd: tried %s", search.text) : r;
}

int shmview_disconnect(struct shmview_connection *connection)
{
    if (!connection)
        return 0;
    NOT_CANCELLED;
    connection_lock(connection);
    unsigned n = connection->n_segments;
    connection_unlock(connection);
    if (n)
        return fail(SHMVIEW_ERR_BUSY, "%u segments are still attached through this connection", n);
    close_fdp(&connection->fd);
    frame_deinit(&connection->in);
    pthread_mutex_destroy(&connection->mutex);
    free(connection);
    return 0;
}
