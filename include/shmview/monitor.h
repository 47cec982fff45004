/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/monitor.h - hearing of what happens at a daemon: segments that come and go, clients
 * that attach, leave and die, switches of phases.
 *
 *     struct shmview_monitor *monitor;
 *     const struct shmview_event *e;
 *     shmview_monitor_open(conn, NULL, &monitor);
 *     while (shmview_monitor_next(monitor, SHMVIEW_FOREVER, &e) == 0)
 *         printf("%s %s\n", shmview_event_kind_name(e->kind), e->segment);
 *     shmview_monitor_close(monitor);
 *
 * Only of segments that this user may see. Whoever reads too slowly loses events, never
 * disturbs others, and is told how many he has lost. */
#ifndef SHMVIEW_MONITOR_H
#define SHMVIEW_MONITOR_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shmview_event_kind {
    SHMVIEW_EVENT_CREATED = 1,
    SHMVIEW_EVENT_ATTACHED = 2,
    SHMVIEW_EVENT_DETACHED = 3,    /* in order */
    SHMVIEW_EVENT_DIED = 4,        /* the same without: its client ended, or hung up */
    SHMVIEW_EVENT_OWNER_DIED = 5,  /* and held the lock exclusively: the next owner is told */
    SHMVIEW_EVENT_REMOVED = 6,     /* the name is gone */
    SHMVIEW_EVENT_ACCESS = 7,      /* who may use the segment is another one */
    SHMVIEW_EVENT_PHASE = 8,       /* the layout was switched */
    SHMVIEW_EVENT_QUOTA = 9,       /* a client asked for more than it may have */
    SHMVIEW_EVENT_RECOVERED = 10,  /* the daemon was started anew, and took over */
    SHMVIEW_EVENT_SUBSCRIBED = 11, /* from now on events are told; also after each reconnection */
    SHMVIEW_EVENT_LOST = 12,       /* so many events were not told */
};

/* One bit of shmview_monitor_options.kinds. */
#define SHMVIEW_EVENT_BIT(kind) (1u << (kind))

/* One event. New members come at the end: programs get it by pointer, and never make one.
 * Strings are "" and numbers 0 where they do not belong to the kind, unless it says so. */
struct shmview_event {
    uint64_t serial; /* grows by the order of events */
    int64_t time_us; /* CLOCK_REALTIME, microseconds */
    uint32_t kind;   /* enum shmview_event_kind */
    int32_t error;   /* QUOTA: SHMVIEW_ERR_* */
    uint64_t id;     /* of the segment */
    const char *segment;
    int64_t uid;         /* who did it, or whose attachment it was; -1 unknown */
    uint32_t pid;        /* the same; 0 unknown */
    uint32_t access;     /* of the attachment: enum shmview_access */
    const char *command; /* of that client, as it calls itself; "" unknown */
    uint64_t attachment; /* its id */
    int64_t slot;        /* in the lock; -1: none */
    uint32_t held;       /* DIED, OWNER_DIED: SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED, 0 nothing */
    uint32_t generation; /* PHASE: of the phase now */
    uint64_t size;       /* CREATED: bytes */
    const char *layout;  /* PHASE: the one that is current */
    uint32_t switches;   /* PHASE: so many since the last look */
    uint32_t reserved;
    uint64_t deaths;      /* RECOVERED: of clients, that nobody had noticed */
    uint64_t segments;    /* RECOVERED: that there are */
    uint64_t attachments; /* RECOVERED: that there are; REMOVED: that keep the memory */
    uint64_t lost;        /* LOST: events; RECOVERED: segments */
    const char *reason;   /* QUOTA: a sentence */
};

/* Zero is the default: everything, from now on. Size the struct with sizeof. */
struct shmview_monitor_options {
    uint32_t struct_bytes;
    uint32_t kinds;           /* SHMVIEW_EVENT_BIT() of each that is wanted; 0: all */
    const char *const *names; /* of the only segments to hear of, which need not be there yet */
    size_t n_names;           /* at most 64; 0: all */
    uint64_t after;           /* serial number: also what came after it, as far as remembered */
};

/* From the oldest event that the daemon remembers. */
#define SHMVIEW_MONITOR_REMEMBERED UINT64_C(1)

struct shmview_monitor;

/* Subscribes to events of the daemon that connection talks to.
 *
 * connection and options are borrowed for the call; options may be NULL. *ret_monitor is new:
 * the caller owes shmview_monitor_close(). It has a socket of its own and does not keep the
 * connection. When this returns 0 nothing that happens later is missed. Blocks for one round
 * trip. Any thread; later calls with one monitor by one thread at a time. A forked child may
 * only close it.
 *
 * While there is a subscriber who wants them, the daemon looks for switches of phases ten
 * times a second, and whenever somebody attaches or leaves; it tells of those between two looks
 * as one.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID, _QUOTA (the daemon has 64
 * subscribers, or this user has its share of them), _UNSUPPORTED (it knows no events), _NO_DAEMON,
 * _DENIED, _DISCONNECTED, _PROTOCOL, _NO_MEMORY or _SYSTEM on failure. */
int shmview_monitor_open(struct shmview_connection *connection,
                         const struct shmview_monitor_options *options,
                         struct shmview_monitor **ret_monitor);

/* Closes it. Takes NULL. Does not block. Returns 0. */
int shmview_monitor_close(struct shmview_monitor *monitor);

/* Waits for the next event until deadline_ns, absolute nanoseconds of CLOCK_MONOTONIC; 0: does
 * not wait. *ret_event is borrowed until the next call with this monitor.
 *
 * A daemon that goes away is waited for; when it is back, the monitor goes on behind the last
 * event that it has given, as far as the new daemon remembers: SUBSCRIBED says so.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_TIMED_OUT; -SHMVIEW_ERR_DISCONNECTED if the
 * deadline has come and the daemon is not there, or takes no connections at the moment: the next
 * call tries again; _LIMIT, _DENIED, _PROTOCOL, _NO_MEMORY or _SYSTEM on failure. */
int shmview_monitor_next(struct shmview_monitor *monitor, int64_t deadline_ns,
                         const struct shmview_event **ret_event);

/* The descriptor to wait for in an event loop: when it is readable, call
 * shmview_monitor_next() with deadline 0 until it returns -SHMVIEW_ERR_TIMED_OUT. Borrowed;
 * another one after each SUBSCRIBED, and -1 while the monitor is not connected. Never fails. */
int shmview_monitor_fd(const struct shmview_monitor *monitor);

/* The name of a kind, as the protocol has it: "owner_died". NULL if it is none. The string is
 * static. Never fails, any thread. */
const char *shmview_event_kind_name(int kind);

#ifdef __cplusplus
}
#endif
#endif
