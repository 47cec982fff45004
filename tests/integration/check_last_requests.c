/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a client sent before it died or hung up is carried out, although it may have to wait for
 * its turn, for its rate, or for a request before it; what the client had is not held up by that.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define MANY 300 /* more than 16 turns may take */

static struct daemon d;

struct plan {
    const char *first; /* a request, or NULL */
    int n;             /* segments s0 ... to be created by oneway requests */
    bool hangs_up;     /* else it is killed */
};

static void create(struct raw *raw, const char *name, const char *more)
{
    char text[300];
    snprintf(text, sizeof text,
             "{'method':'io.shmview.Create','oneway':true,'parameters':{'name':'%s',%s}}", name,
             more);
    ck_assert(raw_send_text(raw, text));
}

static void send_last(struct child *me, void *arg)
{
    const struct plan *plan = arg;
    struct raw raw;
    char name[16];
    raw_connect(&raw, d.socket);
    if (plan->first)
        ck_assert(raw_send_text(&raw, plan->first));
    for (int i = 0; i < plan->n; i++) {
        snprintf(name, sizeof name, "s%d", i);
        create(&raw, name, "'size':1");
    }
    if (plan->hangs_up)
        raw_close(&raw);
    child_tell(me, 1);
    child_pause(me);
}

static void follow(struct plan plan)
{
    struct child child;
    char name[16];
    child_start(&child, send_last, &plan);
    child_hear(&child, 1);
    if (!plan.hangs_up)
        child_kill(&child);
    for (int i = 0; i < plan.n; i++) {
        snprintf(name, sizeof name, "s%d", i);
        AWAIT(daemon_has_data(&d, name));
    }
    if (plan.hangs_up)
        child_kill(&child);
}

static void begin(const char *config)
{
    daemon_configure(config);
    daemon_start_configured(&d, daemon_config_path());
}

static void end(void)
{
    daemon_stop(&d);
    unlink(daemon_config_path());
}

/* Each with both ends of a client. */
static void try_both(const char *config, const char *first, int n)
{
    for (int i = 0; i < 2; i++) {
        begin(config);
        follow((struct plan){.first = first, .n = n, .hangs_up = i});
        end();
    }
}

START_TEST(more_than_one_turn)
{
    try_both("{}", NULL, MANY);
}
END_TEST

/* The first replies meet a socket that nobody reads. */
START_TEST(replies_that_nobody_hears)
{
    try_both("{}", "{'method':'io.shmview.Ping'}", 40);
}
END_TEST

START_TEST(while_their_rate_lets_them_wait)
{
    try_both("{'quotas':{'total':{'requests_per_second':20,'burst':1}}}", NULL, 8);
}
END_TEST

START_TEST(while_a_creation_goes_on)
{
    try_both("{}",
             "{'method':'io.shmview.Create','oneway':true,"
             "'parameters':{'name':'large','size':268435456}}",
             4);
}
END_TEST

static void keep_and_wait(struct child *me, void *arg)
{
    struct raw raw;
    (void)arg;
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Create", "{'name':'mine','size':1,'access':'write'}"));
    for (int i = 0; i < 40; i++)
        ck_assert(raw_send_text(&raw, "{'method':'io.shmview.Ping','oneway':true}"));
    create(&raw, "late", "'size':1");
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(attachments_do_not_wait)
{
    struct child child;
    begin("{'quotas':{'total':{'requests_per_second':8,'burst':1}}}");
    child_start(&child, keep_and_wait, NULL);
    child_hear(&child, 1);
    ck_assert(daemon_has_data(&d, "mine"));
    child_kill(&child);
    AWAIT(!daemon_has_data(&d, "mine"));
    ck_assert(!daemon_has_data(&d, "late")); /* five seconds of requests come before it */
    AWAIT(daemon_has_data(&d, "late"));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(more_than_one_turn),
        SUITE_TEST(replies_that_nobody_hears),
        SUITE_TEST(while_their_rate_lets_them_wait),
        SUITE_TEST(while_a_creation_goes_on),
        SUITE_TEST(attachments_do_not_wait),
        SUITE_END,
    };
    return suite_main("last_requests", tests);
}
