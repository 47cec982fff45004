/* SPDX-License-Identifier: Apache-2.0 */
/* Events, figures and lists that the daemon reports to the owner, others and
 * administrators, as configured. Only root can be several users. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/monitor.h>
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
#define CAROL 65530
#define STAFF 65531 /* a group, CAROL's: of administrators */

static struct daemon d;
static struct shmview_connection *conn; /* root's */

static void begin(const char *config)
{
    daemon_configure(config);
    daemon_start_configured(&d, daemon_config_path());
    person_open_door(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    unlink(daemon_config_path());
}

static void start_as(struct child *child, uid_t uid, void (*run)(struct child *, void *), void *arg)
{
    struct person who = {.uid = uid, .gid = uid, .groups = {STAFF}, .n_groups = uid == CAROL};
    person_start(child, &who, run, arg);
}

static void run_as(uid_t uid, void (*run)(struct child *, void *), void *arg)
{
    struct child child;
    start_as(&child, uid, run, arg);
    child_wait(&child);
}

static void set_mode(const char *name, uint32_t mode)
{
    struct shmview_access_change change = {
        .struct_bytes = sizeof change, .set = SHMVIEW_SET_MODE, .mode = mode};
    OK(shmview_set_access(conn, name, &change));
}

static void make(struct child *me, void *name)
{
    struct raw raw;
    char text[80];
    (void)me;
    snprintf(text, sizeof text, "{'name':'%s','size':5000}", (const char *)name);
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", text);
    raw_close(&raw);
}

static void may_not_create(struct child *me, void *arg)
{
    struct raw raw;
    char part[64];
    (void)me;
    (void)arg;
    snprintf(part, sizeof part, "uid %u may not create segments here", getuid());
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", "{'name':'s','size':1}", "org.varlink.service.PermissionDenied",
                part);
    raw_refused(&raw, "Create", "{'name':'','size':1}", "org.varlink.service.PermissionDenied",
                part);
    raw_close(&raw);
}

/* --- Events -------------------------------------------------------------- */

/* Tells once it listens; then hears exactly this, up to what is of segment "end". */
static void listen_for(struct child *me, void *arg)
{
    const struct shmview_event *e;
    struct shmview_monitor *m;
    char heard[500] = "", *at = heard;
    struct shmview_connection *c = client_connect(&d);
    OK(shmview_monitor_open(c, NULL, &m));
    OK(shmview_monitor_next(m, 0, &e));
    child_tell(me, 1);
    do {
        OK(shmview_monitor_next(m, shmview_deadline(AWAIT_NS), &e));
        at += snprintf(at, (size_t)(heard + sizeof heard - at), "%s %s%s by %d; ",
                       shmview_event_kind_name((int)e->kind), e->segment,
                       e->kind == SHMVIEW_EVENT_QUOTA ? "!" : "", (int)e->uid);
    } while (strcmp(e->segment, "end") != 0);
    ck_assert_str_eq(heard, arg);
    OK(shmview_monitor_close(m));
    OK(shmview_disconnect(c));
}

static void asks_for_too_much(struct child *me, void *arg)
{
    struct raw raw;
    (void)me;
    (void)arg;
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", "{'name':'big','size':1048577}", "QuotaExceeded", "1052672 bytes");
    raw_close(&raw);
}

START_TEST(events)
{
    /* root does what is done by 0; "end" is everybody's */
    static char *const heard[] = {
        [0] = "created a by 65533; access_changed a by 0; access_changed a by 0; "
              "quota_refused ! by 65533; removed a by 0; access_changed end by 0; ",
        [1] = "access_changed a by 0; access_changed end by 0; ",
    };
    struct child alice, bob, carol;
    begin("{'admin_group':'65531','quotas':{'user':{'bytes':'1MiB'}}}");
    OK(shmview_detach(client_create_with(conn, "end", 1, SHMVIEW_MANUAL, 0)));
    start_as(&alice, ALICE, listen_for, heard[0]);
    start_as(&bob, BOB, listen_for, heard[1]);
    start_as(&carol, CAROL, listen_for, heard[0]);
    child_hear(&alice, 1);
    child_hear(&bob, 1);
    child_hear(&carol, 1);
    run_as(ALICE, make, "a");
    set_mode("a", 0604);
    set_mode("a", 0600); /* others cannot attach it any longer */
    run_as(ALICE, asks_for_too_much, NULL);
    OK(shmview_remove(conn, "a"));
    set_mode("end", 0666);
    child_wait(&alice);
    child_wait(&bob);
    child_wait(&carol);
    ck_assert(daemon_said(&d, "is refused: 1052672 bytes asked for; uid 65533 may have 1048576"));
    OK(shmview_remove(conn, "end"));
    end();
}
END_TEST

/* --- Figures ------------------------------------------------------------- */

/* Numbers are asked for by somebody who is to see that many segments, and totals or not. */
struct sight {
    int segments;
    bool totals;
};

/* What all users together have is told to who may know: all of it or nothing. */
static void check_totals(const json_t *instance, bool told)
{
    static const char *const totals[] = {
        "starts",         "connections",   "segments",        "attachments",    "allocated_bytes",
        "removed_bytes",  "total_created", "total_attached",  "total_died",     "total_owner_died",
        "total_requests", "total_lost",    "max_connections", "total_repaired",
    };
    size_t i;
    const json_t *quota;
    for (size_t k = 0; k < sizeof totals / sizeof totals[0]; k++)
        ck_assert_msg(!json_object_get(instance, totals[k]) == !told, "%s", totals[k]);
    json_array_foreach (json_object_get(instance, "quotas"), i, quota)
        ck_assert_int_eq(!json_object_get(quota, "total_used"), !told);
    ck_assert_uint_gt(i, 0);
}

static void look(struct child *me, void *arg)
{
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    const struct sight *sight = arg;
    const struct shmview_stats *s;
    struct shmview_connection *c = client_connect(&d);
    struct raw raw;
    (void)me;
    OK(shmview_stats_get(c, &o, &s));
    ck_assert_uint_eq(s->n_segments, (size_t)sight->segments);
    ck_assert_int_eq(s->n_all_segments, sight->totals ? 2 : -1);
    ck_assert_int_eq(s->allocated_bytes, sight->totals ? 10000 : -1);
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Stats", NULL);
    check_totals(json_object_get(told, "instance"), sight->totals);
    json_decref(told);
    told = raw_call(&raw, "List", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(told, "segments")), (size_t)sight->segments);
    json_decref(told);
    raw_close(&raw);
    shmview_stats_free(s);
    OK(shmview_disconnect(c));
}

START_TEST(figures)
{
    begin("{'admin_group':'65531'}");
    run_as(ALICE, make, "a");
    run_as(BOB, make, "b");
    run_as(ALICE, look, &(struct sight){1, false});
    run_as(CAROL, look, &(struct sight){2, true});
    run_as(0, look, &(struct sight){2, true});
    set_mode("a", 0640);
    run_as(BOB, look, &(struct sight){1, false});
    set_mode("a", 0604);
    run_as(BOB, look, &(struct sight){2, false});
    daemon_configure("{}"); /* she is no longer an administrator, and sees what others see */
    daemon_reload(&d);
    run_as(CAROL, look, &(struct sight){1, false});
    daemon_configure("{'admin_group':'65531'}");
    daemon_reload(&d);
    run_as(CAROL, look, &(struct sight){2, true});
    OK(shmview_remove(conn, "a"));
    OK(shmview_remove(conn, "b"));
    end();
}
END_TEST

/* Fails the test unless List, Describe and Stats all report these values for segment "s". */
static void assert_told(json_int_t owner, json_int_t group, json_int_t mode, const char *acl)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    json_t *list = raw_call(&raw, "List", NULL);
    json_t *described = raw_call(&raw, "Describe", "{'name':'s'}");
    json_t *stats = raw_call(&raw, "Stats", "{'names':['s']}");
    const json_t *told[] = {
        json_array_get(json_object_get(list, "segments"), 0),
        json_object_get(described, "segment"),
        json_array_get(json_object_get(stats, "segments"), 0),
    };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(raw_int(told[i], "owner"), owner);
        ck_assert_int_eq(raw_int(told[i], "group"), group);
        ck_assert_int_eq(raw_int(told[i], "mode"), mode);
    }
    ck_assert(json_equal(told[0], told[1]));
    char *text = json_dumps(json_object_get(told[0], "acl"), JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(text, acl);
    free(text);
    json_decref(list);
    json_decref(described);
    json_decref(stats);
    raw_close(&raw);
}

static void assert_public(int64_t owner, int64_t group, uint32_t mode)
{
    const char *const name = "s";
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = &name, .n_names = 1};
    const struct shmview_stats *s;
    OK(shmview_stats_get(conn, &o, &s));
    ck_assert_uint_eq(s->n_segments, 1);
    ck_assert_int_eq(s->segments[0]->owner, owner);
    ck_assert_int_eq(s->segments[0]->group, group);
    ck_assert_uint_eq(s->segments[0]->mode, mode);
    shmview_stats_free(s);
}

/* --- What is declared ---------------------------------------------------- */

#define DECLARED                                                                                   \
    "{'segments':[{'name':'s','size':10000,'owner':'65533','group':'65531','mode':'0640',"         \
    "'acl':['user:65532:rw','group:65530:r']}]}"
#define DECLARED_ACL "[{\"right\":\"write\",\"user\":65532},{\"group\":65530,\"right\":\"read\"}]"

static void has(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s;
    const char *rights = arg;
    (void)me;
    if (strchr(rights, 'r'))
        OK(shmview_detach(client_attach(c, "s", SHMVIEW_READ)));
    else
        REFUSED(shmview_attach(c, "s", SHMVIEW_PEEK, 0, &s), NOT_FOUND, "no segment");
    if (strchr(rights, 'w'))
        OK(shmview_detach(client_attach(c, "s", SHMVIEW_WRITE)));
    else if (*rights)
        REFUSED(shmview_attach(c, "s", SHMVIEW_WRITE, 0, &s), DENIED, "");
    OK(shmview_disconnect(c));
}

START_TEST(declared)
{
    begin(DECLARED);
    for (int i = 0; i < 2; i++) {
        assert_told(ALICE, STAFF, 0640, DECLARED_ACL);
        assert_public(ALICE, STAFF, 0640);
        run_as(ALICE, has, "rw");
        run_as(BOB, has, "rw");
        run_as(CAROL, has, "r");
        run_as(STAFF, has, "r");
        run_as(65529, has, "");
        daemon_kill(&d);
        daemon_restart(&d);
        person_open_door(&d);
    }
    ck_assert(!daemon_said(&d, "declares it otherwise"));
    end();
}
END_TEST

START_TEST(declared_otherwise)
{
    begin(DECLARED);
    daemon_configure(
        "{'segments':[{'name':'s','size':10000,'owner':'65532','group':'65530','mode':'0644',"
        "'acl':['user:65532:r','group:65530:r']}]}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "c.json:1 declares it otherwise: owner 65532, not 65533"));
    ck_assert(daemon_said(&d, "c.json:1 declares it otherwise: group 65530, not 65531"));
    ck_assert(daemon_said(&d, "c.json:1 declares it otherwise: mode 0644, not 0640"));
    ck_assert(daemon_said(&d, "c.json:1 declares it otherwise: another acl"));
    assert_told(ALICE, STAFF, 0640, DECLARED_ACL);
    end();
}
END_TEST

/* The same list in another order is the same list. */
START_TEST(declared_the_same)
{
    begin(DECLARED);
    daemon_configure(
        "{'segments':[{'name':'s','size':10000,'owner':'65533','group':'65531','mode':'0640',"
        "'acl':['group:65530:r','user:65532:rw']}]}");
    daemon_reload(&d);
    ck_assert(!daemon_said(&d, "declares it otherwise"));
    end();
}
END_TEST

/* --- Who may create ------------------------------------------------------ */

START_TEST(who_may_create)
{
    begin("{'create':['user:65533'],'admin_group':'65531'}");
    run_as(ALICE, make, "a");
    run_as(CAROL, make, "b");
    run_as(BOB, may_not_create, NULL);
    daemon_configure("{'create':['group:65532']}");
    daemon_reload(&d);
    run_as(BOB, make, "c");
    run_as(ALICE, may_not_create, NULL);
    run_as(CAROL, may_not_create, NULL); /* she is no longer an administrator either */
    daemon_configure("{'create':[]}");
    daemon_reload(&d);
    run_as(BOB, may_not_create, NULL);
    for (char name[] = "a"; name[0] <= 'c'; name[0]++)
        OK(shmview_remove(conn, name));
    OK(shmview_detach(client_create(conn, "root", 1)));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(events),
        SUITE_TEST(figures),
        SUITE_TEST(declared),
        SUITE_TEST(declared_otherwise),
        SUITE_TEST(declared_the_same),
        SUITE_TEST(who_may_create),
        SUITE_END,
    };
    if (!person_possible())
        return 77;
    return suite_main("visibility", tests);
}
