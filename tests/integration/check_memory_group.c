/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon whose control group has a limit refuses segments that would reach it. Memory that a
 * client makes itself is charged to the group of that client. */
#include <stdlib.h>

#include <shmview/shmview.h>

#include "integration/memory_group.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;

static const struct shmview_create_options own = {
    .struct_bytes = sizeof own,
    .flags = SHMVIEW_OWN_MEMORY,
};

START_TEST(more_than_the_group_may_have_is_refused)
{
    if (!enter_group())
        return;
    struct raw raw;
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    raw_send_call(&raw, "Create", "{'name': 'big', 'size': 134217728}");
    json_t *p = raw_receive_error(&raw, "NoSpace", "the daemon's control group may have 100663296");
    ck_assert_int_eq(raw_int(p, "asked"), 134217728);
    ck_assert_int_eq(raw_int(p, "limit"), (json_int_t)LIMIT);
    ck_assert_int_lt(raw_int(p, "free"), (json_int_t)LIMIT);
    json_decref(p);
    unsigned n = 0;
    for (bool full = false; !full; n += !full) { /* small and large in turn */
        char parameters[128];
        snprintf(parameters, sizeof parameters, "{'name': 's%u', 'size': %u%s}", n,
                 n % 16 ? 65536 : 8 << 20,
                 n % 16 ? ", 'access': 'write', 'lifetime': 'manual'" : "");
        raw_send_call(&raw, "Create", parameters);
        char *reply = raw_receive(&raw);
        ck_assert_ptr_nonnull(reply);
        full = strstr(reply, "NoSpace") != NULL;
        ck_assert(full || !strstr(reply, "error"));
        free(reply);
        raw_close_fds(&raw);
    }
    ck_assert_uint_gt(n, 64);
    ck_assert_uint_lt(n, 192);
    raw_do(&raw, "Ping", NULL);
    raw_close(&raw);
    daemon_stop(&d);
    leave_group();
}
END_TEST

/* The daemon is in a group with less memory than the segments need. */
START_TEST(clients_pay_for_their_own_memory)
{
    struct shmview_segment *s, *t, *more;
    if (!enter_group())
        return;
    daemon_start(&d);
    step_out_of_group();
    struct shmview_connection *conn = client_connect(&d);
    REFUSED(shmview_create(conn, "s", LIMIT + 32 * MIB, NULL, &s), NO_SPACE,
            "the daemon's control group may have 100663296");
    OK(shmview_create(conn, "s", LIMIT + 32 * MIB, &own, &s));
    OK(shmview_create(conn, "t", LIMIT / 2, &own, &t));
    ck_assert_uint_lt(group_usage(), 32 * MIB);
    OK(shmview_create(conn, "more", LIMIT / 2, NULL, &more)); /* nothing of them is promised */
    ck_assert_uint_ge(group_usage(), LIMIT / 2);
    OK(shmview_detach(more));
    OK(shmview_detach(s));
    OK(shmview_detach(t));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    leave_group();
}
END_TEST

/* The client is in that group. */
START_TEST(the_group_of_the_client_is_charged)
{
    struct shmview_segment *s;
    daemon_start(&d);
    if (enter_group()) {
        struct shmview_connection *conn = client_connect(&d);
        REFUSED(shmview_create(conn, "s", LIMIT + 32 * MIB, &own, &s), NO_SPACE,
                "the control group of this process may have 100663296");
        OK(shmview_create(conn, "s", LIMIT / 2, &own, &s));
        ck_assert_uint_ge(group_usage(), LIMIT / 2);
        OK(shmview_detach(s));
        AWAIT(group_usage() < LIMIT / 2);
        OK(shmview_create(conn, "s", LIMIT + 32 * MIB, NULL, &s)); /* the daemon pays */
        ck_assert_uint_lt(group_usage(), LIMIT / 2);
        OK(shmview_detach(s));
        OK(shmview_disconnect(conn));
        leave_group();
    }
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(more_than_the_group_may_have_is_refused),
        SUITE_TEST(clients_pay_for_their_own_memory),
        SUITE_TEST(the_group_of_the_client_is_charged),
        SUITE_END,
    };
    return suite_main("memory_group", tests);
}
