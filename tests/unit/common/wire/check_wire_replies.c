/* SPDX-License-Identifier: Apache-2.0 */
/* Checks wire.c: replies, which the daemon writes and the library reads, and the names of errors
 * and values. */
#include "unit/unit.h"

#include <shmview/layout.h>

#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/wire/wire.h"

#include "unit/long_layout.h"

static struct wire_reply travel_back_text(char *text, size_t n)
{
    struct wire_reply reply;
    struct wire_fault fault;
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(n, strlen(text) + 1);
    ck_assert_int_eq(wire_reply_parse(&reply, text, n - 1, &fault), 0);
    free(text);
    return reply;
}

static struct wire_reply travel_back(const char *error, json_t *parameters)
{
    size_t n = 0;
    char *text = wire_reply_text(error, parameters, &n);
    return travel_back_text(text, n);
}

/* --- Replies ------------------------------------------------------------- */

START_TEST(segment)
{
    struct shmview_description from = {.name = "seg",
                                       .id = INT64_MAX,
                                       .size = (int64_t)LIMIT_SEGMENT_BYTES,
                                       .owner = UINT32_MAX,
                                       .attachments = 1000,
                                       .group = 100,
                                       .mode = 0664},
                               to;
    struct wire_fault fault;
    for (int lock = 0; lock < 2; lock++) {
        size_t n = 0;
        from.has_lock = (uint32_t)lock;
        from.lifetime = (uint32_t)(1 + lock);
        char *text = wire_segment_text(&from, NULL, 0, &n);
        struct wire_reply reply = travel_back_text(text, n);
        ck_assert_int_eq(wire_read_segment(reply.parameters, "segment", &to, &fault), 0);
        ck_assert_str_eq(to.name, "seg");
        ck_assert_int_eq(to.id, from.id);
        ck_assert_int_eq(to.size, from.size);
        ck_assert_int_eq(to.owner, from.owner);
        ck_assert_int_eq(to.attachments, 1000);
        ck_assert_uint_eq(to.lifetime, from.lifetime);
        ck_assert_int_eq(to.has_lock, lock);
        ck_assert_int_eq(to.group, 100);
        ck_assert_int_eq(to.mode, 0664);
        wire_reply_deinit(&reply);
    }
}
END_TEST

START_TEST(attachment)
{
    struct wire_layout layouts[2] = {{"empty", &(struct wire_view){0}, 0}, longest_layout()};
    const size_t n_layouts[] = {2, 0};
    struct wire_attachment with_lock = {.id = 5,
                                        .descriptors = 3,
                                        .data = 0,
                                        .control = 1,
                                        .liveness = 2,
                                        .slot = SHMVIEW_SLOTS_MAX - 1,
                                        .generation = SHMVIEW_GENERATION_MASK,
                                        .access = 3},
                           bare = {.id = 6,
                                   .descriptors = 1,
                                   .control = WIRE_ABSENT,
                                   .liveness = WIRE_ABSENT,
                                   .slot = WIRE_ABSENT,
                                   .generation = WIRE_ABSENT,
                                   .access = 1};
    const struct wire_attachment *both[] = {&with_lock, &bare};
    for (size_t i = 0; i < 2; i++) {
        struct wire_attachment to;
        struct wire_fault fault;
        size_t n = 0;
        const struct wire_acl_entry nobody = {0};
        static char layouts_text[200000];
        struct wire_text all = {layouts_text, 0};
        for (size_t k = 0; k < n_layouts[i]; k++) {
            size_t bytes;
            char *one = wire_layout_text(&layouts[k], &bytes);
            ck_assert_uint_lt(all.n + bytes + 1, sizeof layouts_text);
            all.n += (size_t)sprintf(layouts_text + all.n, "%s%s", k ? "," : "", one);
            free(one);
        }
        const struct shmview_description of = {.name = "s", .lifetime = SHMVIEW_MANUAL};
        char *text = wire_attached_text(&of, &nobody, 0, both[i], &all, &n);
        struct shmview_description scanned_of;
        struct wire_attachment scanned;
        char room[LIMIT_NAME_BYTES + 1];
        struct wire_text found;
        ck_assert(wire_attached_scan(text, room, sizeof room, &scanned_of, &scanned, &found));
        ck_assert_uint_eq(found.n, all.n + 2);
        ck_assert_int_eq(found.bytes[0], '[');
        ck_assert_int_eq(memcmp(found.bytes + 1, all.bytes, all.n), 0);
        ck_assert_str_eq(scanned_of.name, "s");
        ck_assert_int_eq(scanned_of.lifetime, SHMVIEW_MANUAL);
        ck_assert_int_eq(scanned.id, both[i]->id);
        ck_assert_int_eq(scanned.descriptors, both[i]->descriptors);
        ck_assert_int_eq(scanned.slot, both[i]->slot);
        ck_assert_int_eq(scanned.access, both[i]->access);
        struct wire_layout *read;
        json_t *root;
        size_t n_read;
        ck_assert_int_eq(wire_layouts_parse(found.bytes, found.n, &root, &read, &n_read, &fault),
                         0);
        ck_assert_uint_eq(n_read, n_layouts[i]);
        if (n_read)
            assert_same_view(&read[1].views[7], &layouts[1].views[7]);
        wire_layouts_free(read, n_read);
        json_decref(root);
        struct wire_reply reply = travel_back_text(text, n);
        ck_assert_int_eq(wire_read_attachment(reply.parameters, "attachment", &to, &fault), 0);
        char *rest = wire_attached_layouts(reply.parameters);
        ck_assert_uint_gt(strlen(rest), all.n);
        free(rest);
        ck_assert_int_eq(to.id, both[i]->id);
        ck_assert_int_eq(to.descriptors, both[i]->descriptors);
        ck_assert_int_eq(to.data, 0);
        ck_assert_int_eq(to.control, both[i]->control);
        ck_assert_int_eq(to.liveness, both[i]->liveness);
        ck_assert_int_eq(to.slot, both[i]->slot);
        ck_assert_int_eq(to.generation, both[i]->generation);
        ck_assert_int_eq(to.access, both[i]->access);
        wire_reply_deinit(&reply);
    }
    free(layouts[1].views);
}
END_TEST

/* Writes the layouts of a reply. */
static json_t *write_layouts(const struct wire_layout *layouts, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        char *text = wire_layout_text(&layouts[i], NULL);
        json_array_append_new(array, json_loads(text, 0, NULL));
        free(text);
    }
    return json_pack("{s:o}", "layouts", array);
}

START_TEST(layouts)
{
    struct wire_layout from[LIMIT_LAYOUTS + 1];
    struct wire_described to = {.n_layouts = 99};
    struct wire_view view = {"v",
                             "i",
                             true,
                             {.offset = 8,
                              .ndim = 1,
                              .read_only = true,
                              .indirect = true,
                              .shape = {2},
                              .strides = {4},
                              .suboffsets = {16}}};
    struct wire_fault fault;
    for (size_t i = 0; i <= LIMIT_LAYOUTS; i++)
        from[i] = (struct wire_layout){"l", &view, i % 2};
    for (size_t k = 0; k <= LIMIT_LAYOUTS; k += LIMIT_LAYOUTS) {
        struct wire_reply reply = travel_back(NULL, write_layouts(from, k));
        ck_assert_int_eq(wire_read_described(reply.parameters, &to, &fault), 0);
        ck_assert_uint_eq(to.n_layouts, k);
        ck_assert_int_eq(to.next, WIRE_ABSENT);
        if (k)
            assert_same_view(to.layouts[1].views, &view);
        wire_layouts_free(to.layouts, to.n_layouts);
        wire_reply_deinit(&reply);
    }
    struct wire_reply reply = travel_back(NULL, write_layouts(from, LIMIT_LAYOUTS + 1));
    to = (struct wire_described){.n_layouts = 99};
    ck_assert_int_eq(wire_read_described(reply.parameters, &to, &fault), -1);
    unit_assert_holds(fault.reason, "has 65 elements, the limit is 64");
    ck_assert_ptr_null(to.layouts);
    ck_assert_uint_eq(to.n_layouts, 99);
    wire_reply_deinit(&reply);
    wire_layouts_free(NULL, 3);
}
END_TEST

/* The reply to an attachment may have only the names of layouts. Those of Describe have views. */
START_TEST(layouts_without_views)
{
    static const char text[] = "[{\"name\":\"a\"},{\"name\":\"b\",\"views\":[]}]";
    struct wire_fault fault;
    struct wire_layout *list;
    struct wire_described described;
    json_t *root;
    size_t n;
    ck_assert_int_eq(wire_layouts_parse(text, strlen(text), &root, &list, &n, &fault), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(list[0].name, "a");
    ck_assert_ptr_null(list[0].views);
    ck_assert_str_eq(list[1].name, "b");
    ck_assert_ptr_nonnull(list[1].views);
    ck_assert_int_eq(wire_read_described(root, &described, &fault), -1);
    unit_assert_holds(fault.parameter, "layouts[0].views");
    wire_layouts_free(list, n);
    json_decref(root);
    const char *const bad[] = {"",
                               "[",
                               "{}",
                               "[1]",
                               "[{}]",
                               "[{\"name\":\"a\",\"views\":1}]",
                               "[{\"name\":\"a\"},{\"name\":\"b\",\"views\":[1]}]"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_int_eq(wire_layouts_parse(bad[i], strlen(bad[i]), &root, &list, &n, &fault), -1);
}
END_TEST

/* A newer daemon may send more members, but not fewer or invalid ones. */
START_TEST(replies_of_other_daemons)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0,'layouts':[],'new':1},'b':2}", 0},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0,'layouts':[{'name':'l',"
         "'views':[{'name':'v','format':'i','shape':[],'new':[1]}],'new':{}}]}}",
         0},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0}}", 0},
        {"{'a':{'id':1,'access':'read','descriptors':1}}", -1},
        {"{'a':{'id':1,'access':'own','descriptors':1,'data':0,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':65,'data':0,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':64,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':-1,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0,'slot':1000,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0,'generation':0,'layouts':[]}}", -1},
        {"{'a':{'id':1,'access':'read','descriptors':1,'data':0,'generation':1048576,"
         "'layouts':[]}}",
         -1},
        {"{'a':null}", -1},
        {"{}", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wire_attachment a;
        struct wire_fault fault;
        json_t *j = json_loads(unit_json(cases[i].text), 0, NULL);
        ck_assert_msg(wire_read_attachment(j, "a", &a, &fault) == cases[i].result, "%s",
                      cases[i].text);
        json_decref(j);
    }
}
END_TEST

START_TEST(reply_envelopes)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"{}", 0},
        {"{'parameters':{}}", 0},
        {"{'error':'a.b','parameters':{'r':1}}", 0},
        {"{'error':'a'}", 0},
        {"{'continues':true}", 0},
        {"{'error':1}", -1},
        {"{'error':null}", -1},
        {"{'parameters':[]}", -1},
        {"{'parameters':null}", -1},
        {"[]", -1},
        {"1", -1},
        {"", -1},
        {"{", -1},

        {"{'parameters':{}} x", -1},
        {"{'error':'a\\u0000'}", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wire_reply reply;
        struct wire_fault fault;
        const char *text = unit_json(cases[i].text);
        int r = wire_reply_parse(&reply, text, strlen(text), &fault);
        ck_assert_msg(r == cases[i].result, "%s", cases[i].text);
        ck_assert_msg(r || (reply.error != NULL) == (strstr(text, "error") != NULL), "%s", text);
        wire_reply_deinit(&reply);
    }
}
END_TEST

/* Varlink clients need "parameters" even if it is empty. */
START_TEST(empty_replies)
{
    size_t n;
    char *text = wire_reply_text(NULL, NULL, &n);
    ck_assert_str_eq(text, "{\"parameters\":{}}");
    ck_assert_uint_eq(n, 18);
    free(text);
    text = wire_reply_text("a.b", NULL, &n);
    ck_assert_str_eq(text, "{\"error\":\"a.b\",\"parameters\":{}}");
    free(text);
}
END_TEST

/* --- Names --------------------------------------------------------------- */

/* *ret_reason is valid until the next call. */
static int code_of(const char *error, json_t *parameters, const char **ret_reason)
{
    static struct wire_reply reply;
    wire_reply_deinit(&reply);
    reply = travel_back(error, parameters);
    return wire_error_code(&reply, ret_reason);
}

START_TEST(errors)
{
    static const struct {
        int code;
        const char *wire, *text;
    } list[] = {
#define X(name, value, wire, text) {SHMVIEW_ERR_##name, wire, text},
        SHMVIEW_ERROR_LIST(X)
#undef X
    };
    const char *reason;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        if (!list[i].wire[0]) {
            ck_assert_str_eq(wire_error_name(list[i].code), "io.shmview.Failed");
            continue;
        }
        ck_assert_str_eq(wire_error_name(list[i].code), list[i].wire);
        ck_assert_int_eq(code_of(list[i].wire, NULL, &reason), list[i].code);
        ck_assert_str_eq(reason, list[i].text);
        json_t *why = json_pack("{s:s}", "reason", "because");
        ck_assert_int_eq(code_of(list[i].wire, why, &reason), list[i].code);
        ck_assert_str_eq(reason, "because");
    }
    ck_assert_str_eq(wire_error_name(0), "io.shmview.Failed");
    ck_assert_str_eq(wire_error_name(-1), "io.shmview.Failed");
    ck_assert_int_eq(code_of("com.example.Strange", NULL, &reason), SHMVIEW_ERR_PROTOCOL);
    ck_assert_str_eq(reason, "com.example.Strange");
    ck_assert_int_eq(code_of("io.shmview.NoSpace", json_pack("{s:i}", "reason", 1), &reason),
                     SHMVIEW_ERR_NO_SPACE);
    ck_assert_str_eq(reason, "not enough shared memory");
}
END_TEST

/* Errors that never cross the socket have no name, and no reply may name them. */
START_TEST(error_without_a_name)
{
    const char *reason;
    ck_assert_int_eq(code_of("", NULL, &reason), SHMVIEW_ERR_PROTOCOL);
}
END_TEST

START_TEST(failure_of_the_daemon_has_a_reason)
{
    const char *reason;
    json_t *why = json_pack("{s:s}", "reason", "a segment cannot be allocated: I/O error");
    int code = code_of("io.shmview.Failed", why, &reason);
    unit_assert_holds(reason, "a segment cannot be allocated");
    ck_assert_int_eq(code, SHMVIEW_ERR_SYSTEM);
}
END_TEST

START_TEST(names_of_values)
{
    ck_assert_str_eq(wire_access_name(SHMVIEW_PEEK), "peek");
    ck_assert_str_eq(wire_access_name(SHMVIEW_READ), "read");
    ck_assert_str_eq(wire_access_name(SHMVIEW_WRITE), "write");
    ck_assert_str_eq(wire_lifetime_name(SHMVIEW_ATTACHED), "attached");
    ck_assert_str_eq(wire_lifetime_name(SHMVIEW_MANUAL), "manual");
    ck_assert_str_eq(wire_lifetime_name(SHMVIEW_CREATOR), "creator");
    const int64_t none[] = {0, 4, -1, 5, INT64_MAX, INT64_MIN, (int64_t)1 << 32 | 1};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        ck_assert_ptr_null(wire_access_name(none[i]));
        ck_assert_ptr_null(wire_lifetime_name(none[i]));
    }
}
END_TEST

UNIT_MAIN("wire_replies", UNIT_TEST(segment), UNIT_TEST(attachment), UNIT_TEST(layouts),
          UNIT_TEST(layouts_without_views), UNIT_TEST(replies_of_other_daemons),
          UNIT_TEST(reply_envelopes), UNIT_TEST(empty_replies), UNIT_TEST(errors),
          UNIT_TEST(error_without_a_name), UNIT_TEST(failure_of_the_daemon_has_a_reason),
          UNIT_TEST(names_of_values))
