/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients may use a segment: owners, groups, modes and entries, for clients of several users.
 * Only root can be several users. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/person.h"
#include "support/raw.h"
#include "support/suite.h"

#define ALICE 65533
#define BOB   65532
#define TEAM  65531 /* a group, of BOB's in some tests */

static struct daemon d;
static struct shmview_connection *conn; /* root's */

static void begin(void)
{
    daemon_start(&d);
    person_open_door(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    AWAIT(daemon_objects(&d) == 0);
    daemon_stop(&d);
}

/* Runs act as that user with those groups, in a process of its own, to its end. */
static void as_user(uid_t uid, gid_t gid, gid_t group, void (*act)(struct child *, void *))
{
    struct child child;
    struct person who = {.uid = uid, .gid = gid, .groups = {group}, .n_groups = group ? 1 : 0};
    person_start(&child, &who, act, NULL);
    child_wait(&child);
}

/* A segment of ALICE's, called "a", that lives until it is removed. */
static void make_a(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_create_with(c, "a", 5000, SHMVIEW_MANUAL, 0);
    strcpy(shmview_data(s), "hers");
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
}

static void set(struct shmview_connection *c, uint32_t mode, uint32_t n,
                const struct shmview_access_entry *entries)
{
    struct shmview_access_change change = {
        .struct_bytes = sizeof change,
        .set = SHMVIEW_SET_MODE | SHMVIEW_SET_ENTRIES,
        .mode = mode,
        .n_entries = n,
        .entries = entries,
    };
    OK(shmview_set_access(c, "a", &change));
}

/* --- What may be seen ---------------------------------------------------- */

static unsigned listed(struct raw *raw)
{
    json_t *told = raw_call(raw, "List", "{}");
    unsigned n = (unsigned)json_array_size(json_object_get(told, "segments"));
    json_decref(told);
    return n;
}

static char by_id[40]; /* the member of a request that has the id of "a" */

/* The name is there for nobody: the same words as for one that is not. */
static void sees_nothing(struct child *me, void *arg)
{
    const char *const requests[][3] = {
        {"Attach", ",'access':'peek'", ""},
        {"Attach", ",'access':'write'", by_id},
        {"Describe", "", ""},
        {"Describe", "", by_id},
        {"Remove", "", ""},
        {"SetAccess", ",'mode':438", ""},
        {"DefineLayout", ",'layout':{'name':'l','views':[]}", ""},
    };
    struct raw raw;
    (void)me;
    (void)arg;
    raw_connect(&raw, d.socket);
    ck_assert_uint_eq(listed(&raw), 0);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        char parameters[2][100], reason[2][100] = {"", ""};
        for (int k = 0; k < 2; k++) {
            snprintf(parameters[k], sizeof parameters[k], "{'name':'%s'%s%s}", k ? "a" : "b",
                     requests[i][1], requests[i][2]);
            ck_assert(raw_send_call(&raw, requests[i][0], parameters[k]));
            json_t *told = raw_receive_error(&raw, "SegmentNotFound", "no segment");
            snprintf(reason[k], sizeof reason[k], "%s",
                     json_string_value(json_object_get(told, "reason")));
            ck_assert_uint_eq(json_object_size(told), 2);
            json_decref(told);
        }
        ck_assert_str_eq(reason[0], "no segment 'b'");
        ck_assert_str_eq(reason[1], "no segment 'a'");
    }
    /* the one thing that shows: the name is taken */
    raw_refused(&raw, "Create", "{'name':'a','size':1}", "SegmentExists", "exists already");
    raw_close(&raw);
}

START_TEST(others_see_nothing)
{
    struct raw raw;
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    raw_connect(&raw, d.socket);
    ck_assert_uint_eq(listed(&raw), 1); /* root sees it */
    json_t *told = raw_call(&raw, "Describe", "{'name':'a'}");
    snprintf(by_id, sizeof by_id, ",'id':%lld", (long long)raw_int(told, "segment.id"));
    json_decref(told);
    as_user(BOB, BOB, TEAM, sees_nothing);
    as_user(BOB, ALICE, 0, sees_nothing); /* her group may nothing either */
    raw_close(&raw);
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

/* --- Read and write ------------------------------------------------------ */

static void may_nothing(struct child *me, void *arg)
{
    struct shmview_segment *s;
    struct shmview_connection *c = client_connect(&d);
    (void)me;
    (void)arg;
    REFUSED(shmview_attach(c, "a", SHMVIEW_PEEK, 0, &s), NOT_FOUND, "no segment 'a'");
    OK(shmview_disconnect(c));
}

static void may_read(struct child *me, void *arg)
{
    struct shmview_segment *s;
    struct shmview_connection *c = client_connect(&d);
    (void)me;
    (void)arg;
    s = client_attach(c, "a", SHMVIEW_PEEK);
    ck_assert_str_eq(shmview_data(s), "hers");
    OK(shmview_detach(s));
    s = client_attach(c, "a", SHMVIEW_READ);
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    REFUSED(shmview_attach(c, "a", SHMVIEW_WRITE, 0, &s), DENIED, "for access write");
    REFUSED(shmview_remove(c, "a"), DENIED, "only the owner and administrators");
    struct shmview_access_change change = {.struct_bytes = sizeof change};
    REFUSED(shmview_set_access(c, "a", &change), DENIED, "only the owner and administrators");
    OK(shmview_disconnect(c));
}

static void may_write(struct child *me, void *arg)
{
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "a", SHMVIEW_WRITE);
    char layout[32];
    (void)me;
    (void)arg;
    snprintf(layout, sizeof layout, "by%d", getpid());
    strcpy(shmview_data(s), "hers");
    OK(shmview_define(s, layout, &spec, 1));
    OK(shmview_detach(s));
    REFUSED(shmview_remove(c, "a"), DENIED, "only the owner and administrators");
    OK(shmview_disconnect(c));
}

START_TEST(modes)
{
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    set(conn, 0604, 0, NULL);
    as_user(BOB, BOB, TEAM, may_read);
    as_user(BOB, ALICE, 0, may_nothing); /* members of the group have the group's bits */
    set(conn, 0606, 0, NULL);
    as_user(BOB, BOB, TEAM, may_write);
    set(conn, 0640, 0, NULL);
    as_user(BOB, ALICE, 0, may_read);
    as_user(BOB, BOB, ALICE, may_read); /* a supplementary group is as good */
    as_user(BOB, BOB, TEAM, may_nothing);
    set(conn, 0660, 0, NULL);
    as_user(BOB, BOB, ALICE, may_write);
    set(conn, 0622, 0, NULL); /* write without read is nothing */
    as_user(BOB, BOB, ALICE, may_nothing);
    as_user(BOB, BOB, TEAM, may_nothing);
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

START_TEST(entries)
{
    const struct shmview_access_entry reader = {SHMVIEW_USER, SHMVIEW_READ, "65532"};
    const struct shmview_access_entry writer = {SHMVIEW_USER, SHMVIEW_WRITE, "65532"};
    const struct shmview_access_entry nobody = {SHMVIEW_USER, 0, "65532"};
    const struct shmview_access_entry team = {SHMVIEW_GROUP, SHMVIEW_WRITE, "65531"};
    const struct shmview_access_entry both[] = {nobody, team};
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    set(conn, 0600, 1, &reader);
    as_user(BOB, BOB, TEAM, may_read);
    set(conn, 0600, 1, &writer);
    as_user(BOB, BOB, TEAM, may_write);
    set(conn, 0600, 1, &team);
    as_user(BOB, BOB, TEAM, may_write);
    as_user(BOB, TEAM, 0, may_write);
    as_user(BOB, BOB, 0, may_nothing);
    set(conn, 0600, 2, both); /* the entry of a user precedes that of the user's group */
    as_user(BOB, BOB, TEAM, may_nothing);
    set(conn, 0604, 1, &nobody); /* and than what others may */
    as_user(BOB, BOB, 0, may_nothing);
    set(conn, 0604, 0, NULL);
    as_user(BOB, BOB, 0, may_read);
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

/* Names of this system: whoever it has. */
START_TEST(entries_by_name)
{
    struct raw raw;
    const struct passwd *user = getpwuid(1);
    const struct group *group = getgrgid(1);
    begin();
    if (!user || !group) {
        puts("skipped: this system has no user 1 or no group 1");
        end();
        return;
    }
    const struct shmview_access_entry list[] = {{SHMVIEW_USER, SHMVIEW_READ, user->pw_name},
                                                {SHMVIEW_GROUP, SHMVIEW_WRITE, group->gr_name}};
    const struct shmview_access_entry none = {SHMVIEW_GROUP, SHMVIEW_READ, "no-such-group"};
    struct shmview_access_change change = {
        .struct_bytes = sizeof change,
        .set = SHMVIEW_SET_ENTRIES | SHMVIEW_SET_MODE,
        .mode = 0640,
        .n_entries = 2,
        .entries = list,
    };
    struct shmview_create_options o = {.struct_bytes = sizeof o, .access = &change};
    struct shmview_segment *s;
    OK(shmview_create(conn, "a", 100, &o, &s));
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Describe", "{'name':'a'}");
    ck_assert_int_eq(raw_int(told, "segment.mode"), 0640);
    char *acl = json_dumps(json_object_get(json_object_get(told, "segment"), "acl"),
                           JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_str_eq(acl, "[{\"right\":\"read\",\"user\":1},{\"group\":1,\"right\":\"write\"}]");
    free(acl);
    json_decref(told);
    raw_close(&raw);
    change.n_entries = 1;
    change.entries = &none;
    REFUSED(shmview_set_access(conn, "a", &change), INVALID, "no group 'no-such-group'");
    change.entries = &(struct shmview_access_entry){SHMVIEW_USER, 9, "root"};
    REFUSED(shmview_set_access(conn, "a", &change), INVALID, "right 9");
    change.mode = 0700;
    change.n_entries = 0;
    REFUSED(shmview_set_access(conn, "a", &change), INVALID, "mode");
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(entries_that_contradict)
{
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", "{'name':'a','size':1,'acl':[{'user':1,'group':2,'right':'read'}]}",
                "org.varlink.service.InvalidParameter", "does not name one user or one group");
    raw_refused(&raw, "Create", "{'name':'a','size':1,'acl':[{'right':'read'}]}",
                "org.varlink.service.InvalidParameter", "does not name one user or one group");
    raw_refused(&raw, "Create",
                "{'name':'a','size':1,'acl':[{'user':7,'right':'read'},{'group':7,'right':'read'},"
                "{'user':7,'right':'none'}]}",
                "org.varlink.service.InvalidParameter", "two entries for user 7");
    raw_close(&raw);
    end();
}
END_TEST

/* --- Owners -------------------------------------------------------------- */

static void gives_away(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    struct shmview_access_change change = {
        .struct_bytes = sizeof change, .set = SHMVIEW_SET_OWNER, .owner = BOB};
    (void)me;
    (void)arg;
    REFUSED(shmview_set_access(c, "a", &change), DENIED, "only an administrator");
    change = (struct shmview_access_change){
        .struct_bytes = sizeof change, .set = SHMVIEW_SET_GROUP, .group = TEAM};
    REFUSED(shmview_set_access(c, "a", &change), DENIED, "is not in group 65531");
    change.set = SHMVIEW_SET_MODE; /* she may lock herself out, and in again */
    REFUSED(shmview_set_access(c, "none", &change), NOT_FOUND, "");
    OK(shmview_set_access(c, "a", &change));
    struct shmview_segment *s;
    REFUSED(shmview_attach(c, "a", SHMVIEW_PEEK, 0, &s), DENIED, "");
    change.mode = 0600;
    OK(shmview_set_access(c, "a", &change));
    OK(shmview_detach(client_attach(c, "a", SHMVIEW_WRITE)));
    OK(shmview_disconnect(c));
}

static void removes_it(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    (void)me;
    (void)arg;
    OK(shmview_remove(c, "a"));
    OK(shmview_disconnect(c));
}

START_TEST(owners)
{
    struct raw raw;
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    as_user(ALICE, ALICE, 0, gives_away);
    struct shmview_access_change change = {.struct_bytes = sizeof change,
                                           .set = SHMVIEW_SET_OWNER | SHMVIEW_SET_GROUP,
                                           .owner = BOB,
                                           .group = TEAM};
    OK(shmview_set_access(conn, "a", &change));
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Describe", "{'name':'a'}");
    ck_assert_int_eq(raw_int(told, "segment.owner"), BOB);
    ck_assert_int_eq(raw_int(told, "segment.group"), TEAM);
    json_decref(told);
    raw_close(&raw);
    as_user(ALICE, ALICE, 0, may_nothing);
    as_user(BOB, BOB, 0, removes_it);
    end();
}
END_TEST

/* --- What a right is worth later ----------------------------------------- */

static void reads_on(struct child *me, void *arg)
{
    struct shmview_view v;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "a", SHMVIEW_WRITE), *again;
    (void)arg;
    child_tell(me, 1);
    child_pause(me); /* the right goes */
    ck_assert_str_eq(shmview_data(s), "hers");
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    /* layouts that come later are news of what it has */
    OK(shmview_view_open(s, "late", "A", &v));
    REFUSED(shmview_attach(c, "a", SHMVIEW_READ, 0, &again), DENIED, "");
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    REFUSED(shmview_define(s, "more", &spec, 1), DENIED, "may not write");
    OK(shmview_detach(s));
    REFUSED(shmview_attach(c, "a", SHMVIEW_READ, 0, &again), NOT_FOUND, "");
    OK(shmview_disconnect(c));
}

START_TEST(attachments_outlive_the_right)
{
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    struct child child;
    struct person bob = {.uid = BOB, .gid = BOB};
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    set(conn, 0666, 0, NULL);
    person_start(&child, &bob, reads_on, NULL);
    child_hear(&child, 1);
    set(conn, 0600, 0, NULL);
    struct shmview_segment *s = client_attach(conn, "a", SHMVIEW_WRITE);
    OK(shmview_define(s, "late", &spec, 1));
    OK(shmview_detach(s));
    child_cue(&child);
    child_wait(&child);
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

/* A descriptor that is for reading stays one: the object itself is closed to its reader. */
static void tries_to_write(struct child *me, void *arg)
{
    struct raw raw;
    char path[128];
    (void)me;
    (void)arg;
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'a','access':'read'}"));
    int data = raw.fds[0];
    ck_assert_int_eq(fcntl(data, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, data, 0), MAP_FAILED);
    ck_assert_int_eq(ftruncate(data, 0), -1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", data);
    ck_assert_int_eq(open(path, O_RDWR | O_CLOEXEC), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(fchmod(data, 0666), -1);
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/a", d.instance);
    ck_assert_int_eq(open(path, O_RDONLY | O_CLOEXEC), -1);
    ck_assert_int_eq(errno, EACCES);
    raw_close_fds(&raw);
    raw_close(&raw);
}

START_TEST(read_only_stays_read_only)
{
    struct stat st;
    char path[128];
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    set(conn, 0604, 0, NULL);
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/a", d.instance);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 0); /* the daemon's, not hers */
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    as_user(BOB, BOB, 0, tries_to_write);
    as_user(BOB, BOB, 0, may_read);
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

START_TEST(everything_outlives_the_daemon)
{
    const struct shmview_access_entry team = {SHMVIEW_GROUP, SHMVIEW_READ, "65531"};
    begin();
    as_user(ALICE, ALICE, 0, make_a);
    set(conn, 0600, 1, &team);
    for (int i = 0; i < 2; i++) {
        daemon_kill(&d);
        daemon_restart(&d);
        person_open_door(&d);
        as_user(BOB, BOB, TEAM, may_read);
        as_user(BOB, BOB, 0, sees_nothing);
    }
    as_user(ALICE, ALICE, 0, gives_away);
    as_user(ALICE, ALICE, 0, removes_it);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(others_see_nothing),
        SUITE_TEST(modes),
        SUITE_TEST(entries),
        SUITE_TEST(entries_by_name),
        SUITE_TEST(entries_that_contradict),
        SUITE_TEST(owners),
        SUITE_TEST(attachments_outlive_the_right),
        SUITE_TEST(read_only_stays_read_only),
        SUITE_TEST(everything_outlives_the_daemon),
        SUITE_END,
    };
    if (!person_possible())
        return 77;
    return suite_main("access", tests);
}
