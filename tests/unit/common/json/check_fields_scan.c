/* SPDX-License-Identifier: Apache-2.0 */
/* Checks fields_scan.c: it reads what fields_text() writes, and leaves every other text to
 * jansson. */
#include "common/json/fields_scan.h"
#include "unit/unit.h"

struct leaf {
    int64_t n;
    const char *s;
};

struct plant {
    int64_t n, maybe;
    bool is_there, flag;
    int64_t extra;
    const char *s, *nick;
    int64_t colour;
    struct leaf leaf;
    struct leaf *leaves;
    size_t n_leaves;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

#define AT(member) offsetof(struct plant, member)
static const struct field leaf_fields[] = {
    {"n", FIELD_INT, false, .offset = offsetof(struct leaf, n), .max = 5},
    {"s", FIELD_STRING, true, .offset = offsetof(struct leaf, s), .max = 3},
    {.name = NULL},
};
static const struct field plant_fields[] = {
    {"n", FIELD_INT, false, .offset = AT(n), .max = 5000},
    {"maybe", FIELD_INT, true, .offset = AT(maybe), .max = INT64_MAX},
    {"extra", FIELD_INT, true, .offset = AT(extra), .present = AT(is_there), .max = 5},
    {"flag", FIELD_BOOL, false, .offset = AT(flag)},
    {"s", FIELD_STRING, false, .offset = AT(s), .max = 5},
    {"nick", FIELD_STRING, true, .offset = AT(nick), .max = 5},
    {"colour", FIELD_ENUM, true, .offset = AT(colour), .enums = colours},
    {"leaf", FIELD_OBJECT, false, .offset = AT(leaf), .of = leaf_fields},
    {"leaves", FIELD_OBJECTS, true, .offset = AT(leaves), .count = AT(n_leaves), .of = leaf_fields,
     .of_bytes = sizeof(struct leaf), .max = 4},
    {.name = NULL},
};

static bool scan(const char *text, struct plant *ret)
{
    static char room[15];
    struct fields_scan s = {unit_json(text), room, sizeof room};
    *ret = (struct plant){.maybe = FIELDS_ABSENT};
    return fields_scan(&s, plant_fields, ret) && !*s.at;
}

START_TEST(scanned)
{
    struct plant t;
    ck_assert(scan("{'n':0,'maybe':123456789012345678,'extra':5,'flag':true,'s':'abcde','nick':'',"
                   "'colour':'blue','leaf':{'n':5,'s':'x'},'leaves':[]}",
                   &t));
    ck_assert_int_eq(t.n, 0);
    ck_assert_int_eq(t.maybe, 123456789012345678);
    ck_assert(t.is_there && t.flag);
    ck_assert_int_eq(t.extra, 5);
    ck_assert_str_eq(t.s, "abcde");
    ck_assert_str_eq(t.nick, "");
    ck_assert_int_eq(t.colour, 3);
    ck_assert_int_eq(t.leaf.n, 5);
    ck_assert_str_eq(t.leaf.s, "x");
    ck_assert(!t.leaves && t.n_leaves == 0);
    ck_assert(scan("{'n':4999,'flag':false,'s':'','leaf':{'n':0}}", &t));
    ck_assert_int_eq(t.n, 4999);
    ck_assert_int_eq(t.maybe, FIELDS_ABSENT);
    ck_assert(!t.is_there && !t.flag && !t.nick && t.colour == 0);
    ck_assert_str_eq(t.s, "");
    ck_assert(scan("{'n':1,'flag':false,'s':'a b','leaf':{'n':0}}", &t));
    ck_assert_str_eq(t.s, "a b");
}
END_TEST

struct wood {
    const struct tree *const *trees;
    size_t n_trees;
    int64_t n;
};

struct tree {
    const struct leaf *const *leaves;
    size_t n_leaves;
    int64_t height;
};

static const struct leaf blank_leaf = {.n = 4, .s = ""};
static const struct field tree_fields[] = {
    {"leaves", FIELD_LIST, false, .offset = offsetof(struct tree, leaves),
     .count = offsetof(struct tree, n_leaves), .of = leaf_fields, .of_bytes = sizeof(struct leaf),
     .max = 3, .blank = &blank_leaf},
    {"height", FIELD_INT, true, .offset = offsetof(struct tree, height), .max = 5},
    FIELDS_END,
};
static const struct field wood_fields[] = {
    {"trees", FIELD_LIST, true, .offset = offsetof(struct wood, trees),
     .count = offsetof(struct wood, n_trees), .of = tree_fields, .of_bytes = sizeof(struct tree),
     .max = 2},
    {"n", FIELD_INT, false, .offset = offsetof(struct wood, n), .max = 5},
    FIELDS_END,
};

static bool scan_wood(const char *text, struct wood *ret)
{
    static char room[15];
    struct fields_scan s = {unit_json(text), room, sizeof room};
    *ret = (struct wood){.n = 0};
    return fields_scan(&s, wood_fields, ret) && !*s.at;
}

static void wood_free(struct wood *w)
{
    for (size_t i = 0; w->trees && i < w->n_trees; i++)
        free((void *)(uintptr_t)w->trees[i]->leaves);
    free((void *)(uintptr_t)w->trees);
}

START_TEST(lists_are_scanned)
{
    struct wood w;
    ck_assert(scan_wood("{'trees':[{'leaves':[]},{'leaves':[{'n':1,'s':'[}'},{'n':2}],'height':5}],"
                        "'n':3}",
                        &w));
    ck_assert_uint_eq(w.n_trees, 2);
    ck_assert_uint_eq(w.trees[0]->n_leaves, 0);
    ck_assert_int_eq(w.trees[1]->height, 5);
    ck_assert_uint_eq(w.trees[1]->n_leaves, 2);
    ck_assert_int_eq(w.trees[1]->leaves[0]->n, 1);
    ck_assert_str_eq(w.trees[1]->leaves[0]->s, "[}");
    ck_assert_str_eq(w.trees[1]->leaves[1]->s, ""); /* of the blank */
    ck_assert_int_eq(w.n, 3);
    wood_free(&w);
    ck_assert(scan_wood("{'n':5}", &w));
    ck_assert_ptr_null(w.trees);
}
END_TEST

/* What a refused text has begun can be freed. */
START_TEST(lists_are_not_scanned)
{
    static const char *const texts[] = {
        "{'trees':[{'leaves':[]},{'leaves':[{'n':1},{'n':6}]}],'n':3}",
        "{'trees':[{'leaves':[{'n':1},{'n':1},{'n':1},{'n':1}]}],'n':3}",
        "{'trees':[{'leaves':[]},{'leaves':[]},{'leaves':[]}],'n':3}",
        "{'trees':[{'leaves':[{'n':1}{'n':1}]}],'n':3}",
        "{'trees':[{'leaves':[{'n':1},]}],'n':3}",
        "{'trees':[{'leaves':[,{'n':1}]}],'n':3}",
        "{'trees':[{'leaves':[1,{'n':1}]}],'n':3}",
        "{'trees':[{'leaves':[[{'n':1}]]}],'n':3}",
        "{'trees':[{'leaves':[{'n':1}",
        "{'trees':[{'leaves':[{'n':1}]]",
        "{'trees':[{'leaves':[{'n':1}}}",
        "{'trees':[1],'n':3}",
        "{'trees':{},'n':3}",
        "{'trees':[{'leaves':[{'n':1,'s':'\\\"'}]}],'n':3}",
    };
    struct wood w;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(!scan_wood(texts[i], &w), "%s", texts[i]);
        wood_free(&w);
    }
}
END_TEST

/* These texts are JSON, or nearly, so jansson must decide. */
START_TEST(not_scanned)
{
    static const char *const texts[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1}} ",
        "{ 'n':1,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n': 1,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1 ,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'flag':true,'n':1,'s':'a','leaf':{'n':1}}",
        "{'n':1,'s':'a','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1},}",
        "{,'n':1,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1,,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1},'more':1}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':6}}",
        "{'n':1,'flag':true,'s':'a','leaf':{}}",
        "{'n':1,'flag':true,'s':'a','leaf':[]}",
        "{'n':5001,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':-1,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':01,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1.0,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1e3,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':'1','flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':null,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1,'maybe':1234567890123456789,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1,'maybe':null,'flag':true,'s':'a','leaf':{'n':1}}",
        "{'n':1,'flag':truer,'s':'a','leaf':{'n':1}}",
        "{'n':1,'flag':1,'s':'a','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'abcdef','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a\tb','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'\\n','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'\xc3\xbc','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a",
        "{'n':1,'flag':true,'s':a,'leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'abcde','nick':'abcde','leaf':{'n':1,'s':'xyz'}}",
        "{'n':1,'flag':true,'s':'a','colour':'grey','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a','colour':'redd','leaf':{'n':1}}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1},'leaves':[{'n':1}]}",
        "{'n':1,'flag':true,'s':'a','leaf':{'n':1},'leaves':[ ]}",
    };
    struct plant t;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!scan(texts[i], &t), "%s", texts[i]);
}
END_TEST

/* Brackets in strings do not end an array, and a string with an escape is left to jansson. */
START_TEST(arrays_are_skipped)
{
    static const struct {
        const char *text;
        size_t n; /* 0: refused */
    } cases[] = {
        {"[]}", 2},         {"[[],[1]],", 8}, {"[\"]\",\"[\"]", 9}, {"[{\"a\":[\"}\"]}]x", 13},
        {"[\"\\\"]\"]", 0}, {"[", 0},         {"[[]", 0},           {"[\"]", 0},
        {"{}", 0},          {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fields_scan scan = {.at = cases[i].text};
        const char *found;
        size_t n;
        ck_assert_int_eq(fields_scan_array(&scan, &found, &n), cases[i].n > 0);
        if (!cases[i].n)
            continue;
        ck_assert_ptr_eq(found, cases[i].text);
        ck_assert_uint_eq(n, cases[i].n);
        ck_assert_ptr_eq(scan.at, found + n);
    }
}
END_TEST

UNIT_MAIN("fields_scan", UNIT_TEST(scanned), UNIT_TEST(not_scanned), UNIT_TEST(lists_are_scanned),
          UNIT_TEST(lists_are_not_scanned), UNIT_TEST(arrays_are_skipped))
