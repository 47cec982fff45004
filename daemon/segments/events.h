/* SPDX-License-Identifier: Apache-2.0 */
/* What happened lately, and who is yet to be told.
 *
 *   added -> told to each subscriber who wanted it, in order -> overwritten
 *   added -> overwritten before a subscriber read it -> counted as lost for him
 *
 * All subscribers share one ring, so that one who does not read costs nobody anything. Adding
 * is a copy of some 300 bytes and, where there are subscribers, a question of each whether he
 * may know. The loop's only. */
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

/* Numbers that are not known: UINT32_MAX for uid and slot, else 0. */
struct event {
    uint64_t serial;
    int64_t time_us;
    uint64_t wanted_by; /* a bit for each subscriber who is yet to be told */
    uint64_t id;        /* of the segment; 0: none */
    uint64_t size, attachment;
    uint32_t uid, pid, slot;
    uint32_t owner; /* uid that the segment belongs to */
    uint32_t generation, switches;
    uint32_t segments, attachments, deaths, lost;
    uint16_t error;
    uint8_t kind; /* enum shmview_event_kind */
    uint8_t access, held;
    char command[16];
    char name[LIMIT_NAME_BYTES + 1]; /* of the segment */
    char text[160];                  /* a layout's name, or a reason */
};

struct subscriber {
    int64_t kinds; /* bit k - 1 for kind k; 0: all */
    const char **names;
    size_t n_names;
    /* Whether he may know; segment is NULL if it is no more, or there is none. */
    bool (*may_know)(const struct subscriber *, const struct event *, const struct segment *);
    void *owner;
    /* filled by events_subscribe() */
    unsigned bit;
    uint64_t next; /* serial number to look at next */
    uint64_t n_pending;
    uint64_t n_lost;
};

struct events {
    struct event ring[EVENTS_KEPT];
    uint64_t first, last;                    /* serial numbers */
    uint64_t counts[SHMVIEW_EVENT_LOST + 1]; /* by kind; of LOST, how many events */
    struct subscriber *subscribers[LIMIT_MONITORS];
    unsigned n_subscribers;
    void (*wake)(void *arg); /* called when an event was added that somebody wants; NULL: nobody */
    void *wake_arg;
};

/* The process that causes an event. */
struct actor {
    pid_t pid; /* 0: the daemon itself */
    uid_t uid;
};
#define ACTOR_NONE ((struct actor){.uid = UINT32_MAX})

/* Serial numbers begin above that. events is zeroed, and its pages cost nothing until they are
 * used. */
void events_init(struct events *events, uint64_t serial);

/* Adds an event of a segment (or NULL) that was caused by an actor, with what follows from the
 * segment; the caller fills in the rest. Never fails. */
struct event *events_add(struct events *events, enum shmview_event_kind kind,
                         const struct segment *segment, struct actor by);

/* Like events_add(), and names the program of the actor if anybody hears of the event. */
struct event *events_add_with_command(struct events *events, enum shmview_event_kind kind,
                                      const struct segment *segment, struct actor by);

/* Subscribes; also to what is remembered after that serial number, if it is not UINT64_MAX.
 * find (may be NULL) gives the segment of an id, or NULL. Returns 0 and owes
 * events_unsubscribe(), or -EDQUOT: there are LIMIT_MONITORS. */
int events_subscribe(struct events *events, struct subscriber *subscriber, uint64_t after,
                     const struct segment *(*find)(void *arg, uint64_t id), void *arg);
void events_unsubscribe(struct events *events, struct subscriber *subscriber);

/* The next event for him, or NULL. What he lost before it is in n_lost, his to reset. */
const struct event *events_next(struct events *events, struct subscriber *subscriber);

#endif
