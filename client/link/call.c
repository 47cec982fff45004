/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the daemon, one at a time for each connection.
 *
 * If the daemon was restarted, the call connects again. A claim then lists the attachments that
 * this process still has. The daemon ends those that the claim does not name, so that an
 * attachment whose reply was lost does not stay.
 *
 * A request that was sent whole and not answered may have been carried out. It is sent again only
 * if a second time does no harm; otherwise the call fails. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/wire/wire_stats.h"

/* How long a call waits for a daemon that is gone, and how long between two attempts. */
#define RETURN_TIMEOUT_NS 900000000
#define RETURN_RETRY_NS   5000000

/* --- Calls --------------------------------------------------------------- */

void reply_deinit(struct reply *reply)
{
    wire_reply_deinit(&reply->wire);
    free(reply->layouts);
    free(reply->stats);
    frame_descriptors_close(&reply->fds);
}

/* Makes the connection belong to this process: in a forked child, drops what the parent had. */
static void step_in(struct shmview_connection *connection)
{
    uint32_t epoch = process_epoch();
    if (atomic_load_explicit(&connection->epoch, memory_order_acquire) != epoch) {
        pthread_mutex_lock(&process->mutex);
        if (atomic_load_explicit(&connection->epoch, memory_order_relaxed) != epoch) {
            NOT_FORKED;
            /* a thread of the parent may have held the mutex at the fork, and no thread here would
             * ever unlock it */
            pthread_mutex_init(&connection->mutex, NULL);
            connection_disown(connection);
            frame_deinit(&connection->in);
            connection->n_held = 0; /* with the flags below: reports that the parent owes */
            connection->is_late = false;
            atomic_store(&connection->rings, false);
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
        /* not in a child that was forked during a wait: the parent sends its own reports */
        if (atomic_load(&connection->epoch) == process_epoch())
            connection_settle(connection);
        pthread_mutex_unlock(&connection->mutex);
        /* again if another thread set owes in between, because it did not get the mutex */
    } while (atomic_load(&connection->owes) && connection_trylock(connection));
}

void connection_hang_up(struct shmview_connection *connection)
{
    connection_close_socket(connection);
    connection->greets = false;
    NOT_FORKED;
    frame_deinit(&connection->in);
    frame_descriptors_close(&connection->arrived);
    connection->arrived.lost = false;
}

int connection_fail(struct shmview_connection *connection, int error, const char *why)
{
    connection_hang_up(connection);
    return fail(error, "%s: %s", connection->where.path, why);
}

int connection_interrupted(struct shmview_connection *connection)
{
    connection_hang_up(connection);
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

bool connection_is_refused(const struct shmview_connection *connection, int r)
{
    if (r != -EPIPE && r != -ECONNRESET)
        return false;
    /* the part of a reply that has arrived can still be received, and no receive waits for more */
    shutdown(connection->fd, SHUT_RDWR);
    return true;
}

static int reserve(struct frame *in)
{
    NOT_FORKED;
    return frame_reserve(in, LIMIT_REPLY_BYTES);
}

/* Receives what has come. Returns -EAGAIN if that is nothing; otherwise like frame_receive(). */
static ssize_t receive_now(struct shmview_connection *c, struct reply *reply)
{
    return frame_receive_now(&c->in, c->fd, LIMIT_REPLY_BYTES, &reply->fds);
}

/* Polls for the reply before the thread sleeps, for as long as that has helped in earlier calls
 * (common/base/spin.h): it takes longer to wake an idle processor than to serve most requests. If
 * another thread needed this processor before the reply came, the poll was useless. Returns like
 * receive_now(). */
static ssize_t poll_for_reply(struct shmview_connection *c, struct reply *reply)
{
    ssize_t r = -EAGAIN;
    if (!spins_allowed())
        return r;
    uint32_t ns = spin_begin(&c->spin);
    int64_t began = now_ns(), now = began, yielded = began;
    long gave = -1; /* spin_times_given() before the first yield that is due */
    while (r == -EAGAIN && now - began < ns) {
        bool is_due = now - yielded > SPIN_YIELD_NS;
        if (is_due && gave < 0)
            gave = spin_times_given();
        if (c->spin.looks || is_due)
            sched_yield();
        r = receive_now(c, reply);
        now = now_ns();
        if (is_due)
            yielded = now;
    }
    bool was_needed = !c->spin.looks && gave >= 0 && gave != spin_times_given();
    if (r != -EAGAIN && !was_needed)
        spin_hit(&c->spin, ns, now - began);
    else
        spin_missed(&c->spin, ns);
    return r;
}

/* Receives once, and waits for that if it must. While one reply of a batch is read, the next one
 * has usually come; then neither a yield nor a poll is needed. Returns like frame_receive(). */
static ssize_t receive_some(struct shmview_connection *c, struct reply *reply)
{
    ssize_t r = c->is_answered ? receive_now(c, reply) : -EAGAIN;
    if (r == -EAGAIN)
        r = poll_for_reply(c, reply);
    return r == -EAGAIN ? frame_receive(&c->in, c->fd, LIMIT_REPLY_BYTES, &reply->fds) : r;
}

int connection_unreadable(struct shmview_connection *connection, const struct wire_fault *fault)
{
    return connection_fail(
        connection, fault->no_memory ? SHMVIEW_ERR_NO_MEMORY : SHMVIEW_ERR_PROTOCOL, fault->reason);
}

int connection_receive_failed(struct shmview_connection *connection, ssize_t r)
{
    struct shmview_connection *c = connection;
    if (r == 0)
        return connection_fail(c, SHMVIEW_ERR_DISCONNECTED, "the daemon hung up");
    if (r == -EPROTO || r == -EMSGSIZE)
        return connection_fail(c, SHMVIEW_ERR_PROTOCOL, "too many descriptors or too long a reply");
    if (r == -ENOMEM)
        return connection_fail(c, SHMVIEW_ERR_NO_MEMORY, "out of memory");
    return connection_fail(c, SHMVIEW_ERR_DISCONNECTED, strerror((int)-r));
}

int connection_receive(struct shmview_connection *connection, struct reply *reply)
{
    struct shmview_connection *c = connection;
    char *text;
    size_t n;
    struct wire_fault fault;
    struct wire_text layouts;
    while (!frame_next(&c->in, &text, &n)) {
        ssize_t r = reserve(&c->in);
        if (r == 0 && (r = receive_some(c, reply)) == 0)
            return connection_receive_failed(c, 0);
        if (r == -EAGAIN || r == -EINTR) {
            if (wait_go_on())
                return connection_interrupted(c);
            continue;
        }
        if (r < 0)
            return connection_receive_failed(c, r);
    }
    if (c->in.used != c->in.n && c->n_follow == 0)
        return connection_fail(c, SHMVIEW_ERR_PROTOCOL, "a reply without a request");
    reply->is_attached = wire_attached_scan(text, reply->room, sizeof reply->room, &reply->segment,
                                            &reply->attachment, &layouts);
    if (reply->is_attached && layouts.n > strlen("[]"))
        reply->layouts = strndup(layouts.bytes, layouts.n);
    if (reply->is_attached)
        return 0;
    if (wire_stats_begins(text) && (reply->stats = strdup(text))) {
        reply->stats_bytes = n;
        return 0;
    }
    return wire_reply_parse(&reply->wire, text, n, &fault) ? connection_unreadable(c, &fault) : 0;
}

/* Waits for a daemon that is being restarted. A session daemon has no service that restarts it, so
 * the client that misses it starts one. Returns an enum reach or an error. */
static int open_again(struct shmview_connection *c)
{
    int64_t deadline = now_ns() + RETURN_TIMEOUT_NS;
    char text[200];
    int r;
    while ((r = connection_open(c)) == NOT_REACHED && now_ns() < deadline) {
        int error = errno;
        int ended = c->may_start ? session_start(c->where.path, text, sizeof text)
                                 : wait_a_moment(RETURN_RETRY_NS);
        if (ended == -SHMVIEW_ERR_INTERRUPTED)
            return ended;
        errno = error; /* of connection_open(), for the text */
    }
    return r;
}

/* --- Calling ------------------------------------------------------------- */

int connection_ask(struct shmview_connection *connection, const char *text, size_t n,
                   struct reply *reply, bool *ret_sent)
{
    struct shmview_connection *c = connection;
    int r = connection_send(c, text, n);
    *ret_sent = r == 0;
    if (connection_is_refused(c, r)) {
        int refused = connection_receive(c, reply);
        connection_hang_up(c);
        return refused;
    }
    if (r == -ECANCELED)
        return connection_interrupted(c);
    return r ? connection_fail(c, SHMVIEW_ERR_DISCONNECTED, strerror(-r))
             : connection_receive(c, reply);
}

static bool is_one_of(const char *method, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(method, *list) == 0)
            return true;
    return false;
}

/* Methods whose request is not sent again, because a second one would have another result. */
static const char *const once_only[] = {"io.shmview.Create", "io.shmview.Remove",
                                        "io.shmview.DefineLayout", "io.shmview.Entrust", NULL};

int connection_be_ready(struct shmview_connection *connection, size_t n)
{
    struct shmview_connection *c = connection;
    int r = c->greets ? connection_be_greeted(c) : REACHED;
    if (c->fd < 0 && r >= 0)
        r = open_again(c);
    if (r == NOT_REACHED)
        return fail(SHMVIEW_ERR_DISCONNECTED, "%s: the daemon is gone: %s", c->where.path,
                    strerror(errno));
    if (r == 0 && (connection_reserve(c, n) || reserve(&c->in)))
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    return r;
}

void connection_note_held(struct shmview_connection *connection, struct reply *reply)
{
    struct shmview_connection *c = connection;
    const json_t *attachment = json_object_get(reply->wire.parameters, "attachment");
    reply->held = reply->is_attached ? reply->attachment.id
                                     : json_integer_value(json_object_get(attachment, "id"));
    if (reply->held > 0)
        connection_hold(c, reply->held);
    else
        reply->held = 0;
}

/* Connects if necessary, sends the request, and reads the reply. Makes up to three attempts, unless
 * a request that was sent whole must not be repeated. Returns 0 or an error. */
static int exchange(struct shmview_connection *c, const char *method, const char *text, size_t n,
                    struct reply *reply)
{
    for (int attempt = 0;; attempt++) {
        int r = connection_be_ready(c, 1);
        if (r)
            return r;
        bool sent;
        r = connection_ask(c, text, n, reply, &sent);
        bool may_repeat = !sent || !is_one_of(method, once_only);
        if (r == 0)
            connection_note_held(c, reply);
        if (r != -SHMVIEW_ERR_DISCONNECTED || !may_repeat || attempt == 2)
            return r;
        reply_deinit(reply);
        *reply = (struct reply){0};
    }
}

int connection_result(int r, struct reply *reply)
{
    const char *reason;
    if (r == 0 && reply->wire.error) {
        int error = wire_error_code(&reply->wire, &reason);
        r = fail(error, "%s", reason);
    }
    if (r)
        reply_deinit(reply);
    return r;
}

int connection_begin(struct shmview_connection *connection)
{
    if (wait_is_asking())
        return fail(SHMVIEW_ERR_DEADLOCK,
                    "%s: this thread waits for the daemon already, and is "
                    "asked whether it goes on",
                    connection->where.path);
    int r = connection_lock(connection);
    if (r == 0)
        connection_settle(connection);
    return r;
}

int connection_call(struct shmview_connection *connection, const char *method, char *call,
                    struct reply *reply)
{
    CLEANUP_FREE char *text = call;
    *reply = (struct reply){0};
    if (!connection)
        return fail(SHMVIEW_ERR_INVALID, "the segment is foreign memory, which no daemon knows");
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    size_t n = strlen(text);
    if (n > LIMIT_REQUEST_BYTES)
        return fail(SHMVIEW_ERR_LIMIT, "a request of %zu bytes: it may have %d", n,
                    LIMIT_REQUEST_BYTES);
    NOT_CANCELLED;
    int r = connection_begin(connection);
    if (r)
        return r;
    r = exchange(connection, method, text, n + 1, reply);
    connection_unlock(connection);
    return connection_result(r, reply);
}

int shmview_ping(struct shmview_connection *connection)
{
    struct reply reply;
    int r = connection_call(connection, "io.shmview.Ping", wire_ping_text(), &reply);
    if (r == 0)
        reply_deinit(&reply);
    return r;
}
