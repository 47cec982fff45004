/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/monitor.h - events: segments that are created and removed, clients that
 * attach, leave and die, switches of phases.
 *
 *     struct shmview_monitor *monitor;
 *     const struct shmview_event *e;
 *     shmview_monitor_open(conn, NULL, &monitor);
 *     while (shmview_monitor_next(monitor, SHMVIEW_FOREVER, &e) == 0)
 *         printf("%s %s\n", shmview_event_kind_name(e->kind), e->segment);
 *     shmview_monitor_close(monitor);
 *
 * A monitor receives events of the segments that this user may see, of this
 * user's own refusals, and of restarts of the daemon. Administrators receive all
 * events. A monitor that reads too slowly loses events and delays nobody: the
 * daemon keeps the last 2048 events for all monitors together, and reports how
 * many one of them has missed.
 *
 * Events report what the daemon did or found. Clients lock, notify, pass frames
 * and switch phases in memory, without the daemon. Therefore locks, changes and
 * frames cause no events, and switches of phases are found by polling: ten times
 * a second, and whenever a client attaches or leaves. Several switches between
 * two looks are one event. Use shmview_wait_phase() and shmview_change_fd() to
 * react at once. */
#ifndef SHMVIEW_MONITOR_H
#define SHMVIEW_MONITOR_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of events. Later versions can add kinds; the library skips those that it
 * does not know. */
enum shmview_event_kind {
    SHMVIEW_EVENT_CREATED = 1,
    SHMVIEW_EVENT_ATTACHED = 2,
    SHMVIEW_EVENT_DETACHED = 3,    /* an attachment ended in order */
    SHMVIEW_EVENT_DIED = 4,        /* it ended without that: its client ended, or hung up */
    SHMVIEW_EVENT_OWNER_DIED = 5,  /* after DIED, if the client held the lock exclusively: the next
                                    * owner gets SHMVIEW_OWNER_DIED */
    SHMVIEW_EVENT_REMOVED = 6,     /* the name is gone */
    SHMVIEW_EVENT_ACCESS = 7,      /* the rights to a segment were changed */
    SHMVIEW_EVENT_PHASE = 8,       /* another layout was made current */
    SHMVIEW_EVENT_QUOTA = 9,       /* a client was refused for a quota or a limit */
    SHMVIEW_EVENT_RECOVERED = 10,  /* the daemon started again and took over what existed */
    SHMVIEW_EVENT_SUBSCRIBED = 11, /* events are reported from now on; also after reconnecting */
    SHMVIEW_EVENT_LOST = 12,       /* this monitor has missed events */
};

/* The bit of a kind in shmview_monitor_options.kinds. */
#define SHMVIEW_EVENT_BIT(kind) (1u << (kind))

/* What a client of a stream did when it died. */
#define SHMVIEW_STREAM_WRITER 1u
#define SHMVIEW_STREAM_READER 2u

/* One event. Later versions add members at the end, because programs only read
 * events through pointers. Strings are "" and numbers are 0 if the kind of the
 * event has no such member, or the value is not known, unless the comment names
 * another value. In the comments, the kinds in capitals have the member. */
struct shmview_event {
    /* Grows from event to event, also from one daemon to the next. */
    uint64_t serial;
    /* CLOCK_REALTIME in microseconds. */
    int64_t time_us;
    /* enum shmview_event_kind. */
    uint32_t kind;
    /* QUOTA: SHMVIEW_ERR_*, not negated. */
    int32_t error;
    /* Id and name of the segment. */
    uint64_t id;
    const char *segment;
    /* The user and the process that caused the event, or whose attachment it was.
     * uid is -1 if it is not known, or if the daemon itself acted. */
    int64_t uid;
    uint32_t pid;
    /* Of the attachment: enum shmview_access. */
    uint32_t access;
    /* The program of that client, as it calls itself. */
    const char *command;
    /* Id of the attachment. */
    uint64_t attachment;
    /* Its slot in the lock; -1 if it has none. */
    int64_t slot;
    /* DIED, OWNER_DIED: SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED, if it held the
     * lock. */
    uint32_t held;
    /* PHASE: of the phase that is current now. */
    uint32_t generation;
    /* CREATED: bytes. */
    uint64_t size;
    /* PHASE: the layout that is current now. */
    const char *layout;
    /* PHASE: how many switches there were since the last look. */
    uint32_t switches;
    uint32_t reserved;
    /* RECOVERED: clients that died while no daemon ran. */
    uint64_t deaths;
    /* RECOVERED: segments that exist. RECOVERED has these four numbers only for
     * administrators. */
    uint64_t segments;
    /* RECOVERED: attachments that exist. REMOVED: those that still keep the
     * memory. */
    uint64_t attachments;
    /* LOST: how many events this monitor has missed. RECOVERED: segments that
     * were lost. */
    uint64_t lost;
    /* QUOTA: a sentence with the figures. */
    const char *reason;
    /* ATTACHED, DETACHED, DIED, OWNER_DIED: SHMVIEW_LOSSLESS or SHMVIEW_LATEST
     * (stream.h) of a segment that is a stream; 0 of another one. CREATED has it
     * too if the daemon's configuration declares the stream. A program makes a
     * stream of its segment after it was created. */
    uint32_t stream;
    /* How many slots the stream has. */
    uint32_t stream_slots;
    /* DIED, OWNER_DIED: whether the client was the writer of the stream, or had
     * loaned a slot of a stream with many writers; and whether it was a reader:
     * SHMVIEW_STREAM_WRITER | SHMVIEW_STREAM_READER. */
    uint32_t stream_role;
    /* DIED, OWNER_DIED: how many frames it held as a reader. They are free now. */
    uint32_t held_frames;
};

/* Options of a monitor. Set struct_bytes to sizeof. A member that is 0 has its
 * default: all events, from now on. */
struct shmview_monitor_options {
    uint32_t struct_bytes;
    /* SHMVIEW_EVENT_BIT() of each kind that is wanted, or-ed together; 0: all. */
    uint32_t kinds;
    /* Names of the only segments that are wanted; they need not exist yet. Events
     * that belong to no segment are reported all the same. */
    const char *const *names;
    /* At most 64; 0: all segments. */
    size_t n_names;
    /* A serial number. Events after it are reported too, as far as the daemon
     * remembers them. */
    uint64_t after;
};

/* As after: begin with the oldest event that the daemon remembers. */
#define SHMVIEW_MONITOR_REMEMBERED UINT64_C(1)

/* A subscription to events. */
struct shmview_monitor;

/* Subscribes to the events of the daemon of this connection.
 *
 * connection and options are borrowed for the call; options may be NULL. The
 * monitor has a socket of its own, so the connection may be closed before it. The
 * caller must pass *ret_monitor to shmview_monitor_close(). After success no
 * later event is missed. The first event is always SUBSCRIBED. Blocks for one
 * round trip. Any thread may call; later only one thread at a time may use the
 * monitor. A forked child may only close its copy.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_QUOTA if the daemon has 64 monitors
 * or this user has its share of them, _INVALID for a wrong option, _UNSUPPORTED
 * if the daemon has no events, _NO_DAEMON if no daemon is there, or an error of
 * requests (shmview.h). */
int shmview_monitor_open(struct shmview_connection *connection,
                         const struct shmview_monitor_options *options,
                         struct shmview_monitor **ret_monitor);

/* Ends a subscription and frees the monitor; its last event becomes invalid.
 * monitor may be NULL. Does not block. Always returns 0. */
int shmview_monitor_close(struct shmview_monitor *monitor);

/* Waits for the next event until deadline_ns, an absolute time of CLOCK_MONOTONIC
 * in nanoseconds; 0 does not wait. The event is valid until the next call with
 * this monitor.
 *
 * If the daemon ends, the call waits for the next one, subscribes again and
 * continues after the last event that it returned, as far as the new daemon
 * remembers. It then returns a SUBSCRIBED event.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_TIMED_OUT if there was no event
 * before the deadline, or _DISCONNECTED if the daemon is gone or too busy to
 * connect to at the deadline: the next call tries again. Returns _LIMIT, _QUOTA,
 * _DENIED, _UNSUPPORTED, _PROTOCOL, _INTERRUPTED, _DEADLOCK, _NO_MEMORY or
 * _SYSTEM on failure. */
int shmview_monitor_next(struct shmview_monitor *monitor, int64_t deadline_ns,
                         const struct shmview_event **ret_event);

/* Returns the descriptor to wait for in an event loop. When it is readable, call
 * shmview_monitor_next() with deadline 0 until that returns
 * -SHMVIEW_ERR_TIMED_OUT. The monitor owns the descriptor. It is another one
 * after each SUBSCRIBED event, and -1 while the monitor is not connected. Then
 * call shmview_monitor_next() from a timer, which connects again. Never fails. */
int shmview_monitor_fd(const struct shmview_monitor *monitor);

/* Returns the name of a kind as in the protocol, such as "owner_died", or NULL
 * for a number that is none. The string is static. Any thread. Never fails. */
const char *shmview_event_kind_name(int kind);

#ifdef __cplusplus
}
#endif
#endif
