/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of the latest events, and which subscriber has still to read each of them.
 *
 *   added -> read by each subscriber that wants it, in order -> overwritten
 *   added -> overwritten before a subscriber has read it -> counted as lost for that subscriber
 *
 * All subscribers share one ring. So a subscriber that does not read costs the daemon no memory and
 * delays nobody. It loses events, and learns how many. The ring also has the events from before a
 * subscription, which a client may ask for after it lost its connection.
 *
 * Whether a subscriber may know an event is decided when the event is added. When it is read, the
 * segment may be gone or belong to another user. An event has 408 bytes. Adding one writes these
 * and calls may_know() of each subscriber that wants such events.
 *
 * Everything here is used on the loop only. */
#ifndef DAEMON_EVENTS_H
#define DAEMON_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <shmview/monitor.h>

#include "common/base/limits.h"

#define EVENTS_KEPT 2048

struct segment;

/* One event. events_add() sets the members that follow from kind, segment and actor; its caller
 * sets those that the kind has besides. An unknown number is UINT32_MAX in uid, owner and slot, and
 * 0 elsewhere. */
struct event {
    uint64_t serial;    /* 1 more than that of the event before */
    int64_t time_us;    /* CLOCK_REALTIME */
    uint64_t wanted_by; /* a bit for each subscriber that has still to read it */
    uint64_t id;        /* of the segment; 0: none */
    uint64_t size, attachment;
    uint32_t uid, pid, slot;
    uint32_t owner; /* of the segment: a uid */
    uint32_t generation, switches;
    uint32_t segments, attachments, deaths, lost;
    uint16_t error;
    uint8_t kind; /* enum shmview_event_kind */
    uint8_t access, held;
    uint8_t stream, stream_role; /* see struct shmview_event */
    uint16_t stream_slots, held_frames;
    char command[16];
    char name[LIMIT_NAME_BYTES + 1]; /* of the segment */
    char text[160];                  /* a layout's name, or a reason */
};

/* A receiver of events, embedded in a monitor. */
struct subscriber {
    int64_t kinds; /* bit k - 1 for kind k; 0: all */
    const char **names;
    size_t n_names;
    /* Whether the subscriber may know the event. segment is NULL if the event has none, or if the
     * segment was freed. */
    bool (*may_know)(const struct subscriber *, const struct event *, const struct segment *);
    void *owner;
    /* filled by events_subscribe() */
    unsigned bit;
    uint64_t next;      /* events before this serial number are read or lost */
    uint64_t n_pending; /* events in the ring that it has still to read */
    uint64_t n_lost;    /* since the owner reset it to 0 */
};

/* One for each instance; written by events.c, except wake and wake_arg. */
struct events {
    struct event ring[EVENTS_KEPT];
    uint64_t first, last;                    /* serial numbers of all events of this daemon */
    uint64_t counts[SHMVIEW_EVENT_LOST + 1]; /* by kind; LOST: how many events were lost */
    struct subscriber *subscribers[LIMIT_MONITORS];
    unsigned n_subscribers;
    void (*wake)(void *arg); /* called after an event was added that a subscriber wants; or NULL */
    void *wake_arg;
};

/* The process that causes an event. */
struct actor {
    pid_t pid; /* 0: the daemon itself */
    uid_t uid;
};
#define ACTOR_NONE ((struct actor){.uid = UINT32_MAX})

/* Serial numbers begin with serial + 1. events must be zeroed. It has 800 KB, of which the kernel
 * backs only the pages that are written. */
void events_init(struct events *events, uint64_t serial);

/* Adds an event that the actor has caused, and overwrites the oldest one if the ring is full.
 * segment may be NULL. The returned event is borrowed until the next one is added; the caller sets
 * its other members. Subscribers have been offered the event by then, so they may choose by kind,
 * segment and actor only. Never fails. */
struct event *events_add(struct events *events, enum shmview_event_kind kind,
                         const struct segment *segment, struct actor by);

/* Like events_add(), but sets the command of the actor if a subscriber wants the event. Reading it
 * takes three system calls. */
struct event *events_add_with_command(struct events *events, enum shmview_event_kind kind,
                                      const struct segment *segment, struct actor by);

/* Adds a subscriber, which must stay in place. If `after` is not UINT64_MAX, it also gets the
 * events in the ring with a higher serial number. For these find() returns the segment with an id,
 * or NULL if it was freed; find may be NULL.
 *
 * Returns 0, and the caller owes events_unsubscribe(); or -EDQUOT if there are LIMIT_MONITORS
 * subscribers. */
int events_subscribe(struct events *events, struct subscriber *subscriber, uint64_t after,
                     const struct segment *(*find)(void *arg, uint64_t id), void *arg);
void events_unsubscribe(struct events *events, struct subscriber *subscriber);

/* Returns the next event for the subscriber, borrowed until another one is added; or NULL if there
 * is none. subscriber->n_lost events before it were lost. */
const struct event *events_next(struct events *events, struct subscriber *subscriber);

#endif
