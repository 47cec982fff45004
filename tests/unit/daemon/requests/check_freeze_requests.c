/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Freeze when its reply cannot be sent. */
#include "daemon/requests/freeze.h"

#include "unit/faults.h"
#include "unit/house.h"

/* The client gets an error and asks for nothing more. So the segment must not stay reserved. */
START_TEST(a_reply_that_cannot_be_sent_begins_nothing)
{
    struct house house;
    char freeze[64];
    house_open(&house);
    struct guest *guest = house_admit(&house), *other = house_admit(&house);
    const json_t *p =
        house_call(guest, "Create", "{'name':'s','size':10,'access':'write','backing':'sealed'}");
    snprintf(freeze, sizeof freeze, "{'attachment':%d}", (int)house_int(p, "attachment", "id"));
    faults_begin_call("sendmsg", 1, ETOOMANYREFS, false);
    house_refused(guest, "Freeze", freeze, "Failed", "too many descriptors");
    ck_assert(faults_end());
    house_call(other, "Attach", "{'name':'s','access':'write'}");
    house_close(&house);
}
END_TEST

/* Until the second call nobody else can write. */
START_TEST(others_wait_for_the_end)
{
    struct house house;
    char freeze[64];
    house_open(&house);
    struct guest *guest = house_admit(&house), *other = house_admit(&house);
    const json_t *p =
        house_call(guest, "Create", "{'name':'s','size':10,'access':'write','backing':'sealed'}");
    int id = (int)house_int(p, "attachment", "id");
    snprintf(freeze, sizeof freeze, "{'attachment':%d}", id);
    house_call(guest, "Freeze", freeze);
    house_refused(other, "Attach", "{'name':'s','access':'write'}", "SegmentBusy",
                  "is being frozen");
    snprintf(freeze, sizeof freeze, "{'attachment':%d,'done':true}", id);
    house_call(guest, "Freeze", freeze);
    house_call(other, "Attach", "{'name':'s','access':'write'}");
    house_close(&house);
}
END_TEST

UNIT_MAIN("freeze_requests", UNIT_TEST(a_reply_that_cannot_be_sent_begins_nothing),
          UNIT_TEST(others_wait_for_the_end))
