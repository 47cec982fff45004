/* SPDX-License-Identifier: Apache-2.0 */
/* Checks phases.c: which segments one pass reaches. */
#include "daemon/segments/phases.h"

#include "unit/house.h"

#define SEGMENTS 40
#define OVER     0 /* a time that has passed */

static struct house house;
static struct phases phases;

/* Begins with attachments to "s0" and so on. */
static void begin(void)
{
    char parameters[64];
    house_open(&house);
    struct guest *g = house_admit(&house);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        snprintf(parameters, sizeof parameters, "{'name':'s%u','size':1,'access':'write'}", i);
        house_call(g, "Create", parameters);
    }
    phases_begin(&phases, &house.state.registry);
}

static void end(void)
{
    phases_end(&house.state.registry);
    house_close(&house);
}

static bool was_seen(const char *name)
{
    return registry_find(&house.state.registry, name)->phase_session == phases.session;
}

static unsigned n_seen(void)
{
    char name[16];
    unsigned n = 0;
    for (unsigned i = 0; i < SEGMENTS; i++) {
        snprintf(name, sizeof name, "s%u", i);
        n += was_seen(name);
    }
    return n;
}

START_TEST(names_are_taken_up_where_the_time_was_over)
{
    const char *const names[] = {"s3", "missing", "s5"};
    size_t next = 0;
    begin();
    phases_look_at(&phases, &house.state.registry, names, 3, &next, OVER);
    ck_assert(was_seen("s3"));
    ck_assert_uint_eq(n_seen(), 1);
    phases_look_at(&phases, &house.state.registry, names, 3, &next, OVER);
    ck_assert_uint_eq(n_seen(), 1);
    phases_look_at(&phases, &house.state.registry, names, 3, &next, OVER);
    ck_assert(was_seen("s5"));
    ck_assert_uint_eq(n_seen(), 2);
    ck_assert_uint_eq(next, 0);
    phases_begin(&phases, &house.state.registry);
    phases_look_at(&phases, &house.state.registry, names, 3, &next, INT64_MAX);
    ck_assert_uint_eq(n_seen(), 2);
    end();
}
END_TEST

START_TEST(all_are_taken_up_where_the_time_was_over)
{
    begin();
    phases_look(&phases, &house.state.registry, OVER);
    ck_assert_uint_gt(n_seen(), 0);
    ck_assert_uint_lt(n_seen(), SEGMENTS);
    for (unsigned i = 0; i < SEGMENTS; i++)
        phases_look(&phases, &house.state.registry, OVER);
    ck_assert_uint_eq(n_seen(), SEGMENTS);
    end();
}
END_TEST

UNIT_MAIN("phases", UNIT_TEST(names_are_taken_up_where_the_time_was_over),
          UNIT_TEST(all_are_taken_up_where_the_time_was_over))
