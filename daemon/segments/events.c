/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/limits.h"
#include "daemon/segments/control_peek.h"

_Static_assert(LIMIT_MONITORS <= 64, "a bit each");

void events_init(struct events *events, uint64_t serial)
{
    events->last = serial;
    events->first = serial + 1;
}

static struct event *at(struct events *events, uint64_t serial)
{
    return &events->ring[serial % EVENTS_KEPT];
}

/* --- Subscribers --------------------------------------------------------- */

/* Whether the subscriber wants such events. Events without a segment pass any list of names. */
static bool is_asked_for(const struct subscriber *s, const struct event *e)
{
    if (s->kinds && !(s->kinds >> (e->kind - 1) & 1))
        return false;
    if (s->n_names == 0 || e->id == 0)
        return true;
    for (size_t i = 0; i < s->n_names; i++)
        if (strcmp(s->names[i], e->name) == 0)
            return true;
    return false;
}

/* Marks the event for the subscriber if it wants the event and may know it. */
static void offer(struct subscriber *s, struct event *e, const struct segment *segment)
{
    if (!is_asked_for(s, e) || !s->may_know(s, e, segment))
        return;
    e->wanted_by |= UINT64_C(1) << s->bit;
    s->n_pending++;
}

/* Counts an event that is about to be overwritten as lost for all that have not read it. */
static void lose(struct events *events, const struct event *e)
{
    for (uint64_t left = e->wanted_by; left; left &= left - 1) {
        struct subscriber *s = events->subscribers[__builtin_ctzll(left)];
        s->n_pending--;
        s->n_lost++;
        events->counts[SHMVIEW_EVENT_LOST]++;
    }
}

/* The serial number of the oldest event in the ring. */
static uint64_t oldest(const struct events *events)
{
    uint64_t n = events->last + 1 - events->first;
    return n <= EVENTS_KEPT ? events->first : events->last - EVENTS_KEPT + 1;
}

int events_subscribe(struct events *events, struct subscriber *subscriber, uint64_t after,
                     const struct segment *(*find)(void *arg, uint64_t id), void *arg)
{
    struct subscriber *s = subscriber;
    unsigned bit = 0;
    while (bit < LIMIT_MONITORS && events->subscribers[bit])
        bit++;
    if (bit == LIMIT_MONITORS)
        return -EDQUOT;
    events->subscribers[bit] = s;
    events->n_subscribers++;
    s->bit = bit;
    s->n_pending = s->n_lost = 0;
    s->next = events->last + 1;
    if (after == UINT64_MAX)
        return 0;
    if (after > events->last)
        after = 0; /* the number is from before the registry was lost: offer the whole ring */
    s->next = after < oldest(events) ? oldest(events) : after + 1;
    for (uint64_t serial = s->next; serial <= events->last; serial++)
        offer(s, at(events, serial),
              at(events, serial)->id && find ? find(arg, at(events, serial)->id) : NULL);
    return 0;
}

void events_unsubscribe(struct events *events, struct subscriber *subscriber)
{
    for (uint64_t serial = oldest(events); serial <= events->last; serial++)
        at(events, serial)->wanted_by &= ~(UINT64_C(1) << subscriber->bit);
    events->subscribers[subscriber->bit] = NULL;
    events->n_subscribers--;
}

const struct event *events_next(struct events *events, struct subscriber *subscriber)
{
    struct subscriber *s = subscriber;
    uint64_t bit = UINT64_C(1) << s->bit;
    if (s->n_pending == 0)
        return NULL;
    if (s->next < oldest(events))
        s->next = oldest(events);
    while (!(at(events, s->next)->wanted_by & bit))
        s->next++;
    struct event *e = at(events, s->next++);
    e->wanted_by &= ~bit;
    s->n_pending--;
    return e;
}

/* --- Adding -------------------------------------------------------------- */

static int64_t real_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct event *events_add(struct events *events, enum shmview_event_kind kind,
                         const struct segment *segment, struct actor by)
{
    struct event *e = at(events, ++events->last);
    if (e->wanted_by)
        lose(events, e);
    *e = (struct event){
        .serial = events->last,
        .time_us = real_us(),
        .kind = (uint8_t)kind,
        .uid = by.uid,
        .pid = (uint32_t)by.pid,
        .slot = UINT32_MAX,
        .owner = UINT32_MAX,
    };
    events->counts[kind]++;
    if (segment) {
        e->id = segment->id;
        e->owner = segment->access ? segment->access->uid : UINT32_MAX;
        snprintf(e->name, sizeof e->name, "%s", segment->name);
    }
    for (unsigned i = 0; events->n_subscribers && i < LIMIT_MONITORS; i++)
        if (events->subscribers[i])
            offer(events->subscribers[i], e, segment);
    if (e->wanted_by && events->wake)
        events->wake(events->wake_arg);
    return e;
}

struct event *events_add_with_command(struct events *events, enum shmview_event_kind kind,
                                      const struct segment *segment, struct actor by)
{
    struct event *e = events_add(events, kind, segment, by);
    if (e->wanted_by && by.pid)
        process_command(by.pid, e->command);
    return e;
}
