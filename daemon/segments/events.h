/* SPDX-License-Identifier: Apache-2.0 */
/* What happened lately, and who is yet to be told.
 *
 *   added -> told to each subscriber who wanted it, in order -> overwritten
 *   added -> overwritten before a subscriber read it -> counted as lost for him
 *
 * All subscribers share one ring, so that one who does not read costs nobody anything. Adding
 * is a copy of some 300 bytes and, where there are subscribers, a question of each whether he
 * may know. One ring in a daemon; the loop's only. */
#ifndef DAEMON_EVENTS_H
#define DAEMON_EVENTS_H

#include <shmview/monitor.h>

#include "common/base/limits.h"
#include "daemon/segments/segment.h"

#define EVENTS_KEPT 2048

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

/* Serial numbers begin above that. Forgets everything. */
void events_init(uint64_t serial);

/* Events that are added from here on were caused by him; 0 and UINT32_MAX: by nobody. */
void events_by(pid_t pid, uid_t uid);

/* Adds an event of a segment (or NULL) with who is at work and what follows from the segment;
 * the caller fills in the rest. Never fails. */
struct event *events_add(enum shmview_event_kind kind, const struct segment *segment);

/* Like events_add(), and names the program of process pid, which is at work, if anybody hears of
 * the event. 0: the daemon itself is at work. */
struct event *events_add_by(enum shmview_event_kind kind, const struct segment *segment, pid_t pid);

/* Called when an event was added that somebody wants. */
void events_call(void (*wake)(void *arg), void *arg);

/* How often there was one of that kind since events_init(); of SHMVIEW_EVENT_LOST, how many events.
 */
uint64_t events_count(enum shmview_event_kind kind);

/* The number of the last event. */
uint64_t events_last(void);

/* Subscribes; also to what is remembered after that serial number, if it is not UINT64_MAX.
 * find (may be NULL) gives the segment of an id, or NULL. Returns 0 and owes
 * events_unsubscribe(), or -EDQUOT: there are LIMIT_MONITORS. */
int events_subscribe(struct subscriber *subscriber, uint64_t after,
                     const struct segment *(*find)(void *arg, uint64_t id), void *arg);
void events_unsubscribe(struct subscriber *subscriber);

/* The next event for him, or NULL. What he lost before it is in n_lost, his to reset. */
const struct event *events_next(struct subscriber *subscriber);

#endif
