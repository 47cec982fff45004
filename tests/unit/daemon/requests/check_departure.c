/* SPDX-License-Identifier: Apache-2.0 */
/* Checks departure.c of the daemon: the end of a client with many segments, or of segments that it
 * did not claim. */
#include "daemon/requests/departure.h"

#include <inttypes.h>

#include "daemon/segments/events.h"

#include "unit/house.h"

#define SEGMENTS 1000
#define DEAD_PID 4711

static struct house house;
static struct guest *dead, *other;

/* Returns the id of the guest's first attachment. */
static json_int_t create_segments(struct guest *g, const char *lifetime)
{
    json_int_t first = 0;
    for (int i = 0; i < SEGMENTS; i++) {
        char parameters[128];
        snprintf(parameters, sizeof parameters,
                 "{'name':'s%d','size':1,'access':'write','lifetime':'%s'}", i, lifetime);
        json_int_t id = house_int(house_call(g, "Create", parameters), "attachment", "id");
        first = i ? first : id;
    }
    return first;
}

/* Begins with a guest that has many segments and hangs up, and another guest. */
static void begin(const char *lifetime)
{
    house_open(&house);
    dead = house_admit(&house);
    other = house_admit(&house);
    dead->connection->holder.pid = DEAD_PID;
    create_segments(dead, lifetime);
    house_leave(dead);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (dead->connection && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_null(dead->connection);
}

static void run_until_gone(void)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (registry_count(&house.state.registry) && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_eq(registry_count(&house.state.registry), 0);
    for (int kind = 0; kind < N_QUOTA_KINDS; kind++)
        ck_assert_uint_eq(house.state.quota.used[kind], 0);
}

static void assert_name_is_free(int i)
{
    char parameters[128];
    snprintf(parameters, sizeof parameters, "{'name':'s%d'}", i);
    house_refused(other, "Describe", parameters, "SegmentNotFound", "no segment");
    snprintf(parameters, sizeof parameters, "{'name':'s%d','size':1,'access':'write'}", i);
    house_call(other, "Create", parameters);
}

/* Other clients are served before everything has ended, and see nothing of what is about to end. */
static void others_are_served(const char *lifetime)
{
    begin(lifetime);
    ck_assert_uint_gt(registry_count(&house.state.registry), SEGMENTS / 10);
    house_call(other, "Ping", "{}");
    assert_name_is_free(0);
    assert_name_is_free(SEGMENTS - 1); /* even that of the last one */
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

/* Events name the client that had the segments, also if the request of another client ends them. */
static void the_dead_client_is_named(const char *lifetime)
{
    const struct events *events = &house.state.registry.home.events;
    begin(lifetime);
    house_refused(other, "Describe", "{'name':'s0'}", "SegmentNotFound", "no segment");
    house_refused(other, "Remove", "{'name':'s999'}", "SegmentNotFound", "no segment");
    run_until_gone();
    ck_assert_uint_eq(events->counts[SHMVIEW_EVENT_REMOVED], SEGMENTS);
    for (uint64_t serial = events->last - SEGMENTS + 1; serial <= events->last; serial++) {
        const struct event *e = &events->ring[serial % EVENTS_KEPT];
        ck_assert_uint_eq(e->pid, DEAD_PID);
        ck_assert_uint_eq(e->uid, getuid());
    }
    house_leave(other);
    house_close(&house);
}

START_TEST(attached_are_ended_by_their_client)
{
    the_dead_client_is_named("attached");
}
END_TEST

START_TEST(created_are_ended_by_their_client)
{
    the_dead_client_is_named("creator");
}
END_TEST

/* A claim ends the attachments that it omits, also in slices. They count as detached, because no
 * client has died. */
START_TEST(unclaimed)
{
    char parameters[128];
    house_open(&house);
    dead = house_admit(&house);
    other = house_admit(&house);
    house_call(dead, "Claim", "{'client':7,'held':[]}");
    json_int_t first = create_segments(dead, "attached");
    uint64_t n_died = house.state.registry.home.events.counts[SHMVIEW_EVENT_DIED],
             n_detached = house.state.registry.home.events.counts[SHMVIEW_EVENT_DETACHED];
    snprintf(parameters, sizeof parameters, "{'client':7,'held':[9999999,%lld,%lld]}",
             (long long)first, (long long)first);
    const json_t *held = json_object_get(house_call(other, "Claim", parameters), "held");
    ck_assert_uint_eq(json_array_size(held), 1);
    ck_assert_int_eq(json_integer_value(json_array_get(held, 0)), first);
    ck_assert_uint_gt(registry_count(&house.state.registry), SEGMENTS / 10);
    assert_name_is_free(1);
    assert_name_is_free(SEGMENTS - 1);
    house_call(other, "Describe", "{'name':'s0'}");
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (registry_count(&house.state.registry) > 3 && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_eq(registry_count(&house.state.registry), 3);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_ATTACHMENTS], 3);
    ck_assert_uint_eq(house.state.registry.home.events.counts[SHMVIEW_EVENT_DETACHED] - n_detached,
                      SEGMENTS - 1);
    ck_assert_uint_eq(house.state.registry.home.events.counts[SHMVIEW_EVENT_DIED], n_died);
    house_leave(other);
    run_until_gone();
    house_close(&house);
}
END_TEST

/* A daemon that exits ends them all first. */
START_TEST(at_once)
{
    begin("attached");
    ck_assert_uint_gt(registry_count(&house.state.registry), 0);
    departures_finish(&house.state);
    ck_assert_uint_eq(registry_count(&house.state.registry), 0);
    house_close(&house);
}
END_TEST

/* Others wait for its locks, so its death comes before a request that it has sent before. */
START_TEST(an_exiting_process_is_announced_once)
{
    const struct events *events = &house.state.registry.home.events;
    char text[128];
    house_open(&house);
    dead = house_admit(&house);
    house_call(dead, "Claim", "{'client':7,'held':[]}");
    json_int_t id = house_int(house_call(dead, "Create",
                                         "{'name':'a','size':1,'lock':true,'access':'write',"
                                         "'lifetime':'manual'}"),
                              "attachment", "id");
    house_call(dead, "Attach", "{'name':'a','access':'read'}");
    snprintf(text, sizeof text,
             "{'method':'io.shmview.Detach','parameters':{'attachment':%" PRId64 "}}", (int64_t)id);
    house_send(dead, text);
    client_end_exiting(dead->connection->client);
    ck_assert_uint_eq(events->counts[SHMVIEW_EVENT_DIED], 2);
    while (dead->connection)
        house_run(&house);
    departures_finish(&house.state);
    ck_assert_uint_eq(events->counts[SHMVIEW_EVENT_DIED], 2);
    ck_assert_uint_eq(events->counts[SHMVIEW_EVENT_DETACHED], 0);
    ck_assert_uint_eq(house.state.registry.home.attachments.n, 0);
    house_close(&house);
}
END_TEST

UNIT_MAIN("departure", UNIT_TEST(attached), UNIT_TEST(created), UNIT_TEST(unclaimed),
          UNIT_TEST(attached_are_ended_by_their_client),
          UNIT_TEST(created_are_ended_by_their_client), UNIT_TEST(at_once),
          UNIT_TEST(an_exiting_process_is_announced_once))
