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
#include "common/util.h"

/* How long a daemon that is gone is waited for, and how often it is looked for. */
#define RETURN_TIMEOUT_NS 900000000
#define RETURN_RETRY_NS   5000000
/* How long a reply is waited for where nothing may wait. */
#define REOPEN_NS 300000

/* --- Calls --------------------------------------------------------------- */

void reply_deinit(struct reply *reply)
{
    wire_reply_deinit(&reply->wire);
    frame_descriptors_close(&reply->fds);
}

/* Makes the connection this process's. */
static void step_in(struct shmview_connection *connection)
{
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
            atomic_store(&connection->owes, false);
            atomic_store_explicit(&connection->epoch, epoch, memory_order_release);
        }
        pthread_mutex_unlock(&process->mutex);
    }
}

/* Returns 0 or -SHMVIEW_ERR_INTERRUPTED. */
static int connection_lock(struct shmview_connection *connection)
{
    step_in(connection);
    return wait_for_mutex(&connection->mutex);
}

bool connection_trylock(struct shmview_connection *connection)
{
    step_in(connection);
    return pthread_mutex_trylock(&connection->mutex) == 0;
}

void connection_unlock(struct shmview_connection *connection)
{
    do {
        /* not where a wait has ended in a forked child: what is owed is its parent's */
        if (atomic_load(&connection->epoch) == process_epoch())
            connection_settle(connection);
        pthread_mutex_unlock(&connection->mutex);
        /* what another thread owes since, which could not have the mutex */
    } while (atomic_load(&connection->owes) && connection_trylock(connection));
}

void connection_hang_up(struct shmview_connection *connection)
{
    connection_close_socket(connection);
    connection->greets = false;
    NOT_FORKED;
    frame_deinit(&connection->in);
}

static int hang_up(struct shmview_connection *c, int error, const char *why)
{
    connection_hang_up(c);
    return fail(error, "%s: %s", c->path, why);
}

/* Ends a wait: the daemon's answer would be taken for that to the next request. */
static int give_up(struct shmview_connection *c)
{
    connection_hang_up(c);
    return -SHMVIEW_ERR_INTERRUPTED;
}

int connection_send(const struct shmview_connection *connection, const char *text, size_t n)
{
    if (!connection_has_socket(connection))
        return -EBADF;
    while (n) {
        ssize_t sent = frame_send(connection->fd, text, n, NULL, 0);
        if (sent == -EAGAIN && wait_go_on())
            return -ECANCELED;
        if (sent == -EAGAIN)
            continue;
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
        if (r == -EAGAIN || r == -EINTR) {
            if (wait_go_on())
                return give_up(c);
            continue;
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
static char *claim_text(struct shmview_connection *c, size_t *ret_n)
{
    size_t n;
    CLEANUP_FREE int64_t *ids = connection_claims(c, &n);
    CLEANUP_FREE struct wire_held *held = ids ? calloc(n + 1, sizeof *held) : NULL;
    struct wire_claim claim = {.client = c->client, .n_held = n};
    if (!held)
        return NULL;
    for (size_t i = 0; i < n; i++)
        held[i].attachment = ids[i];
    claim.held = held;
    claim.bell = true;
    claim.presence = c->presence ? WIRE_PRESENCE_KEPT : WIRE_PRESENCE_WANTED;
    json_t *parameters = wire_write_claim(&claim);
    return parameters ? wire_call_text("io.shmview.Claim", parameters, ret_n) : NULL;
}

/* Sends and receives. *ret_sent: the request was sent whole. */
static int ask(struct shmview_connection *c, const char *text, size_t n, struct reply *reply,
               bool *ret_sent)
{
    int r = connection_send(c, text, n);
    *ret_sent = r == 0;
    if (is_refused(c, r)) {
        int refused = receive_reply(c, reply);
        connection_hang_up(c);
        return refused;
    }
    if (r == -ECANCELED)
        return give_up(c);
    return r ? hang_up(c, SHMVIEW_ERR_DISCONNECTED, strerror(-r)) : receive_reply(c, reply);
}

/* No fork comes between the arrival of descriptors and the note of them in the connection, by
 * which the child closes its own. */
static int receive_claimed(struct shmview_connection *c, struct reply *reply)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int r = reserve(&c->in);
    while (r == 0 && poll(&p, 1, WAIT_SLICE_NS / 1000000) <= 0)
        if (wait_go_on())
            return give_up(c);
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
    if (claimed.bell != WIRE_ABSENT && claimed.bell < (int64_t)c->arrived.n) {
        NOT_FORKED;
        bell_take(c, c->arrived.fd[claimed.bell]);
    }
    segments_claimed(c, claimed.held, claimed.n_held);
    free(claimed.held);
    return 0;
}

/* Reads the reply to a claim that was sent. Returns 0; 1 with errno: the daemon is leaving; or an
 * error. */
static int be_greeted(struct shmview_connection *c)
{
    struct reply reply = {0};
    int r = receive_claimed(c, &reply);
    if (r == 0 && reply.wire.error) {
        const char *reason;
        int error = wire_error_code(&reply.wire, &reason);
        r = hang_up(c, error, reason);
    } else if (r == 0) {
        r = take_claimed(c, &reply);
    }
    c->greets = false;
    close_arrived(c);
    reply_deinit(&reply);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        errno = ECONNRESET; /* it was about to leave */
        return 1;
    }
    return r;
}

static int greet(struct shmview_connection *c)
{
    size_t n;
    CLEANUP_FREE char *text = claim_text(c, &n);
    if (!text) {
        connection_hang_up(c);
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    int r = connection_send(c, text, n);
    if (r == 0 || is_refused(c, r))
        return be_greeted(c);
    if (r == -ECANCELED)
        return give_up(c);
    connection_hang_up(c);
    errno = -r;
    return 1;
}

int connection_open(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    int fd, r = connection_dial(c, &fd);
    if (r == 0)
        r = connection_take_socket(c, fd);
    return r ? r : greet(c);
}

/* Sends a claim over a new socket. Returns whether it is on its way as a whole. */
static bool greet_quickly(struct shmview_connection *c)
{
    int fd;
    size_t n;
    if (connection_dial_now(c, &fd) || connection_take_socket(c, fd))
        return false;
    CLEANUP_FREE char *text = claim_text(c, &n);
    return text && send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

void connection_reopen(struct shmview_connection *connection)
{
    struct shmview_connection *c = connection;
    char text[ERROR_TEXT_BYTES];
    int saved = errno;
    /* what fails here is nothing that the caller has asked for */
    snprintf(text, sizeof text, "%s", shmview_error_text());
    if (c->fd < 0) {
        c->greets = greet_quickly(c);
        if (!c->greets)
            connection_hang_up(c);
    }
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    const struct timespec moment = {.tv_nsec = REOPEN_NS};
    if (c->greets && ppoll(&p, 1, &moment, NULL) > 0)
        be_greeted(c);
    fail(0, "%s", text);
    errno = saved;
}

/* Waits for a daemon that is being started again. A session's is started by whoever
 * misses it. */
static int open_again(struct shmview_connection *c)
{
    int64_t deadline = now_ns() + RETURN_TIMEOUT_NS;
    char text[200];
    int r;
    while ((r = connection_open(c)) == 1 && now_ns() < deadline) {
        int error = errno;
        int ended = c->may_start ? session_start(c->path, text, sizeof text)
                                 : wait_a_moment(RETURN_RETRY_NS);
        if (ended == -SHMVIEW_ERR_INTERRUPTED)
            return ended;
        errno = error; /* of connection_open(), for the text */
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
    return connection_reserve(c) || reserve(&c->in) ? fail(SHMVIEW_ERR_NO_MEMORY, "out of memory")
                                                    : 0;
}

/* At once, so that a claim that another thread makes names the attachment. */
static void note_held(struct shmview_connection *c, struct reply *reply)
{
    const json_t *attachment = json_object_get(reply->wire.parameters, "attachment");
    reply->held = reply->is_attached ? reply->attachment.id
                                     : json_integer_value(json_object_get(attachment, "id"));
    if (reply->held > 0)
        connection_hold(c, reply->held);
    else
        reply->held = 0;
}

static int exchange(struct shmview_connection *c, const char *method, const char *text, size_t n,
                    struct reply *reply)
{
    for (int attempt = 0;; attempt++) {
        int r = c->greets ? be_greeted(c) : 0;
        if (c->fd < 0 && r >= 0)
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
    if (wait_is_asking())
        return fail(SHMVIEW_ERR_DEADLOCK,
                    "%s: this thread waits for the daemon already, and is "
                    "asked whether it goes on",
                    connection->path);
    NOT_CANCELLED;
    int r = connection_lock(connection);
    if (r)
        return r;
    connection_settle(connection); /* what was given back comes first */
    r = exchange(connection, method, text, n, reply);
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
