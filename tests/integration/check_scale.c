/* SPDX-License-Identifier: Apache-2.0 */
/* Two thousand segments: all are there, found, listed, and taken over by the next daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define SEGMENTS 2000
#define AT_ONCE  100 /* requests on their way */
#define EVERY    997 /* one of so many is looked at closely */

static struct daemon d;
static struct raw raw;

static void name_of(char ret[32], unsigned i)
{
    snprintf(ret, 32, "segment%u", i);
}

/* Sends method for each of the segments, with more parameters than the name, and takes the
 * replies; all must succeed. */
static void for_all(const char *method, const char *more)
{
    char parameters[128];
    for (unsigned i = 0; i < SEGMENTS; i += AT_ONCE) {
        for (unsigned k = i; k < i + AT_ONCE; k++) {
            snprintf(parameters, sizeof parameters, "{'name':'segment%u'%s}", k, more);
            ck_assert(raw_send_call(&raw, method, parameters));
        }
        for (unsigned k = i; k < i + AT_ONCE; k++)
            json_decref(raw_receive_success(&raw));
    }
}

static void begin(void)
{
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    for_all("Create", ",'size':4096,'lifetime':'manual','lock':false");
}

static void end(void)
{
    raw_close(&raw);
    daemon_stop(&d);
}

/* Notes the segments of one reply. Returns their number. */
static size_t note_listed(const json_t *list, bool *seen)
{
    size_t i;
    json_t *s;
    json_array_foreach (list, i, s) {
        const char *name = json_string_value(json_object_get(s, "name"));
        unsigned k = (unsigned)strtoul(name + strlen("segment"), NULL, 10);
        ck_assert_uint_lt(k, SEGMENTS);
        ck_assert_msg(!seen[k], "%s is listed twice", name);
        seen[k] = true;
    }
    return json_array_size(list);
}

static void assert_listed(size_t n)
{
    static bool seen[SEGMENTS];
    json_int_t after = 0;
    size_t listed = 0;
    memset(seen, 0, sizeof seen);
    do {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "{'after': %lld}", (long long)after);
        json_t *reply = raw_call(&raw, "List", parameters);
        listed += note_listed(json_object_get(reply, "segments"), seen);
        after = json_integer_value(json_object_get(reply, "next"));
        json_decref(reply);
    } while (after);
    ck_assert_uint_eq(listed, n);
}

/* Each has its own bytes. */
static void write_some(struct shmview_connection *conn)
{
    char name[32];
    for (unsigned i = 0; i < SEGMENTS; i += EVERY) {
        name_of(name, i);
        struct shmview_segment *s = client_attach(conn, name, SHMVIEW_WRITE);
        strcpy(shmview_data(s), name);
        OK(shmview_detach(s));
    }
}

static void read_some(struct shmview_connection *conn)
{
    char name[32];
    for (unsigned i = 0; i < SEGMENTS; i += EVERY) {
        name_of(name, i);
        struct shmview_segment *s = client_attach(conn, name, SHMVIEW_READ);
        ck_assert_str_eq(shmview_data(s), name);
        OK(shmview_detach(s));
    }
}

START_TEST(all_are_there_after_a_restart)
{
    begin();
    struct shmview_connection *conn = client_connect(&d);
    ck_assert_uint_eq(daemon_objects(&d), SEGMENTS);
    assert_listed(SEGMENTS);
    write_some(conn);
    raw_close(&raw);
    daemon_kill(&d);
    daemon_restart(&d);
    raw_connect(&raw, d.socket);
    ck_assert(daemon_said(&d, "took over 2000 segments; 0 were lost"));
    ck_assert_uint_eq(daemon_objects(&d), SEGMENTS);
    assert_listed(SEGMENTS);
    read_some(conn);
    raw_refused(&raw, "Create", "{'name':'segment1999','size':1}", "SegmentExists", "segment1999");
    OK(shmview_disconnect(conn));
    end();
}
END_TEST

START_TEST(all_can_go)
{
    begin();
    for_all("Remove", "");
    ck_assert_uint_eq(daemon_objects(&d), 0);
    assert_listed(0);
    raw_refused(&raw, "Attach", "{'name':'segment1500','access':'peek'}", "SegmentNotFound", "");
    for_all("Create", ",'size':1,'lifetime':'manual','lock':false");
    assert_listed(SEGMENTS);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(all_are_there_after_a_restart),
                                       SUITE_TEST(all_can_go), SUITE_END};
    return suite_main("scale", tests);
}
