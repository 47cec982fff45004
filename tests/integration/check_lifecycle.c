/* SPDX-License-Identifier: Apache-2.0 */
/* Segments from birth to removal, through the library and without it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
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
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static bool all_bytes_are(const struct shmview_segment *seg, unsigned char value)
{
    const unsigned char *p = shmview_data(seg);
    return p[0] == value && memcmp(p, p + 1, shmview_size(seg) - 1) == 0;
}

/* --- Creating ------------------------------------------------------------ */

START_TEST(create_states_the_facts)
{
    const uint64_t sizes[] = {1, 7, 4096, 4097, 1000003};
    begin();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct shmview_segment *seg = client_create(conn, "facts", sizes[i]);
        ck_assert_str_eq(shmview_name(seg), "facts");
        ck_assert_uint_eq(shmview_size(seg), sizes[i]);
        ck_assert_int_eq(shmview_access(seg), SHMVIEW_WRITE);
        ck_assert_uint_eq((uintptr_t)shmview_data(seg) % 4096, 0);
        ck_assert(all_bytes_are(seg, 0));
        OK(shmview_detach(seg));
    }
    end();
}
END_TEST

START_TEST(bytes_are_zero_again_after_a_namesake)
{
    begin();
    for (int i = 0; i < 3; i++) {
        struct shmview_segment *seg = client_create(conn, "again", 100000);
        ck_assert(all_bytes_are(seg, 0));
        memset(shmview_data(seg), 0xff, 100000);
        OK(shmview_detach(seg));
    }
    end();
}
END_TEST

START_TEST(create_populates_on_request)
{
    unsigned char present[256] = {0};
    begin();
    for (int attach = 0; attach < 2; attach++) {
        struct shmview_segment *seg = client_create_with(conn, "populated", sizeof present * 4096,
                                                         0, attach ? 0 : SHMVIEW_POPULATE);
        struct shmview_segment *other = NULL;
        if (attach)
            OK(shmview_attach(conn, "populated", SHMVIEW_WRITE, SHMVIEW_POPULATE, &other));
        ck_assert_int_eq(
            mincore(shmview_data(attach ? other : seg), sizeof present * 4096, present), 0);
        for (size_t i = 0; i < sizeof present; i++)
            ck_assert_int_eq(present[i] & 1, 1);
        OK(shmview_detach(other));
        OK(shmview_detach(seg));
    }
    end();
}
END_TEST

START_TEST(create_refuses_with_the_cause)
{
    struct shmview_segment *none = NULL;
    struct shmview_create_options o = {.struct_bytes = 4};
    begin();
    struct shmview_segment *seg = client_create(conn, "taken", 10);
    REFUSED(shmview_create(conn, "taken", 10, NULL, &none), EXISTS, "'taken'");
    REFUSED(shmview_create(conn, "zero", 0, NULL, &none), INVALID, "0 bytes");
    REFUSED(shmview_create(conn, "huge", UINT64_MAX, NULL, &none), INVALID,
            "18446744073709551615 bytes");
    REFUSED(shmview_create(conn, "a", 1, &o, &none), INVALID, "4 bytes");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .lifetime = 4};
    REFUSED(shmview_create(conn, "a", 1, &o, &none), INVALID, "lifetime 4");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .flags = 0x40};
    REFUSED(shmview_create(conn, "a", 1, &o, &none), INVALID, "flags 0x40");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .backing = 3};
    REFUSED(shmview_create(conn, "a", 1, &o, &none), INVALID, "backing 3");
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(daemon_objects(&d), 3);
    OK(shmview_detach(seg));
    end();
}
END_TEST

/* A program that was compiled before there were labels has shorter options. */
START_TEST(labels)
{
    const struct shmview_description *told;
    struct shmview_segment *seg, *older;
    struct shmview_create_options o = {.struct_bytes = sizeof o, .label = "run 4711"};
    begin();
    OK(shmview_create(conn, "seg", 10, &o, &seg));
    o.struct_bytes = offsetof(struct shmview_create_options, label);
    OK(shmview_create(conn, "older", 10, &o, &older));
    OK(shmview_describe(conn, "seg", &told));
    ck_assert_str_eq(told->label, "run 4711");
    shmview_description_free(told);
    OK(shmview_describe(conn, "older", &told));
    ck_assert_str_eq(told->label, "");
    shmview_description_free(told);
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .label = "\x1b[2J"};
    REFUSED(shmview_create(conn, "other", 10, &o, &seg), INVALID, "a label has 1 to 63 bytes");
    OK(shmview_detach(seg));
    OK(shmview_detach(older));
    end();
}
END_TEST

START_TEST(create_leaves_an_object_that_is_not_ours)
{
    char path[200];
    struct shmview_segment *none = NULL;
    begin();
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/foreign", d.instance);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "foreign", 7), 7);
    close(fd);
    REFUSED(shmview_create(conn, "foreign", 10, NULL, &none), EXISTS, "that no segment owns");
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 7);
    unlink(path);
    end();
}
END_TEST

START_TEST(names_have_limits)
{
    char longest[130];
    struct shmview_segment *none = NULL;
    memset(longest, 'x', sizeof longest);
    longest[128] = '\0';
    const char *const good[] = {"a", "9", "-", "_.", "A-b_c.9", "a..b", longest};
    const char *const bad[] = {"", ".a", ".", "a/b", "/a", "a b", "a\n", "\xc3\xbc", "\xff", "a+b"};
    begin();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct shmview_segment *seg = client_create(conn, good[i], 1);
        ck_assert_str_eq(shmview_name(seg), good[i]);
        OK(shmview_detach(seg));
    }
    longest[128] = 'x';
    longest[129] = '\0';
    REFUSED(shmview_create(conn, longest, 1, NULL, &none), INVALID, "1 to 128");
    REFUSED(shmview_create(conn, NULL, 1, NULL, &none), INVALID, "1 to 128");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        REFUSED(shmview_create(conn, bad[i], 1, NULL, &none), INVALID, "1 to 128");
        REFUSED(shmview_attach(conn, bad[i], SHMVIEW_READ, 0, &none), INVALID, "1 to 128");
        REFUSED(shmview_remove(conn, bad[i]), INVALID, "1 to 128");
    }
    OK(shmview_ping(conn));
    end();
}
END_TEST

/* --- Attaching ----------------------------------------------------------- */

static void fill_with_ones(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *seg = client_attach(c, "shared", SHMVIEW_WRITE);
    ck_assert(all_bytes_are(seg, 7));
    memset(shmview_data(seg), 1, shmview_size(seg));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(c));
}

START_TEST(two_clients_see_the_same_bytes)
{
    struct child child;
    begin();
    struct shmview_segment *seg = client_create(conn, "shared", 12345);
    struct shmview_segment *peek = client_attach(conn, "shared", SHMVIEW_PEEK);
    ck_assert_ptr_ne(shmview_data(seg), shmview_data(peek));
    memset(shmview_data(seg), 7, 12345);
    ck_assert(all_bytes_are(peek, 7));
    child_start(&child, fill_with_ones, NULL);
    child_wait(&child);
    ck_assert(all_bytes_are(seg, 1));
    ck_assert(all_bytes_are(peek, 1));
    OK(shmview_detach(peek));
    OK(shmview_detach(seg));
    end();
}
END_TEST

static void write_a_byte(struct child *me, void *data)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would handle it */
    child_tell(me, *(volatile unsigned char *)data);
    *(volatile unsigned char *)data = 1;
}

START_TEST(peek_and_read_cannot_write)
{
    const int access[] = {SHMVIEW_PEEK, SHMVIEW_READ};
    struct child child;
    begin();
    struct shmview_segment *seg = client_create(conn, "guarded", 10);
    for (size_t i = 0; i < 2; i++) {
        struct shmview_segment *other = client_attach(conn, "guarded", access[i]);
        ck_assert_int_eq(shmview_access(other), access[i]);
        child_start(&child, write_a_byte, shmview_data(other));
        child_hear(&child, 0);
        child_wait_signal(&child, SIGSEGV);
        OK(shmview_detach(other));
    }
    ck_assert(all_bytes_are(seg, 0));
    child_start(&child, write_a_byte, shmview_data(seg));
    child_hear(&child, 0);
    child_wait(&child);
    ck_assert_int_eq(*(char *)shmview_data(seg), 1);
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(attach_refuses_with_the_cause)
{
    struct shmview_segment *none = NULL;
    begin();
    struct shmview_segment *seg = client_create(conn, "here", 10);
    REFUSED(shmview_attach(conn, "nowhere", SHMVIEW_READ, 0, &none), NOT_FOUND, "'nowhere'");
    REFUSED(shmview_attach(conn, "here", 0, 0, &none), INVALID, "access 0");
    REFUSED(shmview_attach(conn, "here", 4, 0, &none), INVALID, "access 4");
    REFUSED(shmview_attach(conn, "here", -1, 0, &none), INVALID, "access -1");
    REFUSED(shmview_attach(conn, "here", SHMVIEW_READ, SHMVIEW_NO_LOCK, &none), INVALID, "0x1");
    REFUSED(shmview_remove(conn, "nowhere"), NOT_FOUND, "'nowhere'");
    ck_assert_ptr_null(none);
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(a_segment_without_a_lock_has_none)
{
    begin();
    struct shmview_segment *seg = client_create_with(conn, "bare", 10, 0, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_create(conn, "locked", 10);
    OK(shmview_detach(peek));
    AWAIT(daemon_objects(&d) == 1);
    REFUSED(shmview_lock(seg), NO_LOCK, "'bare' was created without a lock");
    REFUSED(shmview_trylock(seg), NO_LOCK, "'bare'");
    REFUSED(shmview_unlock(seg), NO_LOCK, "'bare'");
    struct shmview_segment *locked = client_create(conn, "locked", 10);
    peek = client_attach(conn, "locked", SHMVIEW_PEEK);
    REFUSED(shmview_lock(peek), NO_LOCK, "'locked' is attached with access peek");
    OK(shmview_lock(locked));
    OK(shmview_unlock(locked));
    OK(shmview_detach(peek));
    OK(shmview_detach(locked));
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(handles_in_use_are_busy)
{
    begin();
    struct shmview_segment *a = client_create(conn, "a", 10);
    struct shmview_segment *b = client_attach(conn, "a", SHMVIEW_READ);
    REFUSED(shmview_disconnect(conn), BUSY, "2 segments");
    OK(shmview_lock(a));
    REFUSED(shmview_detach(a), BUSY, "'a'");
    OK(shmview_unlock(a));
    OK(shmview_detach(a));
    REFUSED(shmview_disconnect(conn), BUSY, "1 segment");
    OK(shmview_detach(b));
    OK(shmview_detach(NULL));
    OK(shmview_disconnect(NULL));
    end();
}
END_TEST

/* --- Without the library ------------------------------------------------- */

START_TEST(list_and_describe_tell_the_same)
{
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    json_t *none = raw_call(&raw, "List", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(none, "segments")), 0);
    json_decref(none);
    raw_do(&raw, "Create", "{'name': 'a', 'size': 10}");
    raw_do(&raw, "Create", "{'name': 'b', 'size': 20, 'lock': false, 'lifetime': 'creator'}");
    struct shmview_segment *seg = client_attach(conn, "a", SHMVIEW_PEEK);
    json_t *list = raw_call(&raw, "List", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(list, "segments")), 2);
    size_t i;
    json_t *s;
    json_array_foreach (json_object_get(list, "segments"), i, s) {
        bool a = strcmp(json_string_value(json_object_get(s, "name")), "a") == 0;
        json_t *one = raw_call(&raw, "Describe", a ? "{'name': 'a'}" : "{'name': 'b'}");
        ck_assert(json_equal(json_object_get(one, "segment"), s));
        json_decref(one);
        ck_assert_int_eq(raw_int(s, "size"), a ? 10 : 20);
        ck_assert_int_eq(raw_int(s, "owner"), geteuid());
        ck_assert_int_eq(raw_int(s, "attachments"), a ? 1 : 0);
        ck_assert_int_eq(json_is_true(json_object_get(s, "lock")), a);
        ck_assert_str_eq(json_string_value(json_object_get(s, "lifetime")),
                         a ? "manual" : "creator");
    }
    json_decref(list);
    raw_refused(&raw, "Describe", "{'name': 'c'}", "SegmentNotFound", "'c'");
    OK(shmview_detach(seg));
    OK(shmview_remove(conn, "a"));
    raw_close(&raw);
    end();
}
END_TEST

static json_int_t attachments(struct raw *raw, const char *name)
{
    char parameters[64];
    snprintf(parameters, sizeof parameters, "{'name': '%s'}", name);
    json_t *p = raw_call(raw, "Describe", parameters);
    json_int_t n = raw_int(p, "segment.attachments");
    json_decref(p);
    return n;
}

START_TEST(detach_is_for_attachments_of_this_connection)
{
    struct raw raw, other;
    char parameters[64];
    begin();
    raw_connect(&raw, d.socket);
    raw_connect(&other, d.socket);
    json_t *a = raw_call(&raw, "Create", "{'name': 'a', 'size': 1, 'access': 'write'}");
    snprintf(parameters, sizeof parameters, "{'attachment': %" JSON_INTEGER_FORMAT "}",
             raw_int(a, "attachment.id"));
    json_decref(a);
    raw_do(&other, "Attach", "{'name': 'a', 'access': 'peek'}");
    raw_refused(&other, "Detach", parameters, "NotAttached", "no attachment");
    raw_close(&other);
    AWAIT(attachments(&raw, "a") == 1);
    raw_do(&raw, "Detach", parameters);
    raw_refused(&raw, "Detach", parameters, "NotAttached", "no attachment");
    raw_refused(&raw, "Detach", "{'attachment': 0}", "NotAttached", "no attachment 0");
    raw_refused(&raw, "Attach", "{'name': 'a', 'access': 'read'}", "SegmentNotFound", "'a'");
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(slots_run_out_and_come_back)
{
    struct raw raw;
    struct shmview_segment *none = NULL;
    json_int_t first = -1;
    begin();
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", "{'name': 'full', 'size': 1}");
    for (unsigned i = 0; i < SHMVIEW_SLOTS_MAX; i++) {
        json_t *a = raw_call(&raw, "Attach", "{'name': 'full', 'access': 'read'}");
        ck_assert_uint_eq(raw.n_fds, 3);
        if (i == 0)
            first = raw_int(a, "attachment.id");
        raw_close_fds(&raw);
        json_decref(a);
    }
    raw_refused(&raw, "Attach", "{'name': 'full', 'access': 'write'}", "SlotsExhausted", "1000");
    REFUSED(shmview_attach(conn, "full", SHMVIEW_WRITE, 0, &none), NO_SLOT, "'full' has 1000");
    OK(shmview_detach(client_attach(conn, "full", SHMVIEW_PEEK)));
    char parameters[64];
    snprintf(parameters, sizeof parameters, "{'attachment': %" JSON_INTEGER_FORMAT "}", first);
    raw_do(&raw, "Detach", parameters);
    struct shmview_segment *seg = client_attach(conn, "full", SHMVIEW_WRITE);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    raw_do(&raw, "Remove", "{'name': 'full'}");
    raw_close(&raw);
    AWAIT(daemon_objects(&d) == 0);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(create_states_the_facts),
        SUITE_TEST(bytes_are_zero_again_after_a_namesake),
        SUITE_TEST(create_populates_on_request),
        SUITE_TEST(create_refuses_with_the_cause),
        SUITE_TEST(labels),
        SUITE_TEST(create_leaves_an_object_that_is_not_ours),
        SUITE_TEST(names_have_limits),
        SUITE_TEST(two_clients_see_the_same_bytes),
        SUITE_TEST(peek_and_read_cannot_write),
        SUITE_TEST(attach_refuses_with_the_cause),
        SUITE_TEST(a_segment_without_a_lock_has_none),
        SUITE_TEST(handles_in_use_are_busy),
        SUITE_TEST(list_and_describe_tell_the_same),
        SUITE_TEST(detach_is_for_attachments_of_this_connection),
        SUITE_TEST(slots_run_out_and_come_back),
        SUITE_END,
    };
    return suite_main("lifecycle", tests);
}
