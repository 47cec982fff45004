/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors: a connection on which the daemon sends events.
 *
 * A monitor has a connection of its own, because the daemon replies to its request for as long as
 * it lives. If the daemon ends, the next call connects again and asks for the events after the last
 * one that was received. So a restart loses no event that the next daemon remembers.
 *
 * A monitor has no mutex: only one thread at a time may use it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shmview/monitor.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "client/link/call.h"
#include "common/base/name.h"
#include "common/base/util.h"
#include "common/wire/wire_events.h"

#define RETRY_NS 5000000 /* pause between attempts to reach a daemon that is gone */
/* How long open() waits for a daemon that hangs up because it ends and another one follows. */
#define RETURN_NS 900000000

/* A monitor. The event is the last one that was returned; its strings are borrowed from reply. */
struct shmview_monitor {
    struct endpoint where;
    struct wire_monitor want; /* the request; owns its names */
    int fd;                   /* -1: connect before the next event */
    bool is_heard;            /* this connection has brought an event */
    struct frame in;
    struct wire_reply reply; /* the event borrows from it */
    struct shmview_event event;
    bool has_first; /* the event that open() received was not returned yet */
};

const char *shmview_event_kind_name(int kind)
{
    return wire_event_kind_name(kind);
}

/* --- Connecting ---------------------------------------------------------- */

/* Closes the connection and drops what was received. The next step connects again. */
static void hang_up(struct shmview_monitor *m)
{
    close_fdp(&m->fd);
    frame_deinit(&m->in);
}

static bool is_over(int64_t deadline)
{
    return deadline != SHMVIEW_FOREVER && now_ns() >= deadline;
}

/* Whether fd can be read, or is at its end. */
static bool poll_now(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Connects and sends the request. Without a deadline it waits for a daemon that is too busy to
 * accept. With one it does not, because connecting has no deadline. Returns an enum reach,
 * NOT_REACHED with EAGAIN if the daemon is too busy; or an error. */
static int subscribe(struct shmview_monitor *m, int64_t deadline)
{
    CLEANUP_FREE char *text = wire_monitor_text(&m->want);
    if (!text)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = connection_dial(&m->where, deadline == SHMVIEW_FOREVER, &m->fd);
    if (r)
        return r;
    m->is_heard = false;
    for (size_t at = 0, n = strlen(text) + 1; at < n;) {
        ssize_t sent = frame_send(m->fd, text + at, n - at, NULL, 0);
        if (sent == -EAGAIN && !is_over(deadline)) {
            if ((r = wait_go_on())) {
                hang_up(m);
                return r;
            }
            continue;
        }
        if ((sent == -EPIPE || sent == -ECONNRESET) && poll_now(m->fd))
            break; /* the daemon has hung up, and may have sent a refusal before */
        if (sent < 0) {
            hang_up(m);
            errno = (int)-sent;
            return NOT_REACHED;
        }
        at += (size_t)sent;
    }
    int flags = fcntl(m->fd, F_GETFL);
    if (flags < 0 || fcntl(m->fd, F_SETFL, flags | O_NONBLOCK)) {
        r = fail_errno("fcntl", errno);
        hang_up(m);
    }
    return r;
}

/* --- One event ----------------------------------------------------------- */

/* Remembers the event after which a new connection should continue. Ignores LOST, and a SUBSCRIBED
 * that continues after an event: their serials are those of events that this monitor has not
 * received. */
static void remember(struct shmview_monitor *m)
{
    uint32_t kind = m->event.kind;
    if (kind == SHMVIEW_EVENT_LOST ||
        (kind == SHMVIEW_EVENT_SUBSCRIBED && m->want.after != WIRE_ABSENT))
        return;
    m->want.after = (int64_t)m->event.serial;
}

/* The result of a step that did not fail. */
enum step {
    STEP_EVENT, /* m->event */
    STEP_ON,    /* none yet */
    STEP_ALONE, /* no daemon answers; the reason is in errno */
};

/* Reads one message into m->event. If memory is short, keeps the message for the next call; after
 * any other error, hangs up. Returns STEP_EVENT; STEP_ON if this library does not know the kind; or
 * an error. */
static int take(struct shmview_monitor *m, const char *text, size_t n)
{
    struct wire_fault fault;
    const char *reason;
    wire_reply_deinit(&m->reply);
    if (wire_reply_parse(&m->reply, text, n, &fault)) {
        if (fault.no_memory) {
            frame_put_back(&m->in, n); /* for the next call */
            return fail_reply(&fault);
        }
        hang_up(m);
        return fail(SHMVIEW_ERR_PROTOCOL, "%s: %s", m->where.path, fault.reason);
    }
    if (m->reply.error) {
        int error = wire_error_code(&m->reply, &reason);
        hang_up(m);
        return fail(error == SHMVIEW_ERR_PROTOCOL ? SHMVIEW_ERR_UNSUPPORTED : error, "%s", reason);
    }
    int r = wire_read_event(m->reply.parameters, "event", &m->event, &fault);
    if (r < 0) {
        hang_up(m);
        return fail(SHMVIEW_ERR_PROTOCOL, "%s: %s %s", m->where.path, fault.parameter,
                    fault.reason);
    }
    if (r == EVENT_UNKNOWN)
        return STEP_ON;
    m->is_heard = true;
    remember(m);
    return STEP_EVENT;
}

/* --- Waiting ------------------------------------------------------------- */

/* Waits until there is something to read, or until the deadline. Looks up every WAIT_NS to run the
 * caller's function (shmview_on_wait()). Returns an enum wait_outcome or
 * -SHMVIEW_ERR_INTERRUPTED. */
static int wait_readable(int fd, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        int64_t left = deadline == SHMVIEW_FOREVER ? WAIT_NS : deadline - now_ns();
        if (left > WAIT_NS)
            left = WAIT_NS;
        struct timespec t = {.tv_nsec = left > 0 ? left : 0};
        int n = ppoll(&p, 1, &t, NULL);
        if (n > 0)
            return WAIT_READY;
        if (is_over(deadline))
            return WAIT_EXPIRED;
        int r = wait_ask();
        if (r)
            return r;
    }
}

/* Receives what the socket has. Hangs up if the daemon is gone, which is no error here: the next
 * step connects again. A daemon that accepts and hangs up without an event counts as no daemon,
 * because the next one can do that too. Returns STEP_ON, STEP_ALONE or an error. */
static int receive(struct shmview_monitor *m)
{
    int r = frame_reserve(&m->in, LIMIT_REQUEST_BYTES);
    ssize_t n = r ? r : frame_receive(&m->in, m->fd, LIMIT_REQUEST_BYTES, NULL);
    if (n > 0 || n == -EAGAIN || n == -EINTR)
        return STEP_ON;
    if (n == -ENOMEM)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    hang_up(m);
    if (n == -EPROTO || n == -EMSGSIZE)
        return fail(SHMVIEW_ERR_PROTOCOL, "%s: descriptors, or too long an event", m->where.path);
    errno = ECONNRESET;
    return m->is_heard ? STEP_ON : STEP_ALONE;
}

/* Does one thing towards the next event: connect, read a message that was received, or wait and
 * receive. Returns an enum step or an error. */
static int step(struct shmview_monitor *m, int64_t deadline)
{
    char *text;
    size_t n;
    if (m->fd < 0) {
        int r = subscribe(m, deadline);
        return r == NOT_REACHED ? STEP_ALONE : r < 0 ? r : STEP_ON;
    }
    if (frame_next(&m->in, &text, &n))
        return take(m, text, n);
    int r = wait_readable(m->fd, deadline);
    if (r == WAIT_EXPIRED)
        return fail(SHMVIEW_ERR_TIMED_OUT, "no event until the deadline");
    return r == WAIT_READY ? receive(m) : r;
}

/* Waits for the next event. While no daemon answers, tries again every RETRY_NS until the
 * deadline. Returns 0 or an error. */
static int next(struct shmview_monitor *m, int64_t deadline)
{
    for (;;) {
        int r = step(m, deadline);
        if (r == STEP_EVENT || r < 0)
            return r;
        if (r == STEP_ALONE && is_over(deadline))
            return fail(SHMVIEW_ERR_DISCONNECTED, "%s: the daemon is %s: %s", m->where.path,
                        errno == EAGAIN ? "too busy to connect to" : "gone", strerror(errno));
        if (r == STEP_ALONE && (r = wait_a_moment(RETRY_NS)))
            return r;
    }
}

/* Waits for the first event. Tries again for a while if the daemon hangs up. Returns STEP_EVENT or
 * an error. */
static int first(struct shmview_monitor *m)
{
    const int64_t patience = now_ns() + RETURN_NS;
    for (;;) {
        int r = step(m, SHMVIEW_FOREVER);
        if (r == STEP_EVENT || r < 0)
            return r;
        if (r == STEP_ALONE && (errno != ECONNRESET || is_over(patience)))
            return fail(SHMVIEW_ERR_NO_DAEMON, "%s: %s", m->where.path,
                        errno == ECONNRESET ? "the daemon hung up" : strerror(errno));
        if (r == STEP_ALONE && (r = wait_a_moment(RETRY_NS)))
            return r;
    }
}

/* --- Calls --------------------------------------------------------------- */

int shmview_monitor_close(struct shmview_monitor *monitor)
{
    if (!monitor)
        return 0;
    hang_up(monitor);
    wire_reply_deinit(&monitor->reply);
    free(monitor->want.names);
    free(monitor);
    return 0;
}

/* Copies and checks the options of the program. Returns 0 or an error. */
static int read_options(const struct shmview_monitor_options *from,
                        struct shmview_monitor_options *ret)
{
    *ret = (struct shmview_monitor_options){0};
    if (!from)
        return 0;
    if (from->struct_bytes < sizeof *ret)
        return fail(SHMVIEW_ERR_INVALID, "struct_bytes of the options is %u, must be %zu",
                    from->struct_bytes, sizeof *ret);
    *ret = *from;
    if (ret->n_names > LIMIT_NAMES)
        return fail(SHMVIEW_ERR_INVALID, "%zu names, the limit is %d", ret->n_names, LIMIT_NAMES);
    for (size_t i = 0; i < ret->n_names; i++)
        if (!ret->names[i])
            return fail(SHMVIEW_ERR_INVALID, "names[%zu] is NULL", i);
    if (ret->after > INT64_MAX || ret->kinds & ~(SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_LOST + 1) - 2))
        return fail(SHMVIEW_ERR_INVALID, "kinds or after of the options are out of range");
    return 0;
}

int shmview_monitor_open(struct shmview_connection *connection,
                         const struct shmview_monitor_options *options,
                         struct shmview_monitor **ret_monitor)
{
    struct shmview_monitor_options o;
    NOT_CANCELLED;
    int r = wait_refuse();
    if (r == 0)
        r = read_options(options, &o);
    if (r)
        return r;
    struct shmview_monitor *m = calloc(1, sizeof *m);
    if (!m)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    m->where = *connection_endpoint(connection);
    m->fd = -1;
    m->want.kinds = o.kinds >> 1;
    m->want.after = o.after ? (int64_t)o.after : WIRE_ABSENT;
    m->want.names = names_copy(o.names, o.n_names);
    m->want.n_names = o.n_names;
    if (!m->want.names)
        r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    r = r ? r : first(m);
    if (r) {
        shmview_monitor_close(m);
        return r;
    }
    m->has_first = true;
    *ret_monitor = m;
    return 0;
}

int shmview_monitor_next(struct shmview_monitor *monitor, int64_t deadline_ns,
                         const struct shmview_event **ret_event)
{
    NOT_CANCELLED;
    int r = wait_refuse();
    if (r)
        return r;
    r = monitor->has_first ? 0 : next(monitor, deadline_ns);
    monitor->has_first = false;
    if (r == 0)
        *ret_event = &monitor->event;
    return r;
}

int shmview_monitor_fd(const struct shmview_monitor *monitor)
{
    return monitor->fd;
}
