/* SPDX-License-Identifier: Apache-2.0 */
/* Checks quota.c: charges are refunded, refusals have figures, and requests keep to their rate. */
#include "daemon/rights/quota.h"

#include <errno.h>

#include "unit/house.h"

static struct config *config;
static struct quota quota;

static void begin(void)
{
    config = config_new();
    quota_init(&quota, &config->limits);
}

static void end(void)
{
    quota_deinit(&quota);
    config_free(config);
}

static struct quota_user *charge(uid_t uid, enum quota_kind kind, uint64_t n)
{
    struct quota_user *u;
    struct quota_excess e;
    ck_assert_int_eq(quota_charge(&quota, uid, false, kind, n, &u, &e), 0);
    return u;
}

static void refuses(uid_t uid, bool is_admin, enum quota_kind kind, uint64_t n, uint64_t used,
                    uint64_t limit, bool of_all)
{
    struct quota_user *u = NULL;
    struct quota_excess e;
    ck_assert_int_eq(quota_charge(&quota, uid, is_admin, kind, n, &u, &e), -EDQUOT);
    ck_assert_ptr_null(u);
    ck_assert_uint_eq(e.asked, n);
    ck_assert_uint_eq(e.used, used);
    ck_assert_uint_eq(e.limit, limit);
    ck_assert_int_eq(e.of_all, of_all);
}

START_TEST(each_and_all)
{
    begin();
    config->limits.user.bytes = 100;
    config->limits.total.bytes = 150;
    struct quota_user *one = charge(1, QUOTA_BYTES, 100);
    refuses(1, false, QUOTA_BYTES, 1, 100, 100, false);
    refuses(1, true, QUOTA_BYTES, 51, 100, 150, true); /* an administrator: totals only */
    refuses(2, false, QUOTA_BYTES, 101, 0, 100, false);
    refuses(2, false, QUOTA_BYTES, 51, 100, 150, true);
    refuses(2, false, QUOTA_BYTES, UINT64_MAX, 0, 100, false);
    struct quota_user *two = charge(2, QUOTA_BYTES, 50);
    charge(2, QUOTA_SEGMENTS, 1000); /* of another kind */
    quota_refund(one, QUOTA_BYTES, 100);
    ck_assert_uint_eq(quota.used[QUOTA_BYTES], 50);
    quota_refund(two, QUOTA_BYTES, 50);
    quota_refund(two, QUOTA_SEGMENTS, 1000);
    ck_assert_uint_eq(quota.used[QUOTA_BYTES], 0);
    quota_refund(NULL, QUOTA_BYTES, 1);
    end();
}
END_TEST

START_TEST(usage_of_one_and_of_all)
{
    begin();
    config->limits.user.segments = 5;
    config->limits.total.segments = 50;
    charge(1, QUOTA_SEGMENTS, 2);
    charge(2, QUOTA_SEGMENTS, 3);
    struct quota_usage u = quota_usage(&quota, 1, false, QUOTA_SEGMENTS);
    ck_assert_str_eq(u.what, "segments");
    ck_assert_uint_eq(u.used, 2);
    ck_assert_uint_eq(u.limit, 5);
    ck_assert_uint_eq(u.total_used, 5);
    ck_assert_uint_eq(u.total_limit, 50);
    u = quota_usage(&quota, 3, true, QUOTA_SEGMENTS); /* an administrator without charges */
    ck_assert_uint_eq(u.used, 0);
    ck_assert(u.limit == QUOTA_UNLIMITED);
    ck_assert_uint_eq(u.total_limit, 50);
    ck_assert(quota_usage(&quota, 1, false, QUOTA_BYTES).limit == QUOTA_UNLIMITED);
    end();
}
END_TEST

/* Without a configuration no user alone can fill the registry. */
START_TEST(layouts_have_a_limit)
{
    const uint64_t most = CONFIG_LAYOUT_BYTES;
    begin();
    struct quota_user *one = charge(1, QUOTA_LAYOUT_BYTES, most);
    refuses(1, false, QUOTA_LAYOUT_BYTES, 1, most, most, false);
    quota_refund(charge(2, QUOTA_LAYOUT_BYTES, most), QUOTA_LAYOUT_BYTES, most);
    quota_refund(one, QUOTA_LAYOUT_BYTES, most);
    ck_assert(quota_usage(&quota, 1, true, QUOTA_LAYOUT_BYTES).limit == QUOTA_UNLIMITED);
    ck_assert(quota_usage(&quota, 1, false, QUOTA_LAYOUT_BYTES).total_limit == QUOTA_UNLIMITED);
    end();
}
END_TEST

/* Charges from before a limit was set stay and count. */
START_TEST(restored_whatever_the_limit)
{
    begin();
    config->limits.user.segments = 1;
    struct quota_user *u = quota_restore(&quota, 7, QUOTA_SEGMENTS, 5);
    refuses(7, false, QUOTA_SEGMENTS, 1, 5, 1, false);
    quota_refund(u, QUOTA_SEGMENTS, 5);
    quota_refund(charge(7, QUOTA_SEGMENTS, 1), QUOTA_SEGMENTS, 1);
    end();
}
END_TEST

/* A user without charges is forgotten at some time, one with charges never. */
START_TEST(many_users)
{
    begin();
    struct quota_user *one = charge(1, QUOTA_BYTES, 1);
    for (uid_t uid = 2; uid < 10000; uid++)
        quota_refund(charge(uid, QUOTA_BYTES, 1), QUOTA_BYTES, 1);
    ck_assert_uint_lt(quota.users.n, 1000);
    ck_assert_ptr_eq(charge(1, QUOTA_BYTES, 1), one);
    ck_assert_uint_eq(one->used[QUOTA_BYTES], 2);
    end();
}
END_TEST

/* A user above the request rate does not get a new burst by leaving. */
START_TEST(forgotten_once_he_has_waited)
{
    begin();
    config->limits.user.requests_per_second = 1;
    config->limits.user.burst = 1;
    struct quota_user *u = charge(1, QUOTA_CONNECTIONS, 1);
    int64_t ahead = now_ns() + INT64_C(3600) * 1000000000;
    ck_assert_int_eq(quota_request(u, false, ahead), 0);
    quota_refund(u, QUOTA_CONNECTIONS, 1);
    for (uid_t uid = 2; uid < 1000; uid++)
        quota_refund(charge(uid, QUOTA_BYTES, 1), QUOTA_BYTES, 1);
    u = charge(1, QUOTA_CONNECTIONS, 1);
    ck_assert_int_gt(quota_request(u, false, ahead), 0);
    end();
}
END_TEST

START_TEST(requests_at_a_rate)
{
    const int64_t second = 1000000000;
    begin();
    struct quota_user *u = charge(1, QUOTA_CONNECTIONS, 1);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(quota_request(u, false, second), 0);
    config->limits.user.requests_per_second = 10;
    config->limits.user.burst = 3;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(quota_request(u, false, 5 * second), 0);
    ck_assert_int_eq(quota_request(u, false, 5 * second), second / 10);
    ck_assert_int_eq(quota_request(u, false, 5 * second + 1), second / 10 - 1);
    ck_assert_int_eq(quota_request(u, true, 5 * second), 0); /* an administrator */
    ck_assert_int_eq(quota_request(u, false, 5 * second + second / 10), 0);
    ck_assert_int_gt(quota_request(u, false, 5 * second + second / 10), 0);
    for (int i = 0; i < 3; i++) /* a pause restores the burst and nothing beyond it */
        ck_assert_int_eq(quota_request(u, false, 100 * second), 0);
    ck_assert_int_gt(quota_request(u, false, 100 * second), 0);
    end();
}
END_TEST

static void refuses_share(uid_t uid, uint64_t most, uint64_t used, uint64_t limit, uint64_t kept)
{
    struct quota_user *u = NULL;
    struct quota_excess e;
    ck_assert_int_eq(quota_charge_share(&quota, uid, false, QUOTA_CONNECTIONS, most, &u, &e),
                     -EDQUOT);
    ck_assert_ptr_null(u);
    ck_assert_uint_eq(e.asked, 1);
    ck_assert_uint_eq(e.used, used);
    ck_assert_uint_eq(e.limit, limit);
    ck_assert_uint_eq(e.kept, kept);
    ck_assert_int_eq(e.of_all, kept == 0);
}

static void charge_share(uid_t uid, uint64_t most)
{
    struct quota_user *u = NULL;
    struct quota_excess e;
    ck_assert_int_eq(quota_charge_share(&quota, uid, false, QUOTA_CONNECTIONS, most, &u, &e), 0);
    ck_assert_uint_eq(u->uid, uid);
}

/* Of 16, the last 2 are kept for users who have fewer than are left. */
START_TEST(the_last_of_a_shared_kind)
{
    begin();
    for (int i = 0; i < 14; i++)
        charge_share(1, 16);
    refuses_share(1, 16, 14, 14, 2);
    charge_share(2, 16);
    refuses_share(2, 16, 1, 1, 1);
    charge_share(3, 16);
    refuses_share(4, 16, 16, 16, 0);
    refuses_share(4, 10, 16, 10, 0); /* fewer than are in use, after a reload */
    ck_assert_uint_eq(quota.used[QUOTA_CONNECTIONS], 16); /* refusals are refunded */
    config->limits.user.connections = 1;
    struct quota_user *u;
    struct quota_excess e;
    ck_assert_int_eq(quota_charge_share(&quota, 3, false, QUOTA_CONNECTIONS, 100, &u, &e), -EDQUOT);
    ck_assert_uint_eq(e.limit, 1);
    end();
}
END_TEST

/* A rate without a burst has that of a second; no rate or burst is too large to count with. */
START_TEST(rates_without_a_burst)
{
    const int64_t second = 1000000000;
    begin();
    struct quota_user *u = charge(1, QUOTA_CONNECTIONS, 1);
    config->limits.user.requests_per_second = 4;
    config->limits.user.burst = QUOTA_UNLIMITED;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(quota_request(u, false, second), 0);
    ck_assert_int_eq(quota_request(u, false, second), second / 4);
    config->limits.user.burst = QUOTA_UNLIMITED - 1;
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(quota_request(u, false, 100 * second), 0);
    config->limits.user.requests_per_second = 5 * (uint64_t)second;
    config->limits.user.burst = 2;
    ck_assert_int_eq(quota_request(u, false, 1000 * second), 0);
    ck_assert_int_eq(quota_request(u, false, 1000 * second), 0);
    ck_assert_int_eq(quota_request(u, false, 1000 * second), 1);
    end();
}
END_TEST

/* A user does not wait for a burst at the rate that held when it was sent. */
START_TEST(a_rate_is_raised)
{
    const int64_t second = 1000000000;
    begin();
    struct quota_user *u = charge(1, QUOTA_CONNECTIONS, 1);
    struct quota_limit *limits[] = {&config->limits.user, &config->limits.total};
    for (int i = 0; i < 2; i++) { /* the user's own rate, and that of all */
        int64_t now = 1000 * (i + 1) * second;
        *limits[i] = (struct quota_limit){.requests_per_second = 1, .burst = 100};
        for (int k = 0; k < 100; k++)
            ck_assert_int_eq(quota_request(u, false, now), 0);
        ck_assert_int_eq(quota_request(u, false, now), second);
        *limits[i] = (struct quota_limit){.requests_per_second = 1000, .burst = 10};
        ck_assert_int_eq(quota_request(u, false, now), second / 1000);
        ck_assert_int_eq(quota_request(u, false, now + second / 1000), 0);
        ck_assert_int_eq(quota_request(u, false, now + second / 1000), second / 1000);
        limits[i]->requests_per_second = QUOTA_UNLIMITED;
    }
    end();
}
END_TEST

/* By requests of a client: figures are right, and every charge is returned. */
START_TEST(of_a_client)
{
    static struct house house;
    house_open(&house);
    struct guest *g = house_admit(&house), *other = house_admit(&house);
    struct quota_limit *total = &house.state.config->limits.total; /* only totals limit root */
    total->bytes = 3 * 4096;
    total->segments = 2;
    total->attachments = 1;
    json_t *facts = house_refused(g, "Create", "{'name':'a','size':12289}", "QuotaExceeded",
                                  "16384 bytes asked for");
    ck_assert_int_eq(house_int(facts, NULL, "used"), 0);
    ck_assert_int_eq(house_int(facts, NULL, "limit"), 3 * 4096);
    house_call(g, "Create", "{'name':'a','size':4096,'access':'write','lifetime':'manual'}");
    facts = house_refused(other, "Attach", "{'name':'a','access':'peek'}", "QuotaExceeded",
                          "1 attachments asked for");
    ck_assert_int_eq(house_int(facts, NULL, "used"), 1);
    house_call(g, "Create", "{'name':'b','size':1}");
    house_refused(g, "Create", "{'name':'c','size':1}", "QuotaExceeded", "1 segments asked for");
    house_call(g, "Remove", "{'name':'b'}");
    ck_assert_uint_eq(house.state.quota.used[QUOTA_BYTES], 4096);
    house_end(g);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_ATTACHMENTS], 0);
    house_call(other, "Attach", "{'name':'a','access':'peek'}");
    house_call(other, "Remove", "{'name':'a'}");
    ck_assert_uint_eq(house.state.quota.used[QUOTA_SEGMENTS],
                      1); /* it lives while it is attached */
    house_end(other);
    for (int i = 0; i < N_QUOTA_KINDS; i++)
        ck_assert_uint_eq(house.state.quota.used[i], 0);
    house_close(&house);
}
END_TEST

UNIT_MAIN("quota", UNIT_TEST(each_and_all), UNIT_TEST(usage_of_one_and_of_all),
          UNIT_TEST(layouts_have_a_limit), UNIT_TEST(restored_whatever_the_limit),
          UNIT_TEST(many_users), UNIT_TEST(forgotten_once_he_has_waited),
          UNIT_TEST(requests_at_a_rate), UNIT_TEST(the_last_of_a_shared_kind),
          UNIT_TEST(rates_without_a_burst), UNIT_TEST(a_rate_is_raised), UNIT_TEST(of_a_client))
