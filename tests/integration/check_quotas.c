/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of several users, through the socket: what each has is charged once, refunded however
 * it ends, and known to the next daemon. Only root can be several users. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/person.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define ALICE 65533
#define BOB   65532

#define SEGMENTS    8
#define ATTACHMENTS 6
#define PAGES       64
#define PAGE        4096

#define RULES "{'quotas':{'user':{'bytes':'256KiB','segments':8,'attachments':6}"

static struct daemon d;
static struct shmview_connection *conn; /* root's */

static void begin(const char *config)
{
    daemon_configure(config);
    daemon_start_configured(&d, daemon_config_path());
    person_open_door(&d);
    conn = client_connect(&d);
    struct shmview_access_change access = {
        .struct_bytes = sizeof access, .set = SHMVIEW_SET_MODE, .mode = 0666};
    OK(shmview_detach(client_create_with(conn, "common", 1, SHMVIEW_MANUAL, SHMVIEW_NO_LOCK)));
    OK(shmview_set_access(conn, "common", &access));
}

static void end(void)
{
    OK(shmview_remove(conn, "common"));
    OK(shmview_disconnect(conn));
    AWAIT(daemon_objects(&d) == 0);
    daemon_stop(&d);
    unlink(daemon_config_path());
}

static void restart(void)
{
    daemon_restart(&d);
    person_open_door(&d);
}

static void start_as(struct child *child, uid_t uid, void (*run)(struct child *, void *), void *arg)
{
    struct person who = {.uid = uid, .gid = uid};
    person_start(child, &who, run, arg);
}

static void run_as(uid_t uid, void (*run)(struct child *, void *), void *arg)
{
    struct child child;
    start_as(&child, uid, run, arg);
    child_wait(&child);
}

/* Of all users. */
static int64_t all_attachments(void)
{
    const struct shmview_stats *stats;
    OK(shmview_stats_get(conn, NULL, &stats));
    int64_t n = stats->attachments;
    shmview_stats_free(stats);
    return n;
}

/* --- What somebody has --------------------------------------------------- */

struct used {
    unsigned segments, attachments, pages;
};

/* The daemon refuses, with exactly these figures. */
static void refuses(struct raw *raw, const char *method, const char *parameters, const char *what,
                    json_int_t asked, json_int_t used, json_int_t limit)
{
    char reason[160];
    ck_assert(raw_send_call(raw, method, parameters));
    json_t *told = raw_receive_error(raw, "QuotaExceeded", "");
    ck_assert_str_eq(json_string_value(json_object_get(told, "what")), what);
    ck_assert_int_eq(raw_int(told, "asked"), asked);
    ck_assert_int_eq(raw_int(told, "used"), used);
    ck_assert_int_eq(raw_int(told, "limit"), limit);
    snprintf(reason, sizeof reason, "%jd %s asked for; uid %u may have %jd, of which %jd are used",
             (intmax_t)asked, what, getuid(), (intmax_t)limit, (intmax_t)used);
    ck_assert_str_eq(json_string_value(json_object_get(told, "reason")), reason);
    json_decref(told);
}

static void create(struct raw *raw, const char *name, json_int_t size)
{
    char text[120];
    snprintf(text, sizeof text, "{'name':'%s','size':%jd,'lock':false}", name, (intmax_t)size);
    raw_do(raw, "Create", text);
}

static json_int_t attach(struct raw *raw, const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "{'name':'%s','access':'peek'}", name);
    json_t *told = raw_call(raw, "Attach", text);
    json_int_t id = raw_int(told, "attachment.id");
    json_decref(told);
    raw_close_fds(raw);
    return id;
}

static void check_used(struct child *me, void *arg)
{
    const struct used *u = arg;
    json_int_t ids[ATTACHMENTS];
    struct raw raw;
    char text[80];
    (void)me;
    raw_connect(&raw, d.socket);
    refuses(&raw, "Create", "{'name':'big','size':1099511627776}", "bytes", 1099511627776,
            u->pages * PAGE, PAGES * PAGE);
    for (unsigned i = u->segments; i < SEGMENTS; i++) {
        snprintf(text, sizeof text, "probe%u", i);
        create(&raw, text, 1);
    }
    refuses(&raw, "Create", "{'name':'more','size':1}", "segments", 1, SEGMENTS, SEGMENTS);
    for (unsigned i = u->segments; i < SEGMENTS; i++) {
        snprintf(text, sizeof text, "{'name':'probe%u'}", i);
        raw_do(&raw, "Remove", text);
    }
    for (unsigned i = u->attachments; i < ATTACHMENTS; i++)
        ids[i] = attach(&raw, "common");
    refuses(&raw, "Attach", "{'name':'common','access':'peek'}", "attachments", 1, ATTACHMENTS,
            ATTACHMENTS);
    for (unsigned i = u->attachments; i < ATTACHMENTS; i++) {
        snprintf(text, sizeof text, "{'attachment':%jd}", (intmax_t)ids[i]);
        raw_do(&raw, "Detach", text);
    }
    raw_close(&raw);
}

static void expect_used(uid_t uid, unsigned segments, unsigned attachments, unsigned pages)
{
    struct used used = {segments, attachments, pages};
    run_as(uid, check_used, &used);
}

/* --- Charging and refunding ---------------------------------------------- */

/* Makes two segments and attaches three times. */
static void have_some(struct child *me, void *arg)
{
    struct raw raw;
    (void)arg;
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create",
           "{'name':'kept','size':4097,'lock':false,'access':'peek','lifetime':'manual'}");
    raw_do(&raw, "Create", "{'name':'hers','size':1,'lifetime':'creator'}");
    raw_close_fds(&raw);
    attach(&raw, "common");
    attach(&raw, "common");
    child_tell(me, 1);
    child_pause(me);
    raw_close(&raw);
    child_tell(me, 2);
    child_pause(me);
}

START_TEST(each_has_his_own)
{
    struct child alice;
    begin(RULES "}}");
    start_as(&alice, ALICE, have_some, NULL);
    child_hear(&alice, 1);
    expect_used(ALICE, 2, 3, 3);
    expect_used(BOB, 0, 0, 0);
    /* root may have what there is */
    OK(shmview_detach(client_create(conn, "root", (PAGES + 1) * PAGE)));
    child_cue(&alice); /* hangs up */
    child_hear(&alice, 2);
    AWAIT(all_attachments() == 0);
    expect_used(ALICE, 1, 0, 2);
    child_cue(&alice);
    child_wait(&alice);
    OK(shmview_remove(conn, "kept"));
    expect_used(ALICE, 0, 0, 0);
    end();
}
END_TEST

START_TEST(refunded_when_it_dies)
{
    struct child alice;
    begin(RULES "}}");
    start_as(&alice, ALICE, have_some, NULL);
    child_hear(&alice, 1);
    child_kill(&alice);
    AWAIT(all_attachments() == 0);
    expect_used(ALICE, 1, 0, 2);
    OK(shmview_remove(conn, "kept"));
    expect_used(ALICE, 0, 0, 0);
    end();
}
END_TEST

START_TEST(known_to_the_next_daemon)
{
    struct child alice;
    begin(RULES "}}");
    start_as(&alice, ALICE, have_some, NULL);
    child_hear(&alice, 1);
    for (int i = 0; i < 2; i++) {
        daemon_kill(&d);
        restart();
        expect_used(ALICE, 2, 3, 3);
        expect_used(BOB, 0, 0, 0);
    }
    daemon_kill(&d);
    child_kill(&alice); /* nobody sees it */
    restart();
    AWAIT(all_attachments() == 0);
    expect_used(ALICE, 1, 0, 2);
    daemon_kill(&d);
    restart();
    OK(shmview_remove(conn, "kept"));
    expect_used(ALICE, 0, 0, 0);
    end();
}
END_TEST

static void make_manual(struct child *me, void *arg)
{
    struct raw raw;
    (void)me;
    raw_connect(&raw, d.socket);
    create(&raw, arg, 3 * PAGE);
    raw_close(&raw);
}

/* Its bytes are there as long as anybody has them. */
START_TEST(removed_while_attached)
{
    begin(RULES "}}");
    run_as(ALICE, make_manual, "s");
    struct shmview_segment *s = client_attach(conn, "s", SHMVIEW_PEEK);
    OK(shmview_remove(conn, "s"));
    expect_used(ALICE, 1, 0, 3);
    daemon_kill(&d);
    restart();
    expect_used(ALICE, 1, 0, 3);
    OK(shmview_detach(s));
    expect_used(ALICE, 0, 0, 0);
    end();
}
END_TEST

START_TEST(moved_with_the_owner)
{
    struct shmview_access_change to_bob = {
        .struct_bytes = sizeof to_bob, .set = SHMVIEW_SET_OWNER, .owner = BOB};
    begin(RULES "}}");
    run_as(ALICE, make_manual, "s");
    OK(shmview_set_access(conn, "s", &to_bob));
    expect_used(ALICE, 0, 0, 0);
    expect_used(BOB, 1, 0, 3);
    daemon_kill(&d);
    restart();
    expect_used(ALICE, 0, 0, 0);
    expect_used(BOB, 1, 0, 3);
    /* the segment beyond the new owner's quota stays with its old owner */
    char name[16];
    for (int i = 1; i < SEGMENTS; i++) {
        snprintf(name, sizeof name, "b%d", i);
        run_as(BOB, make_manual, name);
    }
    run_as(ALICE, make_manual, "t");
    REFUSED(shmview_set_access(conn, "t", &to_bob), QUOTA, "uid 65532 may have 8");
    expect_used(ALICE, 1, 0, 3);
    for (int i = 1; i < SEGMENTS; i++) {
        snprintf(name, sizeof name, "b%d", i);
        OK(shmview_remove(conn, name));
    }
    expect_used(BOB, 1, 0, 3);
    OK(shmview_remove(conn, "s"));
    OK(shmview_remove(conn, "t"));
    end();
}
END_TEST

static void define_too_much(struct child *me, void *arg)
{
    struct raw raw;
    (void)me;
    (void)arg;
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", "{'name':'s','size':1,'access':'write','lifetime':'manual'}");
    raw_close_fds(&raw);
    raw_do(&raw, "DefineLayout", "{'name':'s','layout':{'name':'l','views':[]}}");
    refuses(&raw, "DefineLayout", "{'name':'s','layout':{'name':'m','views':[]}}", "layout_bytes",
            24, 24, 40);
    raw_close(&raw);
}

/* The next daemon counts them, and gives up none that is more than it allows. */
START_TEST(layouts_are_known_to_the_next_daemon)
{
    begin("{'quotas':{'user':{'layout_bytes':40}}}");
    run_as(ALICE, define_too_much, NULL);
    daemon_kill(&d);
    daemon_configure("{'quotas':{'user':{'layout_bytes':1},'total':{'layout_bytes':1}}}");
    restart();
    const struct shmview_stats *stats;
    struct shmview_stats_options all = {.struct_bytes = sizeof all, .limit = SHMVIEW_STATS_ALL};
    OK(shmview_stats_get(conn, &all, &stats));
    ck_assert_int_eq(stats->quotas[4]->total_used, 24);
    ck_assert_int_eq(stats->quotas[4]->total_limit, 1);
    ck_assert_uint_eq(stats->n_segments, 2);
    ck_assert_str_eq(stats->segments[1]->name, "s");
    ck_assert_int_eq(stats->segments[1]->layouts, 1);
    shmview_stats_free(stats);
    OK(shmview_remove(conn, "s"));
    OK(shmview_stats_get(conn, NULL, &stats));
    ck_assert_int_eq(stats->quotas[4]->total_used, 0);
    shmview_stats_free(stats);
    end();
}
END_TEST

/* --- All together -------------------------------------------------------- */

static void refused_by_the_total(struct child *me, void *arg)
{
    struct raw raw;
    (void)me;
    (void)arg;
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", "{'name':'x','size':1}", "QuotaExceeded",
                "1 segments asked for; all users together may have 3, of which 3 are used");
    raw_close(&raw);
}

START_TEST(all_together)
{
    struct shmview_segment *s;
    begin(RULES ",'total':{'segments':3}}}"); /* one is "common" */
    run_as(ALICE, make_manual, "a");
    run_as(BOB, make_manual, "b");
    run_as(ALICE, refused_by_the_total, NULL);
    run_as(BOB, refused_by_the_total, NULL);
    REFUSED(shmview_create(conn, "x", 1, NULL, &s), QUOTA, "all users together"); /* root too */
    OK(shmview_remove(conn, "a"));
    run_as(BOB, make_manual, "c");
    run_as(ALICE, refused_by_the_total, NULL);
    OK(shmview_remove(conn, "b"));
    OK(shmview_remove(conn, "c"));
    end();
}
END_TEST

/* --- A configuration that is read again ---------------------------------- */

static void has_more_than_he_may(struct child *me, void *arg)
{
    struct raw raw;
    (void)arg;
    raw_connect(&raw, d.socket);
    create(&raw, "one", 1);
    create(&raw, "two", 1);
    json_int_t id = attach(&raw, "common");
    attach(&raw, "common");
    char text[80];
    child_tell(me, 1);
    child_pause(me); /* now one of each is allowed */
    refuses(&raw, "Create", "{'name':'three','size':1}", "segments", 1, 2, 1);
    refuses(&raw, "Attach", "{'name':'common','access':'peek'}", "attachments", 1, 2, 1);
    json_t *told = raw_call(&raw, "Describe", "{'name':'two'}");
    ck_assert_int_eq(raw_int(told, "segment.owner"), getuid());
    json_decref(told);
    raw_do(&raw, "Remove", "{'name':'two'}");
    snprintf(text, sizeof text, "{'attachment':%jd}", (intmax_t)id);
    raw_do(&raw, "Detach", text);
    refuses(&raw, "Create", "{'name':'three','size':1}", "segments", 1, 1, 1);
    refuses(&raw, "Attach", "{'name':'common','access':'peek'}", "attachments", 1, 1, 1);
    raw_do(&raw, "Remove", "{'name':'one'}");
    create(&raw, "three", 1);
    child_tell(me, 2);
    child_pause(me); /* the limits are lifted now */
    create(&raw, "four", 1);
    attach(&raw, "common");
    raw_do(&raw, "Remove", "{'name':'three'}");
    raw_do(&raw, "Remove", "{'name':'four'}");
    raw_close(&raw);
}

START_TEST(other_limits_take_nothing_away)
{
    struct child bob;
    begin("{}");
    start_as(&bob, BOB, has_more_than_he_may, NULL);
    child_hear(&bob, 1);
    daemon_configure("{'quotas':{'user':{'segments':1,'attachments':1}}}");
    daemon_reload(&d);
    child_cue(&bob);
    child_hear(&bob, 2);
    daemon_configure("{}");
    daemon_reload(&d);
    child_cue(&bob);
    child_wait(&bob);
    end();
}
END_TEST

/* Requests statistics as the user of this process. Returns the quota of attachments. */
static struct shmview_quota_stats told_quota(struct shmview_connection *c, bool tells_totals)
{
    const struct shmview_stats *stats;
    OK(shmview_stats_get(c, NULL, &stats));
    ck_assert_uint_eq(stats->n_quotas, 5);
    ck_assert_str_eq(stats->quotas[0]->what, "bytes");
    ck_assert_str_eq(stats->quotas[2]->what, "attachments");
    ck_assert_str_eq(stats->quotas[4]->what, "layout_bytes");
    struct shmview_quota_stats q = *stats->quotas[2];
    ck_assert_int_eq(stats->pid, d.pid);
    ck_assert_int_gt(stats->memory_free, 0);
    ck_assert_int_ge(stats->memory_limit, stats->memory_free);
    ck_assert_int_eq(stats->max_connections > 0, tells_totals);
    shmview_stats_free(stats);
    return q;
}

static void sees_own_usage(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *a = client_attach(c, "common", SHMVIEW_WRITE);
    struct shmview_quota_stats q = told_quota(c, false);
    ck_assert_int_eq(q.used, 1);
    ck_assert_int_eq(q.limit, 6);
    ck_assert_int_eq(q.total_used, -1); /* totals are for administrators only */
    ck_assert_int_eq(q.total_limit, -1);
    OK(shmview_detach(a));
    OK(shmview_disconnect(c));
}

START_TEST(usage_is_told)
{
    begin(RULES ",'total':{'attachments':60}}}");
    struct shmview_segment *a = client_attach(conn, "common", SHMVIEW_WRITE);
    run_as(ALICE, sees_own_usage, NULL);
    struct shmview_quota_stats q = told_quota(conn, true);
    ck_assert_int_eq(q.used, 1);
    ck_assert_int_eq(q.limit, -1); /* root has no limit */
    ck_assert_int_eq(q.total_used, 1);
    ck_assert_int_eq(q.total_limit, 60);
    OK(shmview_detach(a));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(each_has_his_own),
        SUITE_TEST(refunded_when_it_dies),
        SUITE_TEST(known_to_the_next_daemon),
        SUITE_TEST(removed_while_attached),
        SUITE_TEST(moved_with_the_owner),
        SUITE_TEST(layouts_are_known_to_the_next_daemon),
        SUITE_TEST(all_together),
        SUITE_TEST(other_limits_take_nothing_away),
        SUITE_TEST(usage_is_told),
        SUITE_END,
    };
    if (!person_possible())
        return 77;
    return suite_main("quotas", tests);
}
