/* SPDX-License-Identifier: Apache-2.0 */
/* Checks wire.c when memory runs out: whatever the result, nothing leaks. */
#include "unit/unit.h"

#include "common/wire/wire.h"
#include "unit/faults.h"

START_TEST(every_allocation_of_a_call_fails)
{
    struct wire_view views[2] = {
        {"v", "i", true, {.offset = 8, .ndim = 1, .indirect = true, .shape = {2}, .strides = {4}}},
        {"w", "d", false, {.ndim = 2, .shape = {2, 3}}}};
    struct wire_define define = {"seg", {"l", views, 2}, 3};
    char *text = NULL;
    unsigned n;
    for (n = 1; faults_begin(FAULTS_MEMORY, n), text = wire_define_text(&define), faults_end(); n++)
        ck_assert_ptr_null(text);
    ck_assert_uint_gt(n, 1);
    struct wire_call call;
    struct wire_define got;
    struct wire_fault fault;
    int r = 0;
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        (r = wire_call_parse(&call, text, strlen(text), &fault)) ||
                    (r = wire_read_define(call.parameters, &got, &fault)),
        faults_end();
         n++) {
        ck_assert_int_eq(r, -1);
        ck_assert(fault.no_memory);
        wire_call_deinit(&call);
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_gt(n, 30);
    ck_assert_uint_eq(got.layout.n_views, 2);
    free(got.layout.views);
    wire_call_deinit(&call);
    free(text);
}
END_TEST

START_TEST(every_allocation_of_a_reply_fails)
{
    struct wire_view view = {"v",
                             "i",
                             true,
                             {.offset = 8,
                              .ndim = 1,
                              .read_only = true,
                              .indirect = true,
                              .shape = {2},
                              .strides = {4},
                              .suboffsets = {-1}}};
    struct wire_layout layout = {"l", &view, 1};
    struct wire_text layouts;
    struct wire_attachment from = {.id = 5,
                                   .descriptors = 3,
                                   .control = 1,
                                   .liveness = 2,
                                   .slot = 1,
                                   .generation = 1,
                                   .access = 3},
                           a;
    const struct shmview_description of = {.name = "s", .lifetime = SHMVIEW_MANUAL};
    size_t bytes;
    char *text = NULL, *layouts_text;
    unsigned n;
    int r = 0;
    for (n = 1; faults_begin(FAULTS_MEMORY, n), layouts_text = wire_layout_text(&layout, &bytes),
        faults_end();
         n++)
        free(layouts_text);
    layouts = (struct wire_text){layouts_text, bytes - 1};
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        text = wire_attached_text(&of, NULL, 0, &from, &layouts, &bytes), faults_end();
         n++)
        free(text);
    free(layouts_text);
    struct wire_reply reply;
    struct wire_fault fault;
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        (r = wire_reply_parse(&reply, text, bytes - 1, &fault)) ||
                    (r = wire_read_attachment(reply.parameters, "attachment", &a, &fault)),
        faults_end();
         n++) {
        ck_assert_int_eq(r, -1);
        ck_assert(fault.no_memory);
        wire_reply_deinit(&reply);
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_gt(n, 30);
    char *array = wire_attached_layouts(reply.parameters);
    struct wire_layout *list;
    json_t *root;
    size_t n_layouts;
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        r = wire_layouts_parse(array, strlen(array), &root, &list, &n_layouts, &fault),
        faults_end();
         n++) {
        ck_assert_int_eq(r, -1);
        ck_assert(fault.no_memory);
    }
    ck_assert_uint_eq(n_layouts, 1);
    wire_layouts_free(list, n_layouts);
    json_decref(root);
    free(array);
    wire_reply_deinit(&reply);
    free(text);
}
END_TEST

UNIT_MAIN("wire_memory", UNIT_TEST(every_allocation_of_a_call_fails),
          UNIT_TEST(every_allocation_of_a_reply_fails))
