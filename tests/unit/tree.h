/* SPDX-License-Identifier: Apache-2.0 */
/* A table of fields with one member of each kind, for the tests of fields.c and its neighbours. */
#ifndef UNIT_TREE_H
#define UNIT_TREE_H

#include <stddef.h>

#include <jansson.h>

#include "common/json/fields.h"
#include "unit/unit.h"

struct leaf {
    int64_t n;
    const char *s;
};

struct tree {
    const char *name, *nick;
    int64_t number, maybe;
    bool flag, perhaps;
    int64_t colour, shade;
    int64_t ints[SHMVIEW_MAX_NDIM], more_ints[SHMVIEW_MAX_NDIM];
    uint32_t n_ints;
    bool has_more;
    struct leaf leaf;
    struct leaf *leaves;
    size_t n_leaves;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

#define AT(member) offsetof(struct tree, member)
static const struct field leaf_fields[] = {
    {"n", FIELD_INT, false, .offset = offsetof(struct leaf, n), .min = -5, .max = 5},
    {"s", FIELD_STRING, true, .offset = offsetof(struct leaf, s), .max = 3},
    {.name = NULL},
};
static const struct field tree_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(name), .max = 10},
    {"nick", FIELD_STRING, true, .offset = AT(nick), .max = 200},
    {"number", FIELD_INT, false, .offset = AT(number), .min = INT64_MIN, .max = INT64_MAX},
    {"maybe", FIELD_INT, true, .offset = AT(maybe), .max = 100},
    {"flag", FIELD_BOOL, false, .offset = AT(flag)},
    {"perhaps", FIELD_BOOL, true, .offset = AT(perhaps)},
    {"colour", FIELD_ENUM, false, .offset = AT(colour), .enums = colours},
    {"shade", FIELD_ENUM, true, .offset = AT(shade), .enums = colours},
    {"ints", FIELD_INTS, false, .offset = AT(ints), .count = AT(n_ints)},
    {"more", FIELD_INTS, true, .offset = AT(more_ints), .present = AT(has_more),
     .count = AT(n_ints)},
    {"leaf", FIELD_OBJECT, false, .offset = AT(leaf), .of = leaf_fields},
    {"leaves", FIELD_OBJECTS, true, .offset = AT(leaves), .count = AT(n_leaves), .of = leaf_fields,
     .of_bytes = sizeof(struct leaf), .max = 4},
    {.name = NULL},
};

static const char full[] =
    "{'name':'oak','nick':'o','number':7,'maybe':9,'flag':true,"
    "'perhaps':true,'colour':'green','shade':'blue','ints':[1,-2,3],"
    "'more':[4,5,6],'leaf':{'n':5,'s':'abc'},'leaves':[{'n':1},{'n':2,'s':'x'}]}";

static inline json_t *parse(const char *text)
{
    json_error_t e;
    json_t *j = json_loads(unit_json(text), JSON_DECODE_ANY, &e);
    ck_assert_msg(j, "%s: %s", text, e.text);
    return j;
}

static inline struct tree blank(void)
{
    return (struct tree){.maybe = FIELDS_ABSENT};
}

static inline struct tree example(struct leaf *leaves)
{
    leaves[0] = (struct leaf){1, "x"};
    leaves[1] = (struct leaf){-2, "y"};
    return (struct tree){
        .name = "oak",
        .nick = "n",
        .number = INT64_MIN,
        .maybe = 3,
        .flag = true,
        .colour = 1,
        .shade = 3,
        .ints = {1, 2, 3, 4, 5, 6, 7, INT64_MAX},
        .more_ints = {8, 7, 6, 5, 4, 3, 2, INT64_MIN},
        .n_ints = 8,
        .has_more = true,
        .leaf = {4, "z"},
        .leaves = leaves,
        .n_leaves = 2,
    };
}

#endif
