/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/limits.h"
#include "daemon/segments/look.h"

_Static_assert(LIMIT_MONITORS <= 64, "a bit each");

static struct event ring[EVENTS_KEPT];
static uint64_t first_serial = 1, last_serial;
static uint64_t counts[SHMVIEW_EVENT_LOST + 1];
static struct subscriber *subscribers[LIMIT_MONITORS];
static unsigned n_subscribers;
static pid_t actor_pid;
static uid_t actor_uid = UINT32_MAX;
static void (*wake)(void *arg);
static void *wake_arg;

void events_init(uint64_t serial)
{
    memset(ring, 0, sizeof ring);
    memset(counts, 0, sizeof counts);
    last_serial = serial;
    first_serial = serial + 1;
    events_by(0, UINT32_MAX);
}

void events_by(pid_t pid, uid_t uid)
{
    actor_pid = pid;
    actor_uid = uid;
}

void events_call(void (*call)(void *arg), void *arg)
{
    wake = call;
    wake_arg = arg;
}

uint64_t events_count(enum shmview_event_kind kind)
{
    return counts[kind];
}

uint64_t events_last(void)
{
    return last_serial;
}

static struct event *at(uint64_t serial)
{
    return &ring[serial % EVENTS_KEPT];
}

/* --- Subscribers --------------------------------------------------------- */

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

static void offer(struct subscriber *s, struct event *e, const struct segment *segment)
{
    if (!is_asked_for(s, e) || !s->may_know(s, e, segment))
        return;
    e->wanted_by |= UINT64_C(1) << s->bit;
    s->n_pending++;
}

static void lose(const struct event *e)
{
    for (uint64_t left = e->wanted_by; left; left &= left - 1) {
        struct subscriber *s = subscribers[__builtin_ctzll(left)];
        s->n_pending--;
        s->n_lost++;
        counts[SHMVIEW_EVENT_LOST]++;
    }
}

static uint64_t oldest(void)
{
    uint64_t n = last_serial + 1 - first_serial;
    return n <= EVENTS_KEPT ? first_serial : last_serial - EVENTS_KEPT + 1;
}

int events_subscribe(struct subscriber *subscriber, uint64_t after,
                     const struct segment *(*find)(void *arg, uint64_t id), void *arg)
{
    struct subscriber *s = subscriber;
    unsigned bit = 0;
    while (bit < LIMIT_MONITORS && subscribers[bit])
        bit++;
    if (bit == LIMIT_MONITORS)
        return -EDQUOT;
    subscribers[bit] = s;
    n_subscribers++;
    s->bit = bit;
    s->n_pending = s->n_lost = 0;
    s->next = last_serial + 1;
    if (after == UINT64_MAX)
        return 0;
    if (after > last_serial)
        after = 0; /* of another registry's life */
    s->next = after < oldest() ? oldest() : after + 1;
    for (uint64_t serial = s->next; serial <= last_serial; serial++)
        offer(s, at(serial), at(serial)->id && find ? find(arg, at(serial)->id) : NULL);
    return 0;
}

void events_unsubscribe(struct subscriber *subscriber)
{
    for (uint64_t serial = oldest(); serial <= last_serial; serial++)
        at(serial)->wanted_by &= ~(UINT64_C(1) << subscriber->bit);
    subscribers[subscriber->bit] = NULL;
    n_subscribers--;
}

const struct event *events_next(struct subscriber *subscriber)
{
    struct subscriber *s = subscriber;
    uint64_t bit = UINT64_C(1) << s->bit;
    if (s->n_pending == 0)
        return NULL;
    if (s->next < oldest())
        s->next = oldest();
    while (!(at(s->next)->wanted_by & bit))
        s->next++;
    struct event *e = at(s->next++);
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

struct event *events_add(enum shmview_event_kind kind, const struct segment *segment)
{
    struct event *e = at(++last_serial);
    if (e->wanted_by)
        lose(e);
    *e = (struct event){
        .serial = last_serial,
        .time_us = real_us(),
        .kind = (uint8_t)kind,
        .uid = actor_uid,
        .pid = (uint32_t)actor_pid,
        .slot = UINT32_MAX,
        .owner = UINT32_MAX,
    };
    counts[kind]++;
    if (segment) {
        e->id = segment->id;
        e->owner = segment->access ? segment->access->uid : UINT32_MAX;
        snprintf(e->name, sizeof e->name, "%s", segment->name);
    }
    for (unsigned i = 0; n_subscribers && i < LIMIT_MONITORS; i++)
        if (subscribers[i])
            offer(subscribers[i], e, segment);
    if (e->wanted_by && wake)
        wake(wake_arg);
    return e;
}

struct event *events_add_by(enum shmview_event_kind kind, const struct segment *segment, pid_t pid)
{
    struct event *e = events_add(kind, segment);
    if (e->wanted_by && pid)
        look_command(pid, e->command);
    return e;
}
