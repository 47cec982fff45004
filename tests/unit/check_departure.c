/* SPDX-License-Identifier: Apache-2.0 */
/* departure.c of the daemon: the end of a client with many segments. */
#include "daemon/departure.h"

#include "house.h"

#define SEGMENTS 1000

static struct house house;
static struct guest *dead, *other;

/* A guest that has many segments, hangs up; another one is there. */
static void begin(const char *lifetime)
{
    house_open(&house);
    dead = house_admit(&house);
    other = house_admit(&house);
    for (int i = 0; i < SEGMENTS; i++) {
        char parameters[128];
        snprintf(parameters, sizeof parameters,
                 "{'name':'s%d','size':1,'access':'write','lifetime':'%s'}", i, lifetime);
        house_call(dead, "Create", parameters);
    }
    house_leave(dead);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (dead->connection && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_null(dead->connection);
}

static void run_until_gone(void)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (house.state.registry.by_id && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_null(house.state.registry.by_id);
    for (int kind = 0; kind < N_QUOTA_KINDS; kind++)
        ck_assert_uint_eq(house.state.quota.used[kind], 0);
}

/* Others are served before all is ended, and find nothing of what is about to end. */
static void others_are_served(const char *lifetime)
{
    begin(lifetime);
    ck_assert_uint_gt(HASH_CNT(by_id, house.state.registry.by_id), SEGMENTS / 10);
    house_call(other, "Ping", "{}");
    for (int i = 0; i < SEGMENTS; i += SEGMENTS - 1) { /* the last one that is ended, too */
        char parameters[128];
        snprintf(parameters, sizeof parameters, "{'name':'s%d'}", i);
        house_refused(other, "Describe", parameters, "SegmentNotFound", "no segment");
        snprintf(parameters, sizeof parameters, "{'name':'s%d','size':1,'access':'write'}", i);
        house_call(other, "Create", parameters);
    }
    house_leave(other);
    run_until_gone();
    house_close(&house);
}

START_TEST(attached)
{
    others_are_served("attached");
}
END_TEST

START_TEST(created)
{
    others_are_served("creator");
}
END_TEST

/* A daemon that leaves ends all of it first. */
START_TEST(at_once)
{
    begin("attached");
    ck_assert_ptr_nonnull(house.state.registry.by_id);
    departures_finish(&house.state);
    ck_assert_ptr_null(house.state.registry.by_id);
    house_close(&house);
}
END_TEST

UNIT_MAIN("departure", UNIT_TEST(attached), UNIT_TEST(created), UNIT_TEST(at_once))
