/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the daemon: one at a time, each over a connection that is made anew where the
 * daemon has gone away, as it does when it is started again. It then hears which
 * attachments we still have; what it gave us without our ever hearing of it, it takes back.
 *
 * A request that was sent whole and not answered may have been carried out. It is sent again
 * where twice does no harm; else the caller is told. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/lock.h"
#include "common/descriptor.h"
#include "common/util.h"

/* How long a daemon that is gone is waited for, and how often it is looked for. */
#define RETURN_TIMEOUT_NS 900000000
#define RETURN_RETRY_NS   5000000

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
    fd = descriptor_lift(fd);
    if (fd < 0)
        return fd;
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
    if (!connection)
        return; /* foreign memory has no layouts that could change */
    uint32_t epoch = process_epoch();
    if (atomic_load_explicit(&connection->epoch, memory_order_acquire) != epoch) {
        pthread_mutex_lock(&process->mutex);
        if (atomic_load_explicit(&connection->epoch, memory_order_relaxed) != epoch) {
            NOT_FORKED;
            /* an ancestor's: its thread may have held the mutex, its socket is not ours */
            pthread_mutex_init(&connection->mutex, NULL);
            connection_disown(connection);
            frame_deinit(&connection->in);
            connection->n_held = 0; /* an ancestor's attachments */
            atomic_store_explicit(&connection->epoch, epoch, memory_order_release);
        }
        pthread_mutex_unlock(&process->mutex);
    }
    pthread_mutex_lock(&connection->mutex);
}

void connection_unlock(struct shmview_connection *connection)
{
    if (connection)
        pthread_mutex_unlock(&connection->mutex);
}

void connection_hang_up(struct shmview_connection *connection)
{
    connection_close_socket(connection);
    NOT_FORKED;
    frame_deinit(&connection->in);
}

static int hang_up(struct shmview_connection *c, int error, const char *why)
{
    connection_hang_up(c);
    return fail(error, "%s: %s", c->path, why);
}

/* Returns 0 or -errno. */
static int send_all(const struct shmview_connection *c, const char *text, size_t n)
{
    while (n) {
        ssize_t sent = frame_send(c->fd, text, n, NULL, 0);
        if (sent < 0)
            return (int)sent;
        text += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Whether sending failed with r because the daemon does not hear. A daemon that refuses to hear
 * says why before it hangs up, so that there may be something to receive where sending fails. */
static bool is_refused(const struct shmview_connection *c, int r)
{
    if (r != -EPIPE && r != -ECONNRESET)
        return false;
    shutdown(c->fd, SHUT_RDWR); /* what has come can be received, and nothing is waited for */
    return true;
}

static int reserve(struct frame *in)
{
    NOT_FORKED;
    return frame_reserve(in, LIMIT_REPLY_BYTES);
}

/* Whether there is something to receive, be it the end. */
static bool has_come(int fd)
{
    char byte;
    return recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static void look_for_reply(struct shmview_connection *c)
{
    if (!spins_allowed())
        return;
    uint32_t ns = looking_ns(&c->looking);
    int64_t began = now_ns(), now = began;
    bool seen = false;
    while (!seen && now - began < ns) {
        seen = has_come(c->fd);
        now = now_ns();
    }
    if (seen)
        looking_saw(&c->looking, ns, now - began);
    else
        looking_in_vain(&c->looking, ns);
}

/* What a reply gives that nobody could read, the daemon takes back when it hears a claim without
 * it. */
static int unreadable(struct shmview_connection *c, const struct wire_fault *fault)
{
    return hang_up(c, fault->no_memory ? SHMVIEW_ERR_NO_MEMORY : SHMVIEW_ERR_PROTOCOL,
                   fault->reason);
}

/* r is what frame_receive() returned: 0, or -errno. */
static int receive_failed(struct shmview_connection *c, ssize_t r)
{
    if (r == 0)
        return hang_up(c, SHMVIEW_ERR_DISCONNECTED, "the daemon hung up");
    if (r == -EPROTO || r == -EMSGSIZE)
        return hang_up(c, SHMVIEW_ERR_PROTOCOL, "too many descriptors or too long a reply");
    if (r == -ENOMEM)
        return hang_up(c, SHMVIEW_ERR_NO_MEMORY, "out of memory");
    return hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror((int)-r));
}

static int receive_reply(struct shmview_connection *c, struct reply *reply)
{
    char *text;
    size_t n;
    struct wire_fault fault;
    while (!frame_next(&c->in, &text, &n)) {
        ssize_t r = reserve(&c->in);
        if (r == 0) {
            look_for_reply(c);
            r = frame_receive(&c->in, c->fd, LIMIT_REPLY_BYTES, &reply->fds);
            if (r == 0)
                return receive_failed(c, 0);
        }
        if (r < 0)
            return receive_failed(c, r);
    }
    if (c->in.used != c->in.n)
        return hang_up(c, SHMVIEW_ERR_PROTOCOL, "a reply that nobody asked for");
    reply->is_attached = wire_attached_scan(text, reply->room, sizeof reply->room, &reply->segment,
                                            &reply->attachment);
    if (!reply->is_attached && wire_reply_parse(&reply->wire, text, n, &fault))
        return unreadable(c, &fault);
    return 0;
}

/* --- Connecting ---------------------------------------------------------- */

/* What the daemon is to know of us; NULL if memory is short. */
static char *claim_text(const struct shmview_connection *c, size_t *ret_n)
{
    struct wire_claim claim = {.client = c->client, .n_held = c->n_held};
    CLEANUP_FREE struct wire_held *held = calloc(c->n_held ? c->n_held : 1, sizeof *held);
    if (!held)
        return NULL;
    for (size_t i = 0; i < c->n_held; i++)
        held[i].attachment = c->held[i];
    claim.held = held;
    claim.presence = c->presence ? WIRE_PRESENCE_KEPT : WIRE_PRESENCE_WANTED;
    json_t *parameters = wire_write_claim(&claim);
    return parameters ? wire_call_text("io.shmview.Claim", parameters, ret_n) : NULL;
}

/* Sends and receives. *ret_sent: the request was sent whole. */
static int ask(struct shmview_connection *c, const char *text, size_t n, struct reply *reply,
               bool *ret_sent)
{
    int r = send_all(c, text, n);
    *ret_sent = r == 0;
    if (is_refused(c, r)) {
        int refused = receive_reply(c, reply);
        connection_hang_up(c);
        return refused;
    }
    return r ? hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror(-r)) : receive_reply(c, reply);
}

/* No fork comes between the arrival of descriptors and the note of them in the connection, by
 * which the child closes its own. */
static int receive_claimed(struct shmview_connection *c, struct reply *reply)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int r = reserve(&c->in);
    while (r == 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    if (r == 0) {
        NOT_FORKED;
        r = (int)frame_receive(&c->in, c->fd, LIMIT_REPLY_BYTES, &c->arrived);
    }
    return r > 0 ? receive_reply(c, reply) : receive_failed(c, r);
}

static void close_arrived(struct shmview_connection *c)
{
    NOT_FORKED;
    frame_descriptors_close(&c->arrived);
}

/* Maps what came with the reply. */
static int take_claimed(struct shmview_connection *c, const struct reply *reply)
{
    struct wire_claimed claimed;
    struct wire_fault fault;
    if (wire_read_claimed(reply->wire.parameters, &claimed, &fault))
        return unreadable(c, &fault);
    if (claimed.presence != WIRE_ABSENT && claimed.presence < (int64_t)c->arrived.n)
        connection_map_presence(c, c->arrived.fd[claimed.presence]);
    segments_claimed(c, claimed.held, claimed.n_held);
    free(claimed.held);
    return 0;
}

static int greet(struct shmview_connection *c)
{
    size_t n;
    struct reply reply = {0};
    CLEANUP_FREE char *text = claim_text(c, &n);
    if (!text) {
        connection_hang_up(c);
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    int r = send_all(c, text, n);
    if (r == 0 || is_refused(c, r))
        r = receive_claimed(c, &reply);
    else
        r = hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror(-r));
    if (r == 0 && reply.wire.error) {
        const char *reason;
        int error = wire_error_code(&reply.wire, &reason);
        r = hang_up(c, error, reason);
    } else if (r == 0) {
        r = take_claimed(c, &reply);
    }
    close_arrived(c);
    reply_deinit(&reply);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        errno = ECONNRESET; /* it was about to leave */
        return 1;
    }
    return r;
}

/* Whether nobody listens there, so that another place, or time, may be tried. */
static bool nobody_there(int error)
{
    return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR || error == EACCES;
}

int connection_dial(const struct shmview_connection *connection, int *ret_fd)
{
    const struct shmview_connection *c = connection;
    CLEANUP_FD int fd = socket_connect(c->path);
    if (fd < 0 && nobody_there(-fd)) {
        errno = -fd;
        return 1;
    }
    if (fd == -EINVAL)
        return fail(SHMVIEW_ERR_INVALID, "the socket path is empty");
    if (fd < 0)
        return fail_errno(c->path, -fd);
    int r = c->is_checked ? check_server(fd, c->path) : 0;
    if (r == 0)
        *ret_fd = steal_fd(&fd);
    return r;
}

int connection_open(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    int fd, r = connection_dial(c, &fd);
    if (r == 0)
        r = connection_take_socket(c, fd);
    if (r)
        return r;
    return greet(c);
}

/* Waits for a daemon that is being started again. A session's is started by whoever
 * misses it. */
static int open_again(struct shmview_connection *c)
{
    int64_t deadline = now_ns() + RETURN_TIMEOUT_NS;
    struct timespec step = {.tv_nsec = RETURN_RETRY_NS};
    char text[200];
    int r;
    while ((r = connection_open(c)) == 1 && now_ns() < deadline) {
        if (c->may_start)
            session_start(c->path, text, sizeof text);
        else
            nanosleep(&step, NULL);
    }
    return r;
}

/* --- Calling ------------------------------------------------------------- */

static bool is_one_of(const char *method, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(method, *list) == 0)
            return true;
    return false;
}

/* Twice would not be the same. */
static const char *const once_only[] = {"io.shmview.Create", "io.shmview.Remove",
                                        "io.shmview.DefineLayout", "io.shmview.Entrust", NULL};

/* Before a request is sent, so that lack of memory costs no more than the request: room for a
 * reply, and for the id of an attachment. */
static int prepare(struct shmview_connection *c)
{
    NOT_FORKED;
    if (c->n_held == c->held_capacity) {
        size_t capacity = c->held_capacity ? c->held_capacity * 2 : 8;
        int64_t *held = realloc(c->held, capacity * sizeof *held);
        if (!held)
            return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
        c->held = held;
        c->held_capacity = capacity;
    }
    return frame_reserve(&c->in, LIMIT_REPLY_BYTES) ? fail(SHMVIEW_ERR_NO_MEMORY, "out of memory")
                                                    : 0;
}

/* At once, so that a claim that another thread makes names the attachment. */
static void note_held(struct shmview_connection *c, struct reply *reply)
{
    const json_t *attachment = json_object_get(reply->wire.parameters, "attachment");
    reply->held = reply->is_attached ? reply->attachment.id
                                     : json_integer_value(json_object_get(attachment, "id"));
    if (reply->held > 0)
        c->held[c->n_held++] = reply->held;
    else
        reply->held = 0;
}

static int exchange(struct shmview_connection *c, const char *method, const char *text, size_t n,
                    struct reply *reply)
{
    for (int attempt = 0;; attempt++) {
        int r = 0;
        if (c->fd < 0)
            r = open_again(c);
        if (r == 1)
            r = fail(SHMVIEW_ERR_DISCONNECTED, "%s: the daemon is gone: %s", c->path,
                     strerror(errno));
        if (r == 0)
            r = prepare(c);
        if (r)
            return r;
        bool sent;
        r = ask(c, text, n, reply, &sent);
        bool may_repeat = !sent || !is_one_of(method, once_only);
        if (r == 0)
            note_held(c, reply);
        if (r != -SHMVIEW_ERR_DISCONNECTED || !may_repeat || attempt == 2)
            return r;
        reply_deinit(reply);
        *reply = (struct reply){0};
    }
}

int connection_call(struct shmview_connection *connection, const char *method, json_t *parameters,
                    struct reply *reply)
{
    size_t n = 0;
    char *text = parameters ? wire_call_text(method, parameters, &n) : NULL;
    return connection_call_text(connection, method, text, n, reply);
}

int connection_call_text(struct shmview_connection *connection, const char *method, char *call,
                         size_t n, struct reply *reply)
{
    CLEANUP_FREE char *text = call;
    const char *reason;
    *reply = (struct reply){0};
    if (!connection)
        return fail(SHMVIEW_ERR_INVALID, "foreign memory: there is no daemon to ask");
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    NOT_CANCELLED;
    connection_lock(connection);
    int r = exchange(connection, method, text, n, reply);
    connection_unlock(connection);
    if (r == 0 && reply->wire.error) {
        int error = wire_error_code(&reply->wire, &reason);
        r = fail(error, "%s", reason);
    }
    if (r)
        reply_deinit(reply);
    return r;
}

/* --- What is held -------------------------------------------------------- */

static void let_go(struct shmview_connection *c, int64_t attachment)
{
    for (size_t i = 0; i < c->n_held; i++)
        if (c->held[i] == attachment) {
            c->held[i] = c->held[--c->n_held];
            break;
        }
}

void connection_give_back(struct shmview_connection *connection, int64_t attachment)
{
    struct shmview_connection *c = connection;
    size_t n;
    CLEANUP_FREE char *text = wire_detach_text(attachment, &n);
    NOT_CANCELLED;
    connection_lock(c);
    let_go(c, attachment);
    if (c->fd >= 0 && (!text || send_all(c, text, n)))
        connection_hang_up(c);
    /* the claim does not name it, which gives it back; a daemon that is not there is not worth
     * waiting for */
    if (c->fd < 0)
        connection_open(c);
    connection_unlock(c);
}

int shmview_ping(struct shmview_connection *connection)
{
    struct reply reply;
    int r = connection_call(connection, "io.shmview.Ping", json_object(), &reply);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}
