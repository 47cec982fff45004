/* SPDX-License-Identifier: Apache-2.0 */
/* When a segment goes: with its last attachment, with its creator, when it is
 * removed; and what those who still have it mapped keep. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    AWAIT(daemon_objects(&d) == 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Whether the daemon knows the name. */
static bool exists(const char *name)
{
    struct shmview_segment *seg;
    int r = shmview_attach(conn, name, SHMVIEW_PEEK, 0, &seg);
    if (r == 0)
        OK(shmview_detach(seg));
    else
        REFUSED(r, NOT_FOUND, name);
    return r == 0;
}

/* Whether there is the data object of a segment with that name. A sealed object has no name. */
static bool has_data(const char *name)
{
    return backing_is_sealed() ? exists(name) : daemon_has_data(&d, name);
}

/* Segments that the daemon reports without a name. */
static unsigned count_unnamed(void)
{
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    const struct shmview_stats *stats;
    unsigned n = 0;
    OK(shmview_stats_get(conn, &o, &stats));
    for (size_t i = 0; i < stats->n_segments; i++)
        n += !stats->segments[i]->is_named;
    shmview_stats_free(stats);
    return n;
}

/* Data objects whose names are gone: files are called by number. */
static unsigned unnamed(void)
{
    char text[4096] = "";
    unsigned n = 0;
    if (backing_is_sealed())
        return count_unnamed();
    place_objects(d.instance, text, sizeof text);
    for (const char *p = text; (p = strstr(p, ".data\n")); p++)
        n++;
    return n;
}

START_TEST(attached_goes_with_the_last_attachment)
{
    begin();
    struct shmview_segment *a = client_create(conn, "a", 10);
    struct shmview_segment *b = client_attach(conn, "a", SHMVIEW_PEEK);
    OK(shmview_detach(a));
    ck_assert(has_data("a"));
    OK(shmview_detach(b));
    ck_assert(!exists("a"));
    AWAIT(daemon_objects(&d) == 0); /* a thread closes sealed objects */
    end();
}
END_TEST

START_TEST(attached_goes_with_the_last_connection)
{
    begin();
    struct shmview_connection *other = client_connect(&d);
    struct shmview_segment *a = client_create(other, "a", 10);
    struct shmview_segment *b = client_attach(conn, "a", SHMVIEW_READ);
    OK(shmview_detach(a));
    OK(shmview_disconnect(other));
    ck_assert(exists("a"));
    OK(shmview_detach(b));
    AWAIT(!exists("a")); /* a detachment over another connection may come later */
    end();
}
END_TEST

START_TEST(manual_stays_until_it_is_removed)
{
    begin();
    struct shmview_connection *other = client_connect(&d);
    struct shmview_segment *a = client_create_with(other, "a", 10, SHMVIEW_MANUAL, 0);
    strcpy(shmview_data(a), "stays");
    OK(shmview_detach(a));
    OK(shmview_disconnect(other));
    a = client_attach(conn, "a", SHMVIEW_PEEK);
    ck_assert_str_eq(shmview_data(a), "stays");
    OK(shmview_detach(a));
    OK(shmview_remove(conn, "a"));
    ck_assert(!exists("a"));
    AWAIT(daemon_objects(&d) == 0); /* a thread closes sealed objects */
    end();
}
END_TEST

static void create_and_pause(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    const enum shmview_lifetime *lifetime = arg;
    struct shmview_segment *a = client_create_with(c, "a", 10, *lifetime, 0);
    strcpy(shmview_data(a), "written");
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_detach(a));
    child_tell(me, 2);
    child_pause(me);
}

START_TEST(creator_goes_when_the_creator_dies)
{
    enum shmview_lifetime lifetime = SHMVIEW_CREATOR;
    struct child child;
    begin();
    child_start(&child, create_and_pause, &lifetime);
    child_hear(&child, 1);
    struct shmview_segment *a = client_attach(conn, "a", SHMVIEW_WRITE);
    ck_assert_uint_eq(unnamed(), 0);
    child_kill(&child);
    AWAIT(!exists("a"));
    /* the name is gone, the memory is there for those who have it */
    ck_assert_uint_eq(unnamed(), 1);
    ck_assert_str_eq(shmview_data(a), "written");
    ck_assert_int_ge(shmview_lock(a), 0);
    OK(shmview_unlock(a));
    OK(shmview_detach(a));
    AWAIT(daemon_objects(&d) == 0);
    end();
}
END_TEST

START_TEST(creator_stays_while_its_creator_is_connected)
{
    enum shmview_lifetime lifetime = SHMVIEW_CREATOR;
    struct child child;
    begin();
    child_start(&child, create_and_pause, &lifetime);
    child_hear(&child, 1);
    child_cue(&child);
    child_hear(&child, 2); /* has detached */
    ck_assert(exists("a"));
    child_cue(&child);
    child_wait(&child);
    AWAIT(!exists("a"));
    end();
}
END_TEST

START_TEST(attached_goes_when_its_only_client_dies)
{
    enum shmview_lifetime lifetime = SHMVIEW_ATTACHED;
    struct child child;
    begin();
    child_start(&child, create_and_pause, &lifetime);
    child_hear(&child, 1);
    ck_assert(exists("a"));
    child_kill(&child);
    AWAIT(daemon_objects(&d) == 0);
    ck_assert(!exists("a"));
    end();
}
END_TEST

START_TEST(removed_name_can_be_used_again_at_once)
{
    begin();
    struct shmview_segment *old = client_create(conn, "a", 100);
    struct shmview_segment *peek = client_attach(conn, "a", SHMVIEW_PEEK);
    strcpy(shmview_data(old), "old bytes");
    OK(shmview_remove(conn, "a"));
    ck_assert(!has_data("a"));
    ck_assert_uint_eq(unnamed(), 1);
    REFUSED(shmview_remove(conn, "a"), NOT_FOUND, "'a'");

    struct shmview_segment *new = client_create(conn, "a", 200);
    ck_assert_int_eq(*(char *)shmview_data(new), 0);
    strcpy(shmview_data(new), "new bytes");
    ck_assert_str_eq(shmview_data(old), "old bytes");
    ck_assert_str_eq(shmview_data(peek), "old bytes");
    ck_assert_uint_eq(shmview_size(old), 100);
    OK(shmview_lock(old)); /* two locks */
    OK(shmview_lock(new));
    OK(shmview_unlock(new));
    OK(shmview_unlock(old));

    OK(shmview_detach(old));
    ck_assert_uint_eq(unnamed(), 1);
    ck_assert_str_eq(shmview_data(peek), "old bytes");
    OK(shmview_detach(peek));
    AWAIT(unnamed() == 0);
    ck_assert_str_eq(shmview_data(new), "new bytes");
    ck_assert(exists("a"));
    OK(shmview_detach(new));
    end();
}
END_TEST

START_TEST(removed_memory_goes_although_somebody_maps_its_namesake)
{
    begin();
    for (int i = 0; i < 50; i++) {
        struct shmview_segment *old = client_create_with(conn, "a", 10, SHMVIEW_MANUAL, 0);
        OK(shmview_remove(conn, "a"));
        struct shmview_segment *new = client_create(conn, "a", 10);
        OK(shmview_detach(i % 2 ? old : new));
        OK(shmview_detach(i % 2 ? new : old));
        AWAIT(daemon_objects(&d) == 0);
    }
    end();
}
END_TEST

START_TEST(attach_by_id_finds_that_very_segment)
{
    struct raw raw;
    char parameters[96];
    begin();
    raw_connect(&raw, d.socket);
    struct shmview_segment *old = client_create(conn, "a", 100);
    json_t *told = raw_call(&raw, "Describe", "{'name': 'a'}");
    snprintf(parameters, sizeof parameters,
             "{'name': 'a', 'access': 'peek', 'id': %" JSON_INTEGER_FORMAT "}",
             raw_int(told, "segment.id"));
    json_decref(told);
    OK(shmview_remove(conn, "a"));
    struct shmview_segment *new = client_create(conn, "a", 200);
    json_t *a = raw_call(&raw, "Attach", parameters);
    ck_assert_int_eq(raw_int(a, "segment.size"), 100);
    ck_assert_int_eq(raw_int(a, "segment.attachments"), 2);
    json_decref(a);
    OK(shmview_detach(old));
    ck_assert_uint_eq(unnamed(), 1);
    raw_close(&raw);
    AWAIT(unnamed() == 0);
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Attach", parameters, "SegmentNotFound", "'a'");
    raw_close(&raw);
    OK(shmview_detach(new));
    end();
}
END_TEST

START_TEST(lifetime_has_its_defaults)
{
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", "{'name': 'manual', 'size': 1}");
    raw_do(&raw, "Create", "{'name': 'creator', 'size': 1, 'lifetime': 'creator'}");
    raw_do(&raw, "Create", "{'name': 'attached', 'size': 1, 'access': 'peek'}");
    raw_do(&raw, "Create", "{'name': 'kept', 'size': 1, 'access': 'peek', 'lifetime': 'manual'}");
    raw_refused(&raw, "Create", "{'name': 'no', 'size': 1, 'lifetime': 'attached'}",
                "org.varlink.service.InvalidParameter", "needs an access");
    raw_close(&raw);
    AWAIT(!exists("creator"));
    AWAIT(!exists("attached"));
    ck_assert(!exists("no"));
    OK(shmview_remove(conn, "manual"));
    OK(shmview_remove(conn, "kept"));
    end();
}
END_TEST

START_TEST(daemon_that_is_told_to_leave_removes_the_names)
{
    daemon_start(&d);
    conn = client_connect(&d);
    struct shmview_segment *a = client_create(conn, "a", 10);
    OK(shmview_detach(client_create_with(conn, "m", 10, SHMVIEW_MANUAL, 0)));
    strcpy(shmview_data(a), "kept");
    OK(shmview_remove(conn, "a"));
    struct shmview_segment *b = client_create(conn, "a", 10);
    daemon_stop(&d);
    ck_assert_str_eq(shmview_data(a), "kept");
    OK(shmview_detach(a));
    OK(shmview_detach(b));
    OK(shmview_disconnect(conn));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(attached_goes_with_the_last_attachment),
        SUITE_TEST(attached_goes_with_the_last_connection),
        SUITE_TEST(manual_stays_until_it_is_removed),
        SUITE_TEST(creator_goes_when_the_creator_dies),
        SUITE_TEST(creator_stays_while_its_creator_is_connected),
        SUITE_TEST(attached_goes_when_its_only_client_dies),
        SUITE_TEST(removed_name_can_be_used_again_at_once),
        SUITE_TEST(removed_memory_goes_although_somebody_maps_its_namesake),
        SUITE_TEST(attach_by_id_finds_that_very_segment),
        SUITE_TEST(lifetime_has_its_defaults),
        SUITE_TEST(daemon_that_is_told_to_leave_removes_the_names),
        SUITE_END,
    };
    return suite_main("lifetimes", tests);
}
