/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment.c of the daemon: names that are removed, and layouts. */
#include "unit/unit.h"

#include "common/base/util.h"
#include "common/wire/wire.h"
#include "daemon/segments/segment.h"
#include "unit/faults.h"
#include "unit/segments.h"

/* --- Unnaming ------------------------------------------------------------ */

START_TEST(unname)
{
    struct segment *s = make(100, true);
    struct object before = object_of(s, DATA);
    struct segment_grip a = attach(s, SHMVIEW_WRITE);
    segment_unname(s);
    struct object after = object_of(s, DATA);
    ck_assert(!s->named);
    ck_assert_str_ne(after.name, before.name);
    unit_assert_holds(after.name, "+78187493520.data");
    ck_assert_uint_eq(unit_objects(), 3);
    struct segment_grip b = attach(s, SHMVIEW_READ); /* by its id, as a forked child attaches */
    segment_detach(s, a.slot);
    segment_detach(s, b.slot);
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(unname_that_cannot_rename)
{
    struct segment *s = make(100, false);
    struct segment_grip a;
    faults_begin_call("renameat2", 1, EIO, false);
    segment_unname(s);
    ck_assert(faults_end());
    ck_assert(!s->named);
    ck_assert_uint_eq(unit_objects(), 0); /* at least its name is free */
    ck_assert_int_lt(segment_attach(s, SHMVIEW_READ, &a), 0);
    segment_free(s);
}
END_TEST

/* --- Layouts ------------------------------------------------------------- */

static struct wire_view views[2] = {
    {"v", "i", true, {.ndim = 1, .shape = {2}, .strides = {4}, .read_only = true, .offset = 8}},
    {"w", "d", false, {.ndim = 2, .shape = {2, 3}}},
};

static int add(struct segment *s, const char *name, const struct wire_view *list, size_t n)
{
    size_t bytes;
    struct wire_layout layout = {name, (struct wire_view *)(uintptr_t)list, n};
    CLEANUP_FREE char *text = wire_layout_text(&layout, &bytes);
    return segment_add_layout(s, name, text, bytes);
}

START_TEST(layouts_are_copies)
{
    static const char none[] = "{\"name\":\"none\",\"views\":[]}";
    struct segment *s = make(100, false);
    char name[] = "none", text[sizeof none];
    strcpy(text, none);
    ck_assert_ptr_null(layouts_find(&s->layouts, "none"));
    size_t n_all, n_first, n_last, n_part, end;
    layouts_text(&s->layouts, 0, SIZE_MAX, &n_all, &end);
    ck_assert_uint_eq(n_all, 0);
    ck_assert_int_eq(segment_add_layout(s, name, text, sizeof text), 0);
    memset(name, 'x', sizeof name - 1);
    memset(text, 'x', sizeof text);
    const struct layout *l = layouts_find(&s->layouts, "none");
    ck_assert_ptr_nonnull(l);
    ck_assert_str_eq(l->name, "none");
    ck_assert_int_eq(add(s, "two", views, 2), 1);
    ck_assert_ptr_null(layouts_find(&s->layouts, "tw"));
    const char *all = layouts_text(&s->layouts, 0, SIZE_MAX, &n_all, &end),
               *last = layouts_text_of(&s->layouts, &s->layouts.list[1], &n_last);
    layouts_text_of(&s->layouts, &s->layouts.list[0], &n_first);
    static const char begin[] = "{\"name\":\"two\",\"views\":[{\"name\":\"v\",\"format\":\"i\",";
    ck_assert_uint_eq(n_first, strlen(none));
    ck_assert_int_eq(memcmp(all, none, n_first), 0);
    ck_assert_int_eq(all[n_first], ',');
    ck_assert_ptr_eq(last, all + n_first + 1);
    ck_assert_int_eq(strncmp(last, begin, strlen(begin)), 0);
    ck_assert_ptr_eq(last + n_last, all + n_all);
    ck_assert_uint_eq(s->layouts.text_bytes, n_all + 1);
    ck_assert_uint_eq(end, 2);
    ck_assert_ptr_eq(layouts_text(&s->layouts, 0, n_all - 1, &n_part, &end), all);
    ck_assert_uint_eq(n_part, n_first); /* they fit only one by one */
    ck_assert_uint_eq(end, 1);
    ck_assert_ptr_eq(layouts_text(&s->layouts, 1, 0, &n_part, &end), last);
    ck_assert_uint_eq(n_part, n_last);
    ck_assert_uint_eq(end, 2);
    layouts_text(&s->layouts, 2, SIZE_MAX, &n_part, &end);
    ck_assert_uint_eq(n_part, 0);
    ck_assert_uint_eq(end, 2);
    layouts_drop_last(&s->layouts);
    layouts_text(&s->layouts, 0, SIZE_MAX, &n_all, &end);
    ck_assert_uint_eq(n_all, n_first);
    layouts_drop_last(&s->layouts);
    ck_assert_uint_eq(s->layouts.text_bytes, 0);
    segment_free(s);
}
END_TEST

START_TEST(every_allocation_of_a_layout_fails)
{
    struct segment *s = make(100, false);
    int r = 0;
    unsigned n;
    for (n = 1;
         faults_begin(FAULTS_MEMORY, n), r = segment_add_layout(s, "l", "{}", 3), faults_end();
         n++) {
        ck_assert_int_eq(r, -ENOMEM);
        ck_assert_uint_eq(s->layouts.n, 0);
        ck_assert_uint_eq(s->layouts.text_bytes, 0);
    }
    ck_assert_uint_eq(n, 4);
    ck_assert_int_eq(r, 0);
    segment_free(s);
}
END_TEST

/* Clients find layouts by this table, which must omit a layout that was not stored. */
START_TEST(the_table_in_the_control_object)
{
    struct segment *s = make(100, true);
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    ck_assert_int_eq(add(s, "float", views, 2), 0);
    ck_assert_uint_eq(c->layouts[0], UINT64_C(0xa00a62a942b20165));
    ck_assert_uint_eq(c->layouts[1], 0);
    struct segment_grip a = attach(s, SHMVIEW_WRITE);
    ck_assert_int_eq(add(s, "a", views, 2), 1);
    ck_assert_uint_eq(c->layouts[1], UINT64_C(0xaf63dc4c8601ec8c));
    faults_begin_call("process_vm_writev", 1, EIO, true);
    ck_assert_int_eq(add(s, "b", views, 2), -EIO);
    ck_assert(faults_end());
    ck_assert_uint_eq(s->layouts.n, 2);
    ck_assert_uint_eq(c->layouts[2], 0);
    munmap(c, sizeof *c);
    segment_detach(s, a.slot);
    segment_free(s);
}
END_TEST

/* A part has as many layouts as a reply, so that another layout moves at most that. */
START_TEST(long_texts_are_in_parts)
{
    enum {
        LONG = 20000,
        LONGEST = 100000
    };
    static char text[LONGEST + 1];
    struct layouts layouts = {0};
    size_t n, end;
    memset(text, 'a', LONGEST);
    for (int i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), '\0'};
        text[LONG] = '\0';
        ck_assert_int_eq(layouts_add(&layouts, name, text, LONG + 1), i);
    }
    text[LONG] = 'a';
    ck_assert_int_eq(layouts_add(&layouts, "e", text, LONGEST + 1), 4);
    const char *all = layouts_text(&layouts, 0, SIZE_MAX, &n, &end);
    ck_assert_uint_eq(end, 3);
    ck_assert_uint_eq(n, 3 * LONG + 2);
    ck_assert_ptr_eq(layouts_text(&layouts, 2, SIZE_MAX, &n, &end), all + 2 * (LONG + 1));
    ck_assert_uint_eq(end, 3);
    ck_assert_int_eq(memcmp(layouts_text(&layouts, 3, SIZE_MAX, &n, &end), text, LONG), 0);
    ck_assert_uint_eq(end, 4);
    ck_assert_uint_eq(n, LONG);
    ck_assert_int_eq(memcmp(layouts_text(&layouts, 4, 0, &n, &end), text, LONGEST), 0);
    ck_assert_uint_eq(n, LONGEST);
    layouts_drop_last(&layouts);
    layouts_drop_last(&layouts);
    ck_assert_uint_eq(layouts.text_bytes, 3 * (LONG + 1));
    ck_assert_ptr_eq(layouts_text(&layouts, 0, SIZE_MAX, &n, &end), all);
    layouts_deinit(&layouts);
}
END_TEST

UNIT_MAIN("segment_layout", UNIT_TEST(unname), UNIT_TEST(the_table_in_the_control_object),
          UNIT_TEST(unname_that_cannot_rename), UNIT_TEST(layouts_are_copies),
          UNIT_TEST(every_allocation_of_a_layout_fails), UNIT_TEST(long_texts_are_in_parts))
