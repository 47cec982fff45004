/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c: names that go, and layouts. */
#include "unit.h"

#include "daemon/segment.h"
#include "faults.h"
#include "segments.h"

/* --- Unnaming ------------------------------------------------------------ */

START_TEST(unname)
{
    struct segment *s = make(100, true);
    struct object before = object_of(s, DATA);
    struct wire_attachment a = attach(s, SHMVIEW_WRITE);
    segment_unname(s);
    struct object after = object_of(s, DATA);
    ck_assert(!s->named);
    ck_assert_str_ne(after.name, before.name);
    unit_assert_holds(after.name, "+78187493520.data");
    ck_assert_uint_eq(unit_objects(), 3);
    struct wire_attachment b = attach(s, SHMVIEW_READ); /* by its id, as a forked child does */
    segment_detach(s, a.slot, 1);
    segment_detach(s, b.slot, 1);
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(unname_that_cannot_rename)
{
    struct segment *s = make(100, false);
    struct wire_attachment a;
    struct frame_descriptors fds;
    faults_begin_call("renameat2", 1, EIO, false);
    segment_unname(s);
    ck_assert(faults_end());
    ck_assert(!s->named);
    ck_assert_uint_eq(unit_objects(), 0); /* at least the name is gone */
    ck_assert_int_lt(segment_attach(s, SHMVIEW_READ, &a, &fds), 0);
    segment_free(s);
}
END_TEST

/* --- Layouts ------------------------------------------------------------- */

static struct wire_view views[2] = {
    {"v", "i", {1, {2}}, {1, {4}}, true, true, 8, false, {0, {0}}},
    {"w", "d", {2, {2, 3}}, {0, {0}}, false, false, 0, false, {0, {0}}},
};

START_TEST(layouts_are_copies)
{
    struct segment *s = make(100, false);
    char name[] = "float", view[] = "A", format[] = "f";
    struct wire_view v = {view, format, {1, {10}}, {0, {0}}, false, false, 4, false, {0, {0}}};
    ck_assert_ptr_null(layouts_find(&s->layouts, "float"));
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){name, &v, 1}), 0);
    memset(name, 'x', 5);
    memset(&v, 0xff, sizeof v);
    view[0] = format[0] = 'x';
    const struct wire_layout *l = layouts_find(&s->layouts, "float");
    ck_assert_ptr_nonnull(l);
    ck_assert_str_eq(l->views[0].name, "A");
    ck_assert_str_eq(l->views[0].format, "f");
    ck_assert_int_eq(l->views[0].offset, 4);
    ck_assert_int_eq(l->views[0].shape.values[0], 10);
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){"none", NULL, 0}), 1);
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){"two", views, 2}), 2);
    ck_assert_uint_eq(layouts_find(&s->layouts, "two")->n_views, 2);
    ck_assert_uint_eq(layouts_find(&s->layouts, "none")->n_views, 0);
    ck_assert_ptr_null(layouts_find(&s->layouts, "tw"));
    struct wire_text all = layouts_text(&s->layouts), last = layouts_text_of_last(&s->layouts);
    static const char begin[] = "{\"name\":\"float\",\"views\":[",
                      none[] = "{\"name\":\"none\",\"views\":[]},";
    ck_assert_int_eq(strncmp(all.bytes, begin, strlen(begin)), 0);
    ck_assert_ptr_nonnull(strstr(all.bytes, none));
    ck_assert_ptr_eq(last.bytes, strstr(all.bytes, none) + strlen(none));
    ck_assert_ptr_eq(last.bytes + last.n, all.bytes + all.n);
    layouts_drop_last(&s->layouts);
    ck_assert_uint_eq(layouts_text(&s->layouts).n, all.n - last.n - 1);
    segment_free(s);
}
END_TEST

START_TEST(every_allocation_of_a_layout_fails)
{
    struct segment *s = make(100, false);
    struct wire_layout layout = {"l", views, 2};
    int r = 0;
    unsigned n;
    for (n = 1; faults_begin(FAULTS_MEMORY, n), r = segment_add_layout(s, &layout), faults_end();
         n++) {
        ck_assert_int_eq(r, -ENOMEM);
        ck_assert_uint_eq(s->layouts.n, 0);
    }
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(r, 0);
    segment_free(s);
}
END_TEST

/* What clients find layouts by; it says nothing of one that was not kept. */
START_TEST(the_table_in_the_control_object)
{
    struct segment *s = make(100, true);
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){"float", views, 2}), 0);
    ck_assert_uint_eq(c->layouts[0], UINT64_C(0xa00a62a942b20165));
    ck_assert_uint_eq(c->layouts[1], 0);
    struct wire_attachment a = attach(s, SHMVIEW_WRITE);
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){"a", views, 2}), 1);
    ck_assert_uint_eq(c->layouts[1], UINT64_C(0xaf63dc4c8601ec8c));
    faults_begin_call("pwrite", 1, EIO, false);
    ck_assert_int_eq(segment_add_layout(s, &(struct wire_layout){"b", views, 2}), -EIO);
    ck_assert(faults_end());
    ck_assert_uint_eq(s->layouts.n, 2);
    ck_assert_uint_eq(c->layouts[2], 0);
    munmap(c, sizeof *c);
    segment_detach(s, a.slot, 1);
    segment_free(s);
}
END_TEST

UNIT_MAIN("segment_layout", UNIT_TEST(unname), UNIT_TEST(the_table_in_the_control_object),
          UNIT_TEST(unname_that_cannot_rename), UNIT_TEST(layouts_are_copies),
          UNIT_TEST(every_allocation_of_a_layout_fails))
