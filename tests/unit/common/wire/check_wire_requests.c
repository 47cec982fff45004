/* SPDX-License-Identifier: Apache-2.0 */
/* Checks wire.c: requests, which the library writes and the daemon reads. */
#include "unit/unit.h"

#include <shmview/layout.h>

#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/wire/wire.h"

#include "unit/long_layout.h"

/* Writes and parses the text of a call, as on a socket. Returns the call, which the caller
 * frees. */
static struct wire_call travel(const char *method, char *text)
{
    struct wire_call call;
    struct wire_fault fault;
    ck_assert_ptr_nonnull(text);
    size_t n = strlen(text);
    ck_assert_uint_lt(n, LIMIT_REQUEST_BYTES);
    ck_assert_int_eq(wire_call_parse(&call, text, n, &fault), 0);
    ck_assert_str_eq(call.method, method);
    free(text);
    return call;
}

START_TEST(create)
{
    fill_names();
    const char *names[] = {"a", name_128};
    const int64_t sizes[] = {1, 4096, (int64_t)LIMIT_SEGMENT_BYTES};
    for (int i = 0; i < 2 * 3 * 4 * 4 * 2; i++) {
        struct wire_acl_entry acl[] = {{.user = 7, .is_user = true, .right = WIRE_RIGHT_READ},
                                       {.is_group = true, .right = WIRE_RIGHT_NONE}};
        struct wire_create from = {.name = names[i % 2],
                                   .size = sizes[i / 2 % 3],
                                   .access = i / 6 % 4,
                                   .lifetime = i / 24 % 4,
                                   .lock = i / 96,
                                   .populate = i % 2,
                                   .grant = {.mode = i % 5 ? i : WIRE_ABSENT,
                                             .owner = i % 7 ? i : WIRE_ABSENT,
                                             .group = i % 3 ? i : WIRE_ABSENT,
                                             .acl = i % 4 ? acl : NULL,
                                             .n_acl = (size_t)(i % 4 ? i % 4 - 1 : 0)}},
                           to;
        struct wire_fault fault;
        struct wire_call call = travel("io.shmview.Create", wire_create_text(&from));
        ck_assert_int_eq(wire_read_create(call.parameters, &to, &fault), 0);
        ck_assert_str_eq(to.name, from.name);
        ck_assert_int_eq(to.size, from.size);
        ck_assert_int_eq(to.access, from.access);
        ck_assert_int_eq(to.lifetime, from.lifetime);
        ck_assert_int_eq(to.lock, from.lock);
        ck_assert_int_eq(to.populate, from.populate);
        ck_assert_int_eq(to.grant.mode, from.grant.mode);
        ck_assert_int_eq(to.grant.owner, from.grant.owner);
        ck_assert_int_eq(to.grant.group, from.grant.group);
        ck_assert_uint_eq(to.grant.n_acl, from.grant.n_acl);
        ck_assert_int_eq(to.grant.acl == NULL, from.grant.acl == NULL);
        for (size_t k = 0; k < to.grant.n_acl; k++) {
            ck_assert_int_eq(to.grant.acl[k].is_user, acl[k].is_user);
            ck_assert_int_eq(to.grant.acl[k].is_group, acl[k].is_group);
            ck_assert_int_eq(to.grant.acl[k].user, acl[k].user);
            ck_assert_int_eq(to.grant.acl[k].right, acl[k].right);
        }
        free(to.grant.acl);
        wire_call_deinit(&call);
    }
}
END_TEST

START_TEST(attach)
{
    const int64_t ids[] = {WIRE_ABSENT, 0, 1, INT64_MAX};
    for (int64_t access = 1; access <= 3; access++)
        for (size_t i = 0; i < 4; i++) {
            struct wire_attach from = {"seg", access, ids[i]}, to;
            struct wire_fault fault;
            struct wire_call call = travel("io.shmview.Attach", wire_attach_text(&from));
            ck_assert_int_eq(wire_read_attach(call.parameters, &to, &fault), 0);
            ck_assert_str_eq(to.name, "seg");
            ck_assert_int_eq(to.access, access);
            ck_assert_int_eq(to.id, ids[i]);
            wire_call_deinit(&call);
        }
}
END_TEST

START_TEST(define_layout)
{
    struct wire_define from = {name_128, longest_layout(), INT64_MAX}, to;
    struct wire_fault fault;
    struct wire_call call = travel("io.shmview.DefineLayout", wire_define_text(&from));
    ck_assert_int_eq(wire_read_define(call.parameters, &to, &fault), 0);
    ck_assert_str_eq(to.name, name_128);
    ck_assert_int_eq(to.id, INT64_MAX);
    ck_assert_str_eq(to.layout.name, name_64);
    ck_assert_uint_eq(to.layout.n_views, LIMIT_VIEWS);
    for (size_t i = 0; i < LIMIT_VIEWS; i++)
        assert_same_view(&to.layout.views[i], &from.layout.views[i]);
    free(to.layout.views);
    free(from.layout.views);
    wire_call_deinit(&call);
}
END_TEST

/* Each view weighs 54, which LIMIT_JSON_WEIGHT assumes. */
START_TEST(layout_with_the_most_values)
{
    struct wire_define from = {name_128, longest_layout(), INT64_MAX}, to;
    struct wire_fault fault;
    for (size_t i = 0; i < LIMIT_VIEWS; i++) {
        struct wire_view *v = &from.layout.views[i];
        v->desc.ndim = 8;
        v->has_strides = v->desc.indirect = v->desc.read_only = true;
    }
    struct wire_call call = travel("io.shmview.DefineLayout", wire_define_text(&from));
    const json_t *views = json_object_get(json_object_get(call.parameters, "layout"), "views");
    const json_t *view = json_array_get(views, LIMIT_VIEWS - 1);
    ck_assert_uint_eq(json_object_size(view), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(view, "suboffsets")), 8);
    ck_assert_int_eq(wire_read_define(call.parameters, &to, &fault), 0);
    ck_assert_uint_eq(to.layout.n_views, LIMIT_VIEWS);
    free(to.layout.views);
    free(from.layout.views);
    wire_call_deinit(&call);
}
END_TEST

START_TEST(claim_of_all_that_there_may_be)
{
    static int64_t held[LIMIT_ATTACHMENTS];
    struct wire_claim from = {INT64_MAX, held, LIMIT_ATTACHMENTS, WIRE_PRESENCE_KEPT, true}, to;
    struct wire_fault fault;
    for (size_t i = 0; i < LIMIT_ATTACHMENTS; i++)
        held[i] = INT64_MAX - (int64_t)i;
    struct wire_call call = travel("io.shmview.Claim", wire_claim_text(&from));
    ck_assert_int_eq(wire_read_claim(call.parameters, &to, &fault), 0);
    ck_assert_uint_eq(to.n_held, LIMIT_ATTACHMENTS);
    free(to.held);
    wire_call_deinit(&call);
}
END_TEST

START_TEST(describe)
{
    const int64_t ids[] = {WIRE_ABSENT, 0, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct wire_describe from = {"seg", ids[i], i ? "l" : NULL, i ? 63 : WIRE_ABSENT}, to;
        struct wire_fault fault;
        struct wire_call call = travel("io.shmview.Describe", wire_describe_text(&from));
        ck_assert_int_eq(wire_read_describe(call.parameters, &to, &fault), 0);
        ck_assert_str_eq(to.name, "seg");
        ck_assert_int_eq(to.id, ids[i]);
        ck_assert_pstr_eq(to.layout, from.layout);
        ck_assert_int_eq(to.from, i ? 63 : 0);
        wire_call_deinit(&call);
    }
}
END_TEST

START_TEST(name_and_integer)
{
    struct wire_fault fault;
    const char *name;
    int64_t i;
    struct wire_call call = travel("io.shmview.Remove", wire_remove_text("x"));
    ck_assert_int_eq(wire_read_name(call.parameters, "name", &name, &fault), 0);
    ck_assert_str_eq(name, "x");
    ck_assert_int_eq(wire_read_name(call.parameters, "interface", &name, &fault), -1);
    wire_call_deinit(&call);
    char *texts[] = {wire_detach_text(INT64_MAX),
                     wire_attachment_text("io.shmview.Detach", INT64_MAX)};
    for (int oneway = 1; oneway >= 0; oneway--) {
        call = travel("io.shmview.Detach", texts[!oneway]);
        ck_assert_int_eq(call.oneway, oneway);
        ck_assert_int_eq(wire_read_int(call.parameters, "attachment", &i, &fault), 0);
        ck_assert_int_eq(i, INT64_MAX);
        wire_call_deinit(&call);
    }
}
END_TEST

START_TEST(entrust)
{
    struct wire_entrust from = {"seg", INT32_MAX}, to;
    struct wire_fault fault;
    struct wire_call call = travel("io.shmview.Entrust", wire_entrust_text(&from));
    ck_assert_int_eq(wire_read_entrust(call.parameters, &to, &fault), 0);
    ck_assert_str_eq(to.name, "seg");
    ck_assert_int_eq(to.pid, INT32_MAX);
    wire_call_deinit(&call);
}
END_TEST

START_TEST(call_without_parameters)
{
    char *text = wire_ping_text();
    ck_assert_str_eq(text, "{\"method\":\"io.shmview.Ping\",\"parameters\":{}}");
    free(text);
}
END_TEST

UNIT_MAIN("wire_requests", UNIT_TEST(create), UNIT_TEST(attach), UNIT_TEST(define_layout),
          UNIT_TEST(layout_with_the_most_values), UNIT_TEST(claim_of_all_that_there_may_be),
          UNIT_TEST(describe), UNIT_TEST(name_and_integer), UNIT_TEST(entrust),
          UNIT_TEST(call_without_parameters))
