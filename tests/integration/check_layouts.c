/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: declared once, known to everybody who has the segment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define MAX_LAYOUTS 64
#define MAX_VIEWS   256

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void begin(uint64_t size)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "seg", size);
}

static void end(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static const int64_t hundred[] = {100};
static const int64_t grid[] = {5, 20};
static const int64_t backwards[] = {-80, 4};

static const struct shmview_view_spec floats[] = {
    {.name = "A", .format = "float32", .ndim = 1, .shape = hundred},
    {.name = "B", .format = "<f4", .offset = 400, .ndim = 2, .shape = grid},
    {.name = "C",
     .format = "f",
     .offset = 1120,
     .ndim = 2,
     .shape = grid,
     .strides = backwards,
     .flags = SHMVIEW_VIEW_READ_ONLY},
};
static const struct shmview_view_spec ints[] = {
    {.name = "D", .format = "i", .ndim = 1, .shape = hundred},
    {.name = "E", .format = "int64", .offset = 400, .ndim = 1, .shape = hundred},
    {.name = "zero", .format = "d", .offset = 8},
};

static void define_both(void)
{
    OK(shmview_define(seg, "float", floats, 3));
    OK(shmview_define(seg, "int", ints, 3));
}

/* --- What is declared is what is opened ---------------------------------- */

static void expect_both(struct shmview_segment *of)
{
    struct shmview_view v;
    unsigned char *base = shmview_data(of);
    OK(shmview_view_open(of, "float", "A", &v));
    ck_assert_ptr_eq(v.data, base);
    ck_assert_ptr_eq(v.segment, of);
    ck_assert_str_eq(v.format, "f");
    ck_assert_uint_eq(v.dtype, SHMVIEW_FLOAT32);
    ck_assert_uint_eq(v.nbytes, 400);
    ck_assert_uint_eq(v.layout, 0);
    ck_assert_uint_eq(v.flags, shmview_access(of) == SHMVIEW_WRITE ? 0 : SHMVIEW_VIEW_READ_ONLY);
    OK(shmview_view_open(of, "float", "B", &v));
    ck_assert_ptr_eq(v.data, base + 400);
    ck_assert_int_eq(v.strides[0], 80);
    ck_assert_int_eq(v.strides[1], 4);
    OK(shmview_view_open(of, "float", "C", &v));
    ck_assert_ptr_eq(v.data, base + 1120);
    ck_assert_int_eq(v.shape[0], 5);
    ck_assert_int_eq(v.strides[0], -80);
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    OK(shmview_view_open(of, "int", "D", &v));
    ck_assert_uint_eq(v.dtype, SHMVIEW_INT32);
    ck_assert_uint_eq(v.layout, 1);
    ck_assert_ptr_eq(v.data, base);
    OK(shmview_view_open(of, "int", "zero", &v));
    ck_assert_uint_eq(v.ndim, 0);
    ck_assert_uint_eq(v.nbytes, 8);
}

START_TEST(views_open_as_they_were_declared)
{
    begin(1200);
    define_both();
    expect_both(seg);
    end();
}
END_TEST

START_TEST(layouts_overlap_like_a_union)
{
    struct shmview_view a, b_of_int;
    int bits;
    begin(1200);
    define_both();
    OK(shmview_view_open(seg, "float", "A", &a));
    OK(shmview_view_open(seg, "int", "D", &b_of_int));
    SHMVIEW_DATA(float, &a)[3] = 1.0f;
    /* as bytes, because a compiler assumes that no int is read where a float was written */
    memcpy(&bits, (const char *)b_of_int.data + 3 * sizeof bits, sizeof bits);
    ck_assert_int_eq(bits, 0x3f800000);
    end();
}
END_TEST

static void expect_both_in_child(struct child *me, void *arg)
{
    struct shmview_view v;
    const int *access = arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *mine = client_attach(c, "seg", *access);
    REFUSED(shmview_view_open(mine, "float", "A", &v), NO_LAYOUT, "'A' in a layout 'float'");
    child_tell(me, 1);
    child_pause(me);
    expect_both(mine); /* declared since */
    struct shmview_segment *again = client_attach(c, "seg", *access);
    expect_both(again); /* declared before */
    OK(shmview_detach(again));
    OK(shmview_detach(mine));
    OK(shmview_disconnect(c));
}

START_TEST(others_see_a_layout_that_is_declared_later)
{
    int access[] = {SHMVIEW_PEEK, SHMVIEW_WRITE};
    struct child children[2];
    begin(1200);
    for (int i = 0; i < 2; i++) {
        child_start(&children[i], expect_both_in_child, &access[i]);
        child_hear(&children[i], 1);
    }
    define_both();
    for (int i = 0; i < 2; i++) {
        child_cue(&children[i]);
        child_wait(&children[i]);
    }
    end();
}
END_TEST

START_TEST(open_views_outlive_a_refresh)
{
    struct shmview_view a, d_of_int;
    begin(1200);
    struct shmview_segment *peek = client_attach(conn, "seg", SHMVIEW_PEEK);
    OK(shmview_define(seg, "float", floats, 3));
    OK(shmview_view_open(peek, "float", "A", &a));
    OK(shmview_define(seg, "int", ints, 3));
    OK(shmview_view_open(peek, "int", "D", &d_of_int));
    ck_assert_ptr_eq(a.data, shmview_data(peek));
    ck_assert_str_eq(a.format, "f");
    OK(shmview_detach(peek));
    end();
}
END_TEST

START_TEST(describe_tells_the_layouts_in_order)
{
    struct raw raw;
    begin(1200);
    define_both();
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Describe", "{'name': 'seg'}");
    const json_t *layouts = json_object_get(told, "layouts");
    ck_assert_uint_eq(json_array_size(layouts), 2);
    const json_t *first = json_array_get(layouts, 0), *second = json_array_get(layouts, 1);
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "float");
    ck_assert_str_eq(json_string_value(json_object_get(second, "name")), "int");
    const json_t *views = json_object_get(first, "views");
    ck_assert_uint_eq(json_array_size(views), 3);
    const json_t *b = json_array_get(views, 1), *c = json_array_get(views, 2);
    ck_assert_str_eq(json_string_value(json_object_get(b, "format")), "f"); /* "<f4" */
    ck_assert_int_eq(raw_int(b, "offset"), 400);
    ck_assert_ptr_null(json_object_get(b, "strides"));
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(c, "strides"), 0)), -80);
    ck_assert(json_is_true(json_object_get(c, "readonly")));
    json_decref(told);
    raw_close(&raw);
    end();
}
END_TEST

/* --- What is refused ----------------------------------------------------- */

struct refused_view {
    struct shmview_view_spec spec;
    int error;
    const char *part;
    const char *wire; /* the error on the socket */
    const char *json; /* the same as a member of a layout */
};

static const int64_t thousand_one[] = {1001};
static const int64_t minus[] = {-1};
static const int64_t huge[] = {INT64_MAX, 2};
static const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t odd[] = {6};
static const int64_t back[] = {-4};

static const struct refused_view refused_views[] = {
    {{.name = "v", .format = "f", .ndim = 1, .shape = thousand_one},
     SHMVIEW_ERR_BOUNDS,
     "view 'v': dimension 0 ends at byte 4004, the segment has 4000 bytes",
     "ViewOutOfBounds",
     "'format': 'f', 'shape': [1001]"},
    {{.name = "v", .format = "d", .offset = 4004, .ndim = 0},
     SHMVIEW_ERR_MISALIGNED,
     "view 'v': byte 4004 is not a multiple of 8",
     "MisalignedView",
     "'format': 'd', 'shape': [], 'offset': 4004"},
    {{.name = "v", .format = "f", .ndim = 1, .shape = hundred, .strides = odd},
     SHMVIEW_ERR_MISALIGNED,
     "view 'v': dimension 0: stride 6 puts element 1 at byte 6",
     "MisalignedView",
     "'format': 'f', 'shape': [100], 'strides': [6]"},
    {{.name = "v", .format = "f", .offset = 392, .ndim = 1, .shape = hundred, .strides = back},
     SHMVIEW_ERR_BOUNDS,
     "view 'v': dimension 0 starts at byte -4",
     "ViewOutOfBounds",
     "'format': 'f', 'offset': 392, 'shape': [100], 'strides': [-4]"},
    {{.name = "v", .format = "y", .ndim = 1, .shape = hundred},
     SHMVIEW_ERR_FORMAT,
     "view 'v': format \"y\": character 0",
     "InvalidFormat",
     "'format': 'y', 'shape': [100]"},
    {{.name = "v", .format = "f", .ndim = 2, .shape = huge},
     SHMVIEW_ERR_OVERFLOW,
     "view 'v': dimension 0",
     "ViewOverflow",
     "'format': 'f', 'shape': [9223372036854775807, 2]"},
    {{.name = "v", .format = "f", .ndim = 1, .shape = minus},
     SHMVIEW_ERR_INVALID,
     "view 'v': dimension 0: length -1 < 0",
     "org.varlink.service.InvalidParameter",
     "'format': 'f', 'shape': [-1]"},
    {{.name = "v", .format = "f", .ndim = 9, .shape = nine},
     SHMVIEW_ERR_INVALID,
     "9 dimensions",
     "org.varlink.service.InvalidParameter",
     "'format': 'f', 'shape': [1, 1, 1, 1, 1, 1, 1, 1, 1]"},
    {{.name = ".v", .format = "f"},
     SHMVIEW_ERR_INVALID,
     "'.v' is not a valid name",
     "org.varlink.service.InvalidParameter",
     NULL},
    {{.name = "", .format = "f"},
     SHMVIEW_ERR_INVALID,
     "'' is not a valid name",
     "org.varlink.service.InvalidParameter",
     NULL},
};
#define N_REFUSED (sizeof refused_views / sizeof refused_views[0])

START_TEST(define_refuses_and_names_the_byte)
{
    begin(4000);
    for (size_t i = 0; i < N_REFUSED; i++) {
        struct shmview_view_spec both[] = {floats[0], refused_views[i].spec};
        client_expect(shmview_define(seg, "bad", both, 2), -refused_views[i].error,
                      refused_views[i].part, refused_views[i].part);
    }
    OK(shmview_define(seg, "bad", floats, 1)); /* nothing was declared */
    end();
}
END_TEST

START_TEST(the_daemon_refuses_the_same_for_itself)
{
    struct raw raw;
    char *parameters;
    begin(4000);
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Attach", "{'name': 'seg', 'access': 'write'}");
    for (size_t i = 0; i < N_REFUSED; i++) {
        const struct refused_view *r = &refused_views[i];
        ck_assert_int_gt(asprintf(&parameters,
                                  "{'name': 'seg', 'layout': {'name': 'bad', 'views': ["
                                  "{'name': 'ok', 'format': 'b', 'shape': [1]},"
                                  "{'name': '%s', %s}]}}",
                                  r->spec.name, r->json ? r->json : "'format': 'f', 'shape': []"),
                         0);
        raw_refused(&raw, "DefineLayout", parameters, r->wire, r->part);
        free(parameters);
    }
    json_t *told = raw_call(&raw, "Describe", "{'name': 'seg'}");
    ck_assert_uint_eq(json_array_size(json_object_get(told, "layouts")), 0);
    json_decref(told);
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(errors_tell_the_view_at_fault)
{
    struct raw raw;
    begin(4000);
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Attach", "{'name': 'seg', 'access': 'write'}");
    ck_assert(raw_send_call(&raw, "DefineLayout",
                            "{'name': 'seg', 'layout': {'name': 'l', 'views': ["
                            "{'name': 'far', 'format': 'b', 'shape': [4001]}]}}"));
    json_t *p = raw_receive_error(&raw, "ViewOutOfBounds", "4001");
    ck_assert_str_eq(json_string_value(json_object_get(p, "view")), "far");
    json_decref(p);
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(names_are_unique_and_limited)
{
    char longest[66];
    struct shmview_view_spec twice[] = {floats[0], floats[0]};
    begin(4000);
    memset(longest, 'n', 65);
    longest[64] = '\0';
    OK(shmview_define(seg, longest, floats, 3));
    REFUSED(shmview_define(seg, longest, ints, 3), LAYOUT_EXISTS, longest);
    longest[64] = 'n';
    longest[65] = '\0';
    REFUSED(shmview_define(seg, longest, floats, 3), INVALID, "1 to 64");
    REFUSED(shmview_define(seg, "", floats, 3), INVALID, "1 to 64");
    REFUSED(shmview_define(seg, NULL, floats, 3), INVALID, "1 to 64");
    REFUSED(shmview_define(seg, "a/b", floats, 3), INVALID, "'a/b'");
    REFUSED(shmview_define(seg, "twice", twice, 2), INVALID, "two views 'A'");
    twice[1].name = NULL;
    REFUSED(shmview_define(seg, "null", twice, 2), INVALID, "(null)");
    end();
}
END_TEST

START_TEST(declaring_needs_write)
{
    struct raw raw;
    begin(4000);
    for (int access = SHMVIEW_PEEK; access < SHMVIEW_WRITE; access++) {
        struct shmview_segment *other = client_attach(conn, "seg", access);
        REFUSED(shmview_define(other, "l", floats, 3), READ_ONLY,
                access == SHMVIEW_PEEK ? "access peek" : "access read");
        OK(shmview_detach(other));
    }
    raw_connect(&raw, d.socket);
    const char *l = "{'name': 'seg', 'layout': {'name': 'l', 'views': []}}";
    raw_refused(&raw, "DefineLayout", l, "org.varlink.service.PermissionDenied", "write");
    raw_do(&raw, "Attach", "{'name': 'seg', 'access': 'read'}");
    raw_refused(&raw, "DefineLayout", l, "org.varlink.service.PermissionDenied", "write");
    raw_refused(&raw, "DefineLayout", "{'name': 'no', 'layout': {'name': 'l', 'views': []}}",
                "SegmentNotFound", "'no'");
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(unknown_layouts_and_views_are_refused)
{
    struct shmview_view v = {.ndim = 77};
    begin(1200);
    define_both();
    REFUSED(shmview_view_open(seg, "float", "D", &v), NO_LAYOUT, "'D' in a layout 'float'");
    REFUSED(shmview_view_open(seg, "none", "A", &v), NO_LAYOUT, "'A' in a layout 'none'");
    OK(shmview_remove(conn, "seg"));
    OK(shmview_view_open(seg, "int", "E", &v)); /* known already */
    REFUSED(shmview_view_open(seg, "none", "A", &v), NO_LAYOUT, "'A' in a layout 'none'");
    struct shmview_segment *namesake = client_create(conn, "seg", 10);
    REFUSED(shmview_view_open(seg, "none", "A", &v), NO_LAYOUT, "'A' in a layout 'none'");
    OK(shmview_detach(namesake));
    end();
}
END_TEST

/* The old one is declared on by its id: its name leads elsewhere. */
START_TEST(a_handle_never_declares_on_a_namesake)
{
    struct shmview_view v;
    begin(4000);
    OK(shmview_remove(conn, "seg"));
    struct shmview_segment *namesake = client_create(conn, "seg", 4000);
    OK(shmview_define(seg, "stray", floats, 3));
    OK(shmview_view_open(seg, "stray", "A", &v));
    REFUSED(shmview_view_open(namesake, "stray", "A", &v), NO_LAYOUT, "'stray'");
    OK(shmview_detach(namesake));
    end();
}
END_TEST

/* --- Limits -------------------------------------------------------------- */

static struct shmview_view_spec *many_views(size_t n, char (*names)[32])
{
    static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t steps[8] = {-4000000, 4000000, -4000000, 4000000, 4, 4, 4, 4};
    struct shmview_view_spec *views = calloc(n, sizeof *views);
    ck_assert_ptr_nonnull(views);
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "view-%zu", i);
        views[i] = (struct shmview_view_spec){.name = names[i],
                                              .format = "f",
                                              .offset = 4 * i,
                                              .ndim = 8,
                                              .shape = ones,
                                              .strides = steps};
    }
    return views;
}

START_TEST(as_many_views_and_layouts_as_the_limits_say)
{
    static char names[MAX_VIEWS + 1][32];
    char layout[24];
    struct shmview_view v;
    begin(8192);
    struct shmview_view_spec *views = many_views(MAX_VIEWS + 1, names);
    REFUSED(shmview_define(seg, "too-many", views, MAX_VIEWS + 1), LIMIT, "257 views");
    for (int i = 0; i < MAX_LAYOUTS; i++) {
        snprintf(layout, sizeof layout, "layout-%d", i);
        OK(shmview_define(seg, layout, views, MAX_VIEWS));
    }
    REFUSED(shmview_define(seg, "one-more", views, 1), LIMIT, "64 layouts");
    /* megabytes of reply, the descriptors with its first byte */
    struct shmview_segment *other = client_attach(conn, "seg", SHMVIEW_WRITE);
    for (size_t i = 0; i < MAX_VIEWS; i++) {
        OK(shmview_view_open(other, "layout-63", names[i], &v));
        ck_assert_ptr_eq(v.data, (unsigned char *)shmview_data(other) + 4 * i);
        ck_assert_uint_eq(v.layout, 63);
        ck_assert_int_eq(v.strides[0], -4000000);
    }
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    OK(shmview_view_open(seg, "layout-0", names[255], &v)); /* a refresh */
    free(views);
    end();
}
END_TEST

/* A request of more than 256 KiB is an error of this call. One that is slightly shorter, which a
 * thread of the daemon reads, leads to the same views as a short one. */
START_TEST(a_layout_is_as_long_as_a_request)
{
    static char names[MAX_VIEWS][32];
    static char format[1024];
    struct shmview_view v;
    begin(8192);
    struct shmview_view_spec *views = many_views(MAX_VIEWS, names);
    char *at = stpcpy(format, "T{");
    while (at < format + 900)
        at += sprintf(at, "d:a_component%03d:", (int)(at - format));
    strcpy(at, "}");
    for (size_t i = 0; i < MAX_VIEWS; i++)
        views[i] = (struct shmview_view_spec){.name = names[i], .format = format, .offset = 8 * i};
    OK(shmview_define(seg, "long", views, MAX_VIEWS));
    OK(shmview_view_open(seg, "long", names[200], &v));
    ck_assert_ptr_eq(v.data, (unsigned char *)shmview_data(seg) + 8 * 200);
    views[200].offset = 8192;
    REFUSED(shmview_define(seg, "outside", views, MAX_VIEWS), BOUNDS, names[200]);
    views[200].offset = 0;
    while (at < format + 980) /* valid, but all together are too long */
        at += sprintf(at, "d:a_component%03d:", (int)(at - format));
    strcpy(at, "}");
    REFUSED(shmview_define(seg, "longer", views, MAX_VIEWS), LIMIT, "it may have 262144");
    OK(shmview_define(seg, "short", views, 1));
    free(views);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(views_open_as_they_were_declared),
        SUITE_TEST(layouts_overlap_like_a_union),
        SUITE_TEST(others_see_a_layout_that_is_declared_later),
        SUITE_TEST(open_views_outlive_a_refresh),
        SUITE_TEST(describe_tells_the_layouts_in_order),
        SUITE_TEST(define_refuses_and_names_the_byte),
        SUITE_TEST(the_daemon_refuses_the_same_for_itself),
        SUITE_TEST(errors_tell_the_view_at_fault),
        SUITE_TEST(names_are_unique_and_limited),
        SUITE_TEST(declaring_needs_write),
        SUITE_TEST(unknown_layouts_and_views_are_refused),
        SUITE_TEST(a_handle_never_declares_on_a_namesake),
        SUITE_TEST(as_many_views_and_layouts_as_the_limits_say),
        SUITE_TEST(a_layout_is_as_long_as_a_request),
        SUITE_END,
    };
    return suite_main("layouts", tests);
}
