/* SPDX-License-Identifier: Apache-2.0 */
/* Checks events.c: the ring, which subscriber gets which event, and lost events. */
#include "unit/unit.h"

#include "daemon/segments/segment.h"

static struct events events;
static unsigned n_wakes;

static void wake(void *arg)
{
    ck_assert_ptr_eq(arg, &n_wakes);
    n_wakes++;
}

static bool everybody(const struct subscriber *s, const struct event *e,
                      const struct segment *segment)
{
    (void)s;
    (void)e;
    (void)segment;
    return true;
}

static bool owners(const struct subscriber *s, const struct event *e, const struct segment *segment)
{
    const uid_t *uid = s->owner;
    return e->id && (segment ? segment->access->uid : e->owner) == *uid;
}

static struct subscriber subscriber(void)
{
    return (struct subscriber){.may_know = everybody};
}

static void give(struct segment *s, uid_t owner)
{
    struct access access = {.uid = owner};
    ck_assert_int_eq(segment_set_access(s, &access), 0);
}

static struct segment *segment_of(uint64_t id, uid_t owner, const char *name)
{
    static struct segment_home home;
    struct segment *s = segment_new(&home, id, name);
    give(s, owner);
    return s;
}

/* Returns the serial number of the next event, or 0 if there is none. */
static uint64_t next(struct subscriber *s)
{
    const struct event *e = events_next(&events, s);
    return e ? e->serial : 0;
}

START_TEST(in_order)
{
    struct subscriber a = subscriber(), b = subscriber();
    events_init(&events, 100);
    n_wakes = 0;
    events.wake = wake;
    events.wake_arg = &n_wakes;
    events_add(&events, SHMVIEW_EVENT_CREATED, NULL, ACTOR_NONE);
    ck_assert_uint_eq(n_wakes, 0);
    ck_assert_int_eq(events_subscribe(&events, &a, UINT64_MAX, NULL, NULL), 0);
    ck_assert_uint_eq(next(&a), 0);
    events_add(&events, SHMVIEW_EVENT_ATTACHED, NULL, (struct actor){.pid = 12, .uid = 34})->slot =
        5;
    ck_assert_uint_eq(n_wakes, 1);
    ck_assert_int_eq(events_subscribe(&events, &b, UINT64_MAX, NULL, NULL), 0);
    events_add(&events, SHMVIEW_EVENT_DIED, NULL, ACTOR_NONE);
    const struct event *e = events_next(&events, &a);
    ck_assert_uint_eq(e->serial, 102);
    ck_assert_uint_eq(e->kind, SHMVIEW_EVENT_ATTACHED);
    ck_assert_uint_eq(e->pid, 12);
    ck_assert_uint_eq(e->uid, 34);
    ck_assert_uint_eq(e->slot, 5);
    ck_assert_uint_eq(next(&a), 103);
    ck_assert_uint_eq(next(&a), 0);
    ck_assert_uint_eq(next(&b), 103);
    ck_assert_uint_eq(next(&b), 0);
    ck_assert_uint_eq(events.counts[SHMVIEW_EVENT_DIED], 1);
    events_unsubscribe(&events, &a);
    events_unsubscribe(&events, &b);
}
END_TEST

START_TEST(who_wants_what)
{
    const char *names[] = {"a", "b"};
    uid_t uid = 7;
    struct segment *a = segment_of(1, 7, "a"), *c = segment_of(2, 8, "c");
    struct subscriber kinds = subscriber(), named = subscriber(), owner = subscriber();
    events_init(&events, 0);
    kinds.kinds = 1 << (SHMVIEW_EVENT_DIED - 1);
    named.names = names;
    named.n_names = 2;
    owner.may_know = owners;
    owner.owner = &uid;
    ck_assert_int_eq(events_subscribe(&events, &kinds, UINT64_MAX, NULL, NULL), 0);
    ck_assert_int_eq(events_subscribe(&events, &named, UINT64_MAX, NULL, NULL), 0);
    ck_assert_int_eq(events_subscribe(&events, &owner, UINT64_MAX, NULL, NULL), 0);
    events_add(&events, SHMVIEW_EVENT_CREATED, a, ACTOR_NONE);      /* 1 */
    events_add(&events, SHMVIEW_EVENT_DIED, c, ACTOR_NONE);         /* 2 */
    events_add(&events, SHMVIEW_EVENT_RECOVERED, NULL, ACTOR_NONE); /* 3 */
    ck_assert_uint_eq(next(&kinds), 2);
    ck_assert_uint_eq(next(&kinds), 0);
    ck_assert_uint_eq(next(&named), 1);
    ck_assert_uint_eq(next(&named), 3); /* of no segment */
    ck_assert_uint_eq(next(&named), 0);
    ck_assert_uint_eq(next(&owner), 1);
    ck_assert_uint_eq(next(&owner), 0);
    events_unsubscribe(&events, &kinds);
    events_unsubscribe(&events, &named);
    events_unsubscribe(&events, &owner);
    segment_free(a);
    segment_free(c);
}
END_TEST

START_TEST(what_is_lost)
{
    struct subscriber slow = subscriber(), quick = subscriber();
    events_init(&events, 0);
    ck_assert_int_eq(events_subscribe(&events, &slow, UINT64_MAX, NULL, NULL), 0);
    ck_assert_int_eq(events_subscribe(&events, &quick, UINT64_MAX, NULL, NULL), 0);
    for (uint64_t i = 1; i <= EVENTS_KEPT + 10; i++) {
        events_add(&events, SHMVIEW_EVENT_CREATED, NULL, ACTOR_NONE);
        ck_assert_uint_eq(next(&quick), i);
    }
    ck_assert_uint_eq(quick.n_lost, 0);
    ck_assert_uint_eq(slow.n_lost, 10);
    ck_assert_uint_eq(events.counts[SHMVIEW_EVENT_LOST], 10);
    for (uint64_t i = 11; i <= EVENTS_KEPT + 10; i++)
        ck_assert_uint_eq(next(&slow), i);
    ck_assert_uint_eq(next(&slow), 0);
    events_unsubscribe(&events, &slow);
    events_unsubscribe(&events, &quick);
}
END_TEST

static const struct segment *find(void *arg, uint64_t id)
{
    struct segment *s = arg;
    return s->id == id ? s : NULL;
}

START_TEST(what_is_remembered)
{
    uid_t uid = 7;
    struct segment *a = segment_of(1, 7, "a"), *b = segment_of(2, 8, "b");
    struct subscriber s = subscriber();
    events_init(&events, 1000);
    events_add(&events, SHMVIEW_EVENT_CREATED, a, ACTOR_NONE); /* 1001 */
    events_add(&events, SHMVIEW_EVENT_CREATED, b, ACTOR_NONE); /* 1002 */
    events_add(&events, SHMVIEW_EVENT_CREATED, a, ACTOR_NONE); /* 1003 */
    give(a, 8);                                                /* the present rights decide */
    give(b, 7);
    s.may_know = owners;
    s.owner = &uid;
    ck_assert_int_eq(events_subscribe(&events, &s, 1001, find, b), 0);
    ck_assert_uint_eq(next(&s), 1002);
    ck_assert_uint_eq(next(&s), 1003); /* it has ended: its last rights decide */
    ck_assert_uint_eq(next(&s), 0);
    events_unsubscribe(&events, &s);
    s = subscriber();
    ck_assert_int_eq(events_subscribe(&events, &s, 5000, NULL, NULL), 0); /* of another daemon */
    ck_assert_uint_eq(next(&s), 1001);
    events_unsubscribe(&events, &s);
    for (int i = 0; i < EVENTS_KEPT; i++)
        events_add(&events, SHMVIEW_EVENT_DIED, NULL, ACTOR_NONE);
    s = subscriber();
    ck_assert_int_eq(events_subscribe(&events, &s, 1, NULL, NULL), 0);
    ck_assert_uint_eq(next(&s), 1004);
    ck_assert_uint_eq(s.n_pending, EVENTS_KEPT - 1);
    ck_assert_uint_eq(s.n_lost, 0);
    events_unsubscribe(&events, &s);
    segment_free(a);
    segment_free(b);
}
END_TEST

START_TEST(too_many)
{
    static struct subscriber all[LIMIT_MONITORS + 1];
    events_init(&events, 0);
    for (int i = 0; i < LIMIT_MONITORS; i++) {
        all[i] = subscriber();
        ck_assert_int_eq(events_subscribe(&events, &all[i], UINT64_MAX, NULL, NULL), 0);
    }
    all[LIMIT_MONITORS] = subscriber();
    ck_assert_int_eq(events_subscribe(&events, &all[LIMIT_MONITORS], UINT64_MAX, NULL, NULL),
                     -EDQUOT);
    events_add(&events, SHMVIEW_EVENT_CREATED, NULL, ACTOR_NONE);
    events_unsubscribe(&events, &all[5]);
    ck_assert_int_eq(events_subscribe(&events, &all[5], UINT64_MAX, NULL, NULL), 0);
    ck_assert_uint_eq(next(&all[5]), 0); /* events unread by another do not count */
    ck_assert_uint_eq(next(&all[LIMIT_MONITORS - 1]), 1);
    for (int i = 0; i < LIMIT_MONITORS; i++)
        events_unsubscribe(&events, &all[i]);
}
END_TEST

UNIT_MAIN("events", UNIT_TEST(in_order), UNIT_TEST(who_wants_what), UNIT_TEST(what_is_lost),
          UNIT_TEST(what_is_remembered), UNIT_TEST(too_many))
