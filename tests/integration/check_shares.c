/* SPDX-License-Identifier: Apache-2.0 */
/* Things of which there are few: one user cannot take them all, so that there is one for each of
 * the others, root among them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/daemon.h"
#include "support/person.h"
#include "support/raw.h"
#include "support/suite.h"

#define MOST 1100

static struct daemon d;

static const struct person greedy = {.uid = 65533, .gid = 65533};
static const struct person calm = {.uid = 65534, .gid = 65534};

static struct raw list[MOST];

/* Asks on one connection after the other, or all on the first, until it is refused. Returns how
 * often it was not. */
static int ask(const char *call, const char *error, bool many)
{
    for (int n = 0; n < MOST; n++) {
        struct raw *raw = &list[many ? n : 0];
        if (many)
            raw_connect(raw, d.socket);
        raw_send_text(raw, call);
        char *reply = raw_receive(raw);
        ck_assert_ptr_nonnull(reply);
        bool is_error = strstr(reply, "\"error\"") != NULL;
        ck_assert_msg(!is_error || strstr(reply, error), "%s", reply);
        free(reply);
        raw_close_fds(raw);
        if (is_error)
            return n;
    }
    return MOST;
}

static void monitor(struct child *me, void *arg)
{
    (void)arg;
    child_tell(me, ask("{'method': 'io.shmview.Monitor', 'more': true}", "QuotaExceeded", true));
    child_pause(me);
}

START_TEST(monitors)
{
    struct child child[2];
    struct raw raw;
    if (!person_possible())
        return;
    daemon_start(&d);
    person_open_door(&d);
    person_start(&child[0], &greedy, monitor, NULL);
    ck_assert_int_eq(child_hear_any(&child[0]), 56); /* of 64 */
    person_start(&child[1], &calm, monitor, NULL);
    ck_assert_int_eq(child_hear_any(&child[1]), 4);
    raw_connect(&raw, d.socket);
    raw_send_text(&raw, "{'method': 'io.shmview.Monitor', 'more': true}");
    json_decref(raw_receive_success(&raw));
    raw_close(&raw);
    child_kill(&child[0]);
    person_start(&child[0], &greedy, monitor, NULL); /* what the dead had is there again */
    AWAIT(child_hear_any(&child[0]) > 40);
    child_kill(&child[0]);
    child_kill(&child[1]);
    daemon_stop(&d);
}
END_TEST

#define ATTACH_SHARED                                                                              \
    "{'method': 'io.shmview.Attach', 'parameters': {'name': 'shared', 'access': 'read'}}"

/* Of a segment that all may read. */
static void attach(struct child *me, void *arg)
{
    (void)arg;
    raw_connect(&list[0], d.socket);
    child_tell(me, ask(ATTACH_SHARED, "SlotsExhausted", false));
    child_pause(me);
}

static void create_shared(struct raw *raw)
{
    raw_connect(raw, d.socket);
    raw_do(raw, "Create", "{'name': 'shared', 'size': 1, 'lifetime': 'creator', 'mode': 438}");
}

START_TEST(slots_of_a_segment)
{
    struct child child[2];
    struct raw raw;
    if (!person_possible())
        return;
    daemon_start(&d);
    person_open_door(&d);
    create_shared(&raw);
    person_start(&child[0], &greedy, attach, NULL);
    ck_assert_int_eq(child_hear_any(&child[0]), 875); /* of 1000 */
    person_start(&child[1], &calm, attach, NULL);
    ck_assert_int_eq(child_hear_any(&child[1]), 63);
    raw_do(&raw, "Attach", "{'name': 'shared', 'access': 'write'}");
    raw_close(&raw);
    child_kill(&child[0]);
    child_kill(&child[1]);
    daemon_stop(&d);
}
END_TEST

/* Watches by all of its attachments, until it is refused. */
static void watch(struct child *me, void *arg)
{
    (void)arg;
    raw_connect(&list[0], d.socket);
    int n = 0;
    for (bool refused = false; !refused; n += !refused) {
        char parameters[64];
        json_t *p = raw_call(&list[0], "Attach", "{'name': 'shared', 'access': 'read'}");
        snprintf(parameters, sizeof parameters, "{'attachment': %lld}",
                 (long long)raw_int(p, "attachment.id"));
        json_decref(p);
        raw_close_fds(&list[0]);
        raw_send_call(&list[0], "Watch", parameters);
        char *reply = raw_receive(&list[0]);
        ck_assert_ptr_nonnull(reply);
        refused = strstr(reply, "LimitExceeded") != NULL;
        ck_assert_msg(refused || !strstr(reply, "\"error\""), "%s", reply);
        free(reply);
        raw_close_fds(&list[0]);
    }
    child_tell(me, n);
    child_pause(me);
}

/* Of one segment, and of all where the daemon has few descriptors: then 32, and not 64. */
static void expect_watches(unsigned max_descriptors, int first, int second)
{
    struct child child[3];
    struct raw raw;
    if (max_descriptors)
        daemon_start_limited(&d, max_descriptors);
    else
        daemon_start(&d);
    person_open_door(&d);
    create_shared(&raw);
    person_start(&child[0], &greedy, watch, NULL);
    ck_assert_int_eq(child_hear_any(&child[0]), first);
    person_start(&child[1], &calm, watch, NULL);
    ck_assert_int_eq(child_hear_any(&child[1]), second);
    child_start(&child[2], watch, NULL);
    ck_assert_int_ge(child_hear_any(&child[2]), 1);
    for (int i = 0; i < 3; i++)
        child_kill(&child[i]);
    raw_close(&raw);
    daemon_stop(&d);
}

START_TEST(watches)
{
    if (!person_possible())
        return;
    expect_watches(0, 56, 4);
    expect_watches(1024, 28, 2);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(monitors),
        SUITE_TEST(slots_of_a_segment),
        SUITE_TEST(watches),
        SUITE_END,
    };
    return suite_main("shares", tests);
}
