/* SPDX-License-Identifier: Apache-2.0 */
/* Checks monitor.c: when monitors receive their events. */
#include "daemon/requests/monitor.h"

#include "unit/house.h"

static struct house house;

static bool has_something(const struct guest *g)
{
    char byte;
    return recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* The daemon has used its share of the time, and the rest is for quick connections. */
START_TEST(telling_takes_turns)
{
    house_open(&house);
    struct guest *doer = house_admit(&house), *hearer = house_admit(&house);
    house_send(hearer, "{'method':'io.shmview.Monitor','parameters':{},'more':true}");
    house_receive(hearer);
    house.turns.own.share_until_ns = INT64_MAX / 2;
    house.turns.quick_open.last = doer;
    house.turns.quick_open.last_ns = INT64_MAX / 2;
    alarm_set(&house.turns.resting, 1000000, 0);
    house_call(doer, "Create", "{'name':'a','size':1,'access':'write'}");
    for (int i = 0; i < 10; i++)
        house_run(&house);
    ck_assert(!has_something(hearer));
    alarm_set(&house.turns.resting, 0, 0);
    unit_assert_holds(house_receive(hearer), "created");
    unit_assert_holds(house_receive(hearer), "attached");
    house_close(&house);
}
END_TEST

UNIT_MAIN("monitor_turns", UNIT_TEST(telling_takes_turns))
