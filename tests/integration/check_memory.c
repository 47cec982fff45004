/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is not there is refused with the figures; memory that takes long to
 * get holds nobody up, and is given back when its creator goes. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/room.h"
#include "support/suite.h"

#define GIB ((uint64_t)1 << 30)
/* Large enough to take a while: some 300 ms and more. */
#define LARGE_BYTES  (2 * GIB)
#define LARGE_CREATE "{'name': 'large', 'size': 2147483648, 'access': 'write'}"

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

/* --- What cannot be had -------------------------------------------------- */

static void refuse_size(uint64_t size, int error, const char *part)
{
    struct shmview_segment *none = NULL;
    client_expect(shmview_create(conn, "big", size, NULL, &none), -error, part, "shmview_create");
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(daemon_objects(&d), 0);
}

START_TEST(inodes_that_run_out_are_named)
{
    struct shmview_segment *seg[20] = {NULL};
    char name[16];
    int n = 0, r = 0;
    if (!room_mount("size=64m,nr_inodes=20"))
        return;
    begin();
    for (; n < 20 && r == 0; n++) {
        snprintf(name, sizeof name, "s%d", n);
        r = shmview_create(conn, name, 1, NULL, &seg[n]);
    }
    client_expect(r, -SHMVIEW_ERR_NO_SPACE, "inodes of /dev/shm", "shmview_create");
    for (int i = 0; i < n; i++)
        OK(shmview_detach(seg[i]));
    end();
}
END_TEST

START_TEST(more_than_there_is_is_refused_with_the_figures)
{
    char text[64];
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    raw_send_call(&raw, "Create", "{'name': 'big', 'size': 1125899906842624}");
    json_t *p = raw_receive_error(&raw, "NoSpace", "asks for 1125899906842624 bytes");
    json_int_t free = raw_int(p, "free"), limit = raw_int(p, "limit");
    ck_assert_int_eq(raw_int(p, "asked"), (json_int_t)1 << 50);
    ck_assert_int_gt(free, 0);
    ck_assert_int_gt(limit, 0);
    ck_assert_int_lt(free, (json_int_t)1 << 50);
    snprintf(text, sizeof text, "/dev/shm holds %" JSON_INTEGER_FORMAT, limit);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(p, "reason")), text));
    json_decref(p);
    refuse_size((uint64_t)1 << 50, SHMVIEW_ERR_NO_SPACE, "'big' asks for 1125899906842624 bytes");
    refuse_size((uint64_t)1 << 50, SHMVIEW_ERR_NO_SPACE, text);
    refuse_size((uint64_t)1 << 56, SHMVIEW_ERR_NO_SPACE, text);
    refuse_size((uint64_t)limit + 1, SHMVIEW_ERR_NO_SPACE, " are free");
    OK(shmview_detach(client_create(conn, "big", 1000))); /* the name is free */
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(sizes_beyond_the_limit_are_refused_with_the_limit)
{
    begin();
    refuse_size(((uint64_t)1 << 56) + 1, SHMVIEW_ERR_INVALID, "must be 1 to 72057594037927936");
    refuse_size(INT64_MAX, SHMVIEW_ERR_INVALID, "must be 1 to 72057594037927936");
    refuse_size((uint64_t)INT64_MAX + 1, SHMVIEW_ERR_INVALID, "9223372036854775808");
    end();
}
END_TEST

/* --- What takes long ----------------------------------------------------- */

static bool is_answered(const struct raw *raw)
{
    struct pollfd p = {.fd = raw->socket, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Asks for the large segment and returns while it is being made. */
static void start_large(struct raw *raw)
{
    raw_connect(raw, d.socket);
    raw_send_call(raw, "Create", LARGE_CREATE);
    AWAIT(daemon_has_data(&d, "large") || is_answered(raw));
}

START_TEST(a_large_creation_holds_nobody_up)
{
    struct raw raw;
    struct shmview_segment *none = NULL;
    unsigned meanwhile = 0;
    if (!room_for(LARGE_BYTES))
        return;
    begin();
    struct shmview_segment *small = client_create(conn, "small", 1000);
    start_large(&raw);
    while (!is_answered(&raw)) {
        OK(shmview_detach(client_attach(conn, "small", SHMVIEW_WRITE)));
        OK(shmview_detach(client_create(conn, "other", 1000)));
        meanwhile += !is_answered(&raw);
    }
    ck_assert_uint_gt(meanwhile, 0);
    json_t *p = raw_receive_success(&raw);
    ck_assert_int_eq(raw_int(p, "segment.size"), (json_int_t)LARGE_BYTES);
    json_decref(p);
    REFUSED(shmview_create(conn, "large", 1, NULL, &none), EXISTS, "'large'");
    raw_close(&raw);
    OK(shmview_detach(small));
    end();
}
END_TEST

START_TEST(a_segment_in_the_making_is_not_there)
{
    struct raw raw, other;
    struct shmview_segment *none = NULL;
    if (!room_for(LARGE_BYTES))
        return;
    begin();
    raw_connect(&other, d.socket);
    start_large(&raw);
    int taken = shmview_create(conn, "large", 1, NULL, &none);
    int attached = shmview_attach(conn, "large", SHMVIEW_READ, 0, &none);
    int removed = shmview_remove(conn, "large");
    json_t *list = raw_call(&other, "List", NULL);
    /* unless it was quicker than we are */
    if (!is_answered(&raw)) {
        ck_assert_int_eq(attached, -SHMVIEW_ERR_NOT_FOUND);
        ck_assert_int_eq(removed, -SHMVIEW_ERR_NOT_FOUND);
        ck_assert_uint_eq(json_array_size(json_object_get(list, "segments")), 0);
    }
    ck_assert_int_eq(taken, -SHMVIEW_ERR_EXISTS);
    json_decref(list);
    raw_close(&raw);
    raw_close(&other);
    if (attached == 0)
        OK(shmview_detach(none));
    end();
}
END_TEST

static void ask_and_pause(struct child *me, void *arg)
{
    struct raw raw;
    (void)arg;
    start_large(&raw);
    child_tell(me, is_answered(&raw));
    child_pause(me);
}

START_TEST(a_creation_goes_back_when_its_client_dies)
{
    struct child child;
    struct shmview_segment *seg = NULL;
    if (!room_for(LARGE_BYTES))
        return;
    begin();
    child_start(&child, ask_and_pause, NULL);
    child_hear_any(&child);
    child_kill(&child);
    AWAIT(!daemon_has_data(&d, "large"));
    AWAIT(shmview_create(conn, "large", 1000, NULL, &seg) == 0);
    ck_assert_uint_eq(daemon_objects(&d), 3);
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(a_creation_goes_back_when_its_client_hangs_up)
{
    struct raw raw;
    if (!room_for(LARGE_BYTES))
        return;
    begin();
    start_large(&raw);
    raw_close(&raw);
    AWAIT(daemon_objects(&d) == 0);
    end();
}
END_TEST

START_TEST(a_daemon_that_leaves_drops_what_it_makes)
{
    struct raw raw;
    if (!room_for(LARGE_BYTES))
        return;
    begin();
    start_large(&raw);
    daemon_stop(&d);
    raw_close(&raw);
    OK(shmview_disconnect(conn));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(inodes_that_run_out_are_named),
        SUITE_TEST(more_than_there_is_is_refused_with_the_figures),
        SUITE_TEST(sizes_beyond_the_limit_are_refused_with_the_limit),
        SUITE_TEST(a_large_creation_holds_nobody_up),
        SUITE_TEST(a_segment_in_the_making_is_not_there),
        SUITE_TEST(a_creation_goes_back_when_its_client_dies),
        SUITE_TEST(a_creation_goes_back_when_its_client_hangs_up),
        SUITE_TEST(a_daemon_that_leaves_drops_what_it_makes),
        SUITE_END,
    };
    return suite_main("memory", tests);
}
