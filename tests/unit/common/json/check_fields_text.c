/* SPDX-License-Identifier: Apache-2.0 */
/* Checks fields_text.c with a table of its own: it writes the text that jansson would write, and
 * that text can be read back. */
#include "common/json/fields_text.h"
#include "unit/faults.h"
#include "unit/tree.h"
#include "unit/unit.h"

static char *text_of(const struct field *fields, const void *from)
{
    size_t n = 0;
    char *text = fields_message("", fields, from, "", &n);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(n, strlen(text) + 1);
    return text;
}

/* Writes the struct and compares the text with jansson's. Returns the parsed value. */
static json_t *written(const struct field *fields, const void *from)
{
    char *text = text_of(fields, from);
    json_t *value = json_loads(text, 0, NULL);
    ck_assert_msg(value, "%s", text);
    char *by_value = json_text(value, NULL);
    ck_assert_str_eq(text, by_value);
    free(by_value);
    free(text);
    return value;
}

START_TEST(written_and_read_back)
{
    struct leaf leaves[2];
    struct tree t = example(leaves), u = blank();
    struct wire_fault fault;
    json_t *j = written(tree_fields, &t);
    ck_assert_uint_eq(json_object_size(j), 12);
    ck_assert_int_eq(fields_read(j, tree_fields, true, &u, &fault), 0);
    json_t *k = written(tree_fields, &u);
    ck_assert(json_equal(j, k));
    ck_assert_int_eq(u.number, INT64_MIN);
    ck_assert_int_eq(u.ints[7], INT64_MAX);
    ck_assert(u.has_more && u.more_ints[7] == INT64_MIN);
    free(u.leaves);
    json_decref(j);
    json_decref(k);
}
END_TEST

START_TEST(absent_members_are_not_written)
{
    struct leaf leaves[2];
    struct tree t = example(leaves);
    t.maybe = FIELDS_ABSENT;
    t.shade = 0;
    t.has_more = false;
    t.n_leaves = 0;
    json_t *j = written(tree_fields, &t);
    ck_assert_ptr_null(json_object_get(j, "maybe"));
    ck_assert_ptr_null(json_object_get(j, "shade"));
    ck_assert_ptr_null(json_object_get(j, "more"));
    ck_assert_uint_eq(json_array_size(json_object_get(j, "leaves")), 0);
    ck_assert_uint_eq(json_object_size(j), 9);
    json_decref(j);
}
END_TEST

/* JSON cannot express bytes that are not UTF-8. */
START_TEST(bytes_that_are_no_text)
{
    static const char *const names[][2] = {
        {"\xff", "?"},
        {"a\xc3", "a?"},
        {"\xc3\xa4\xa4z", "\xc3\xa4?z"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf0\x9f\x98", "???"},
        {"\xed\xa0\x80", "???"},
        {"\xc0\xaf", "??"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct leaf leaf = {1, names[i][0]};
        json_t *j = written(leaf_fields, &leaf);
        ck_assert_str_eq(json_string_value(json_object_get(j, "s")), names[i][1]);
        json_decref(j);
    }
}
END_TEST

/* --- Memory -------------------------------------------------------------- */

START_TEST(every_allocation_of_a_read_fails)
{
    json_t *j = parse(full);
    struct wire_fault fault;
    struct tree t = blank();
    unsigned n;
    int r = 0;
    for (n = 1; faults_begin(FAULTS_MEMORY, n), r = fields_read(j, tree_fields, true, &t, &fault),
        faults_end();
         n++) {
        ck_assert_int_eq(r, -1);
        ck_assert_str_eq(fault.parameter, "leaves");
        ck_assert_str_eq(fault.reason, "out of memory");
        free(t.leaves);
        t = blank();
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_eq(n, 2);
    free(t.leaves);
    json_decref(j);
}
END_TEST

START_TEST(text_of_every_kind)
{
    const char *const names[] = {"", "oak", "\"q\" \\ / \b\f\n\r\t", "\x01\x1f\x7f",
                                 "gr\xc3\xbc\xc3\x9f"};
    const int64_t numbers[] = {0, 9, 10, -1, 1234567890, INT64_MAX, INT64_MIN};
    struct leaf leaves[] = {{1, NULL}, {-2, "x"}};
    for (size_t i = 0; i < 5 * 7 * 4; i++) {
        struct tree t = {
            .name = names[i % 5],
            .nick = i % 3 ? names[(i + 1) % 5] : NULL,
            .number = numbers[i % 7],
            .maybe = i % 2 ? numbers[(i + 3) % 7] : FIELDS_ABSENT,
            .flag = i % 2,
            .colour = (int64_t)(i % 3 + 1),
            .shade = (int64_t)(i % 4),
            .ints = {numbers[i % 7], -7, 8},
            .n_ints = (uint32_t)(i % 3),
            .has_more = i % 2,
            .leaf = {5, i % 2 ? "s" : NULL},
            .leaves = i % 4 ? leaves : NULL,
            .n_leaves = i % 4 ? i % 3 : 0,
        };
        if (t.maybe == INT64_MIN)
            t.maybe = FIELDS_ABSENT;
        json_decref(written(tree_fields, &t));
    }
}
END_TEST

START_TEST(every_allocation_of_a_text_fails)
{
    char name[2000];
    struct leaf leaves[40] = {{0, NULL}};
    struct tree t = {.name = name, .colour = 1, .leaves = leaves, .n_leaves = 40};
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    char *text = NULL;
    unsigned n;
    for (n = 1;; n++) {
        faults_begin(FAULTS_MEMORY, n);
        text = fields_message("", tree_fields, &t, "", NULL);
        if (!faults_end())
            break;
        ck_assert_ptr_null(text);
    }
    ck_assert_uint_gt(n, 2);
    ck_assert_ptr_nonnull(text);
    free(text);
}
END_TEST

struct bag {
    const char **words;
    size_t n_words;
    int64_t set;
    const char *maybe;
};
static const struct field bag_fields[] = {
    {"words", FIELD_STRINGS, true, .offset = offsetof(struct bag, words),
     .count = offsetof(struct bag, n_words), .min = 3, .max = 2},
    {"set", FIELD_SET, true, .offset = offsetof(struct bag, set), .enums = colours},
    {"maybe", FIELD_STRING, true, .offset = offsetof(struct bag, maybe), .max = 3},
    {.name = NULL},
};

START_TEST(strings_and_sets)
{
    static const struct {
        const char *text, *parameter, *reason;
    } bad[] = {
        {"{'words':'a'}", "words", "must be an array of strings"},
        {"{'words':['a','b','c']}", "words", "has 3 elements, the limit is 2"},
        {"{'words':['a',1]}", "words", "must be a string"},
        {"{'words':['abcd']}", "words", "has 4 bytes, the limit is 3"},
        {"{'set':'red'}", "set", "must be an array of strings"},
        {"{'set':['red','grey']}", "set", "element 1 is not a known name"},
        {"{'set':[1]}", "set", "element 0 is not a known name"},
    };
    static const char *const good[] = {"{}", "{'words':['a','abc'],'set':['red','blue']}",
                                       "{'maybe':'x'}"};
    struct wire_fault fault;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bag bag = {0};
        json_t *j = parse(bad[i].text);
        ck_assert_int_eq(fields_read(j, bag_fields, true, &bag, &fault), -1);
        ck_assert_str_eq(fault.parameter, bad[i].parameter);
        ck_assert_str_eq(fault.reason, bad[i].reason);
        free(bag.words);
        json_decref(j);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct bag bag = {0};
        json_t *j = parse(good[i]);
        ck_assert_int_eq(fields_read(j, bag_fields, true, &bag, &fault), 0);
        ck_assert_int_eq(bag.set, i == 1 ? 5 : 0);
        json_t *again = written(bag_fields, &bag);
        ck_assert(json_equal(j, again));
        free(bag.words);
        json_decref(j);
        json_decref(again);
    }
}
END_TEST

struct leaf_owner {
    uint32_t n, maybe, flag, colour;
    const struct leaf *const *leaves;
    size_t n_leaves;
};
#define OWNER(member) offsetof(struct leaf_owner, member)
static const struct leaf blank_leaf = {-1, ""};
static const struct field owner_fields[] = {
    {"n", FIELD_INT, false, .narrow = true, .offset = OWNER(n), .max = UINT32_MAX},
    {"maybe", FIELD_INT, true, .narrow = true, .offset = OWNER(maybe), .max = 5},
    {"flag", FIELD_BOOL, false, .narrow = true, .offset = OWNER(flag)},
    {"colour", FIELD_ENUM, true, .narrow = true, .offset = OWNER(colour), .enums = colours},
    {"leaves", FIELD_LIST, true, .offset = OWNER(leaves), .count = OWNER(n_leaves),
     .of = leaf_fields, .of_bytes = sizeof(struct leaf), .max = 3, .blank = &blank_leaf},
    FIELDS_END,
};

START_TEST(narrow_members_and_lists)
{
    static const char *const texts[] = {
        "{'n':4294967295,'flag':true,'colour':'blue','leaves':[{'n':1,'s':'x'},{'n':2},{'n':-3}]}",
        "{'n':0,'maybe':5,'flag':false,'leaves':[]}",
        "{'n':7,'flag':false}",
    };
    static const char *const bad[] = {"{'n':4294967296,'flag':true}",
                                      "{'n':1,'flag':true,'leaves':[{},{},{},{}]}",
                                      "{'n':1,'flag':true,'leaves':[{'n':1},{'n':9}]}"};
    struct wire_fault fault;
    for (size_t i = 0; i < 3; i++) {
        struct leaf_owner o = {.flag = 9};
        json_t *j = parse(texts[i]);
        ck_assert_int_eq(fields_read(j, owner_fields, true, &o, &fault), 0);
        ck_assert_uint_eq(o.flag, i == 0);
        ck_assert_uint_eq(o.n_leaves, i ? 0 : 3);
        if (i == 0) {
            ck_assert_uint_eq(o.n, UINT32_MAX);
            ck_assert_uint_eq(o.colour, 3);
            ck_assert_str_eq(o.leaves[0]->s, "x");
            ck_assert_str_eq(o.leaves[1]->s, "");
            ck_assert_int_eq(o.leaves[2]->n, -3);
        }
        json_t *again = written(owner_fields, &o);
        ck_assert(json_equal(j, again));
        json_decref(again);
        json_decref(j);
        free((void *)(uintptr_t)o.leaves);
    }
    for (size_t i = 0; i < 3; i++) {
        struct leaf_owner o = {0};
        json_t *j = parse(bad[i]);
        ck_assert_int_eq(fields_read(j, owner_fields, true, &o, &fault), -1);
        free((void *)(uintptr_t)o.leaves);
        json_decref(j);
    }
}
END_TEST

UNIT_MAIN("fields_text", UNIT_TEST(written_and_read_back),
          UNIT_TEST(absent_members_are_not_written), UNIT_TEST(bytes_that_are_no_text),
          UNIT_TEST(every_allocation_of_a_read_fails), UNIT_TEST(text_of_every_kind),
          UNIT_TEST(every_allocation_of_a_text_fails), UNIT_TEST(strings_and_sets),
          UNIT_TEST(narrow_members_and_lists))
