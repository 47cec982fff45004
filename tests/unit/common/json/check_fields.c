/* SPDX-License-Identifier: Apache-2.0 */
/* Checks fields.c with a table of its own: which members are read, and which are refused. */
#include "unit/tree.h"
#include "unit/unit.h"

START_TEST(read_every_kind)
{
    struct tree t = blank();
    struct wire_fault fault;
    json_t *j = parse(full);
    ck_assert_int_eq(fields_read(j, tree_fields, true, &t, &fault), 0);
    ck_assert_str_eq(t.name, "oak");
    ck_assert_str_eq(t.nick, "o");
    ck_assert_int_eq(t.number, 7);
    ck_assert_int_eq(t.maybe, 9);
    ck_assert(t.flag && t.perhaps && t.has_more);
    ck_assert_int_eq(t.colour, 2);
    ck_assert_int_eq(t.shade, 3);
    ck_assert_uint_eq(t.n_ints, 3);
    ck_assert_int_eq(t.ints[1], -2);
    ck_assert_int_eq(t.more_ints[2], 6);
    ck_assert_int_eq(t.leaf.n, 5);
    ck_assert_uint_eq(t.n_leaves, 2);
    ck_assert_ptr_null(t.leaves[0].s);
    ck_assert_str_eq(t.leaves[1].s, "x");
    free(t.leaves);
    json_decref(j);
}
END_TEST

/* Sets path "a" or "leaf.n" of the full text to value (NULL: removes it), and reads it. Returns the
 * result of fields_read(). */
static int read_with(const char *path, const char *value, bool strict, struct wire_fault *fault)
{
    struct tree t = blank();
    json_t *j = parse(full), *at = j;
    const char *dot = strchr(path, '.');
    if (dot) {
        at = json_object_get(j, "leaf");
        path = dot + 1;
    }
    if (value)
        json_object_set_new(at, path, parse(value));
    else
        json_object_del(at, path);
    *fault = (struct wire_fault){0};
    int r = fields_read(j, tree_fields, strict, &t, fault);
    free(t.leaves);
    json_decref(j);
    return r;
}

static void assert_fault(const char *path, const char *value, const char *parameter,
                         const char *reason)
{
    struct wire_fault fault;
    for (int strict = 0; strict < 2; strict++) {
        ck_assert_msg(read_with(path, value, strict, &fault) == -1, "%s = %s is accepted", path,
                      value ? value : "nothing");
        ck_assert_str_eq(fault.parameter, parameter);
        ck_assert_str_eq(fault.reason, reason);
    }
}

static void assert_read(const char *path, const char *value)
{
    struct wire_fault fault;
    for (int strict = 0; strict < 2; strict++)
        ck_assert_msg(read_with(path, value, strict, &fault) == 0, "%s = %s: %s %s", path,
                      value ? value : "nothing", fault.parameter, fault.reason);
}

START_TEST(missing_members)
{
    const char *required[] = {"name", "number", "flag", "colour", "ints", "leaf"};
    const char *optional[] = {"nick", "maybe", "perhaps", "shade", "more", "leaves", "leaf.s"};
    for (size_t i = 0; i < 6; i++)
        assert_fault(required[i], NULL, required[i], "is missing");
    assert_fault("leaf.n", NULL, "leaf.n", "is missing");
    for (size_t i = 0; i < 7; i++)
        assert_read(optional[i], NULL);
}
END_TEST

START_TEST(null_members)
{
    const char *optional[] = {"nick", "maybe", "perhaps", "shade", "more", "leaves", "leaf.s"};
    for (size_t i = 0; i < 7; i++)
        assert_read(optional[i], "null");
    assert_fault("name", "null", "name", "must be a string");
    assert_fault("number", "null", "number", "must be an integer");
    assert_fault("flag", "null", "flag", "must be true or false");
    assert_fault("colour", "null", "colour", "must be \"red\", \"green\" or \"blue\"");
    assert_fault("ints", "null", "ints", "must be an array of integers");
    assert_fault("leaf", "null", "leaf", "must be an object");
}
END_TEST

/* A missing optional member leaves the value of the struct unchanged. */
START_TEST(absent_members_keep_the_default)
{
    struct leaf l = {1, "default"};
    struct wire_fault fault;
    json_t *j = parse("{'n':2,'s':null}"), *k = parse("{'n':3}");
    ck_assert_int_eq(fields_read(j, leaf_fields, true, &l, &fault), 0);
    ck_assert_str_eq(l.s, "default");
    ck_assert_int_eq(fields_read(k, leaf_fields, true, &l, &fault), 0);
    ck_assert_str_eq(l.s, "default");
    ck_assert_int_eq(l.n, 3);
    json_decref(j);
    json_decref(k);
}
END_TEST

START_TEST(wrong_types)
{
    static const struct {
        const char *member, *reason;
        const char *right; /* letters of the values below that have the right type */
    } members[] = {
        {"name", "must be a string", "s"},
        {"nick", "must be a string", "sn"},
        {"number", "must be an integer", "i"},
        {"maybe", "must be an integer", "in"},
        {"flag", "must be true or false", "b"},
        {"colour", "must be \"red\", \"green\" or \"blue\"", ""},
        {"ints", "must be an array of integers", ""},
        {"more", "must be an array of integers", "n"},
        {"leaf", "must be an object", ""},
        {"leaves", "must be an array of objects", "an"},
    };
    static const char *const values[] = {"s'str'", "i1",  "r1.0", "r1e3", "btrue", "bfalse",
                                         "nnull",  "a[]", "o{}",  "s''",  "s'1'",  "s'true'"};
    for (size_t m = 0; m < sizeof members / sizeof members[0]; m++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            if (strchr(members[m].right, values[v][0]))
                assert_read(members[m].member, values[v] + 1);
            else if (values[v][0] != 'o' &&
                     !(values[v][0] == 'a' && strstr(members[m].reason, "integers")))
                assert_fault(members[m].member, values[v] + 1, members[m].member,
                             members[m].reason);
        }
    assert_fault("leaf", "{}", "leaf.n", "is missing");
    assert_fault("name", "{}", "name", "must be a string");
    assert_fault("ints", "{}", "ints", "must be an array of integers");
}
END_TEST

START_TEST(integer_ranges)
{
    assert_read("number", "9223372036854775807");
    assert_read("number", "-9223372036854775808");
    assert_read("maybe", "0");
    assert_read("maybe", "100");
    assert_fault("maybe", "-1", "maybe", "is -1, must be 0 to 100");
    assert_fault("maybe", "101", "maybe", "is 101, must be 0 to 100");
    assert_fault("maybe", "-9223372036854775808", "maybe",
                 "is -9223372036854775808, must be 0 to 100");
    assert_read("leaf.n", "-5");
    assert_fault("leaf.n", "-6", "leaf.n", "is -6, must be -5 to 5");
    assert_fault("leaf.n", "9223372036854775807", "leaf.n",
                 "is 9223372036854775807, must be -5 to 5");
}
END_TEST

START_TEST(string_lengths)
{
    assert_read("name", "'1234567890'");
    assert_read("name", "''");
    assert_fault("name", "'12345678901'", "name", "has 11 bytes, the limit is 10");
    assert_read("name", "'\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9'"); /* bytes count */
    assert_fault("name", "'\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x'", "name",
                 "has 11 bytes, the limit is 10");
    assert_fault("leaf.s", "'abcd'", "leaf.s", "has 4 bytes, the limit is 3");
}
END_TEST

START_TEST(enum_names)
{
    const char *reason = "must be \"red\", \"green\" or \"blue\"";
    const char *good[] = {"'red'", "'green'", "'blue'"};
    const char *bad[] = {"''", "'Red'", "'re'", "'redd'", "' red'", "1", "0"};
    for (size_t i = 0; i < 3; i++)
        assert_read("colour", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fault("colour", bad[i], "colour", reason);
        assert_fault("shade", bad[i], "shade", reason);
    }
}
END_TEST

START_TEST(lists_of_integers)
{
    assert_read("ints", "[9223372036854775807,-9223372036854775808,0]");
    assert_fault("ints", "[1,2,3,4,5,6,7,8,9]", "ints", "has 9 dimensions, the limit is 8");
    assert_fault("ints", "[1,'2']", "ints", "element 1 must be an integer");
    assert_fault("ints", "[1.5]", "ints", "element 0 must be an integer");
    assert_fault("ints", "[1,2,null]", "ints", "element 2 must be an integer");
    assert_fault("more", "[]", "more", "has 0 integers for 3 dimensions");
    assert_fault("more", "[1,2,3,4]", "more", "has 4 integers for 3 dimensions");
    assert_fault("ints", "[1,2]", "more", "has 3 integers for 2 dimensions");
    assert_fault("more", "[[1],2,3]", "more", "element 0 must be an integer");
}
END_TEST

START_TEST(lists_of_objects)
{
    assert_read("leaves", "[]");
    assert_read("leaves", "[{'n':1},{'n':2},{'n':3},{'n':4}]");
    assert_fault("leaves", "[{},{},{},{},{}]", "leaves", "has 5 elements, the limit is 4");
    assert_fault("leaves", "[{'n':1},{'n':9}]", "leaves[1].n", "is 9, must be -5 to 5");
    assert_fault("leaves", "[{'n':1},{'n':2},{'s':'x'}]", "leaves[2].n", "is missing");
    assert_fault("leaves", "[1]", "leaves[0]", "must be an object");
    assert_fault("leaves", "[{'n':1},null]", "leaves[1]", "must be an object");
}
END_TEST

START_TEST(unknown_members)
{
    struct wire_fault fault;
    ck_assert_int_eq(read_with("extra", "1", true, &fault), -1);
    ck_assert_str_eq(fault.parameter, "extra");
    ck_assert_str_eq(fault.reason, "is not a known member");
    ck_assert_int_eq(read_with("extra", "1", false, &fault), 0);
    ck_assert_int_eq(read_with("extra", "null", true, &fault), -1);
    ck_assert_int_eq(read_with("", "1", true, &fault), -1);
    ck_assert_int_eq(read_with("Name", "1", true, &fault), -1);
    ck_assert_int_eq(read_with("leaf.extra", "1", true, &fault), -1);
    ck_assert_str_eq(fault.parameter, "leaf.extra");
    ck_assert_int_eq(read_with("leaf.extra", "1", false, &fault), 0);
    ck_assert_int_eq(read_with("leaves", "[{'n':1,'q':1}]", true, &fault), -1);
    ck_assert_str_eq(fault.parameter, "leaves[0].q");
}
END_TEST

/* NULL is an empty object. Any other value that is no object is refused before any member is
 * read. */
START_TEST(no_object)
{
    static const struct field none[] = {{.name = NULL}};
    const char *bad[] = {"[]", "1", "'x'", "true", "null"};
    struct wire_fault fault;
    ck_assert_int_eq(fields_read(NULL, none, true, NULL, &fault), 0);
    ck_assert_int_eq(fields_read(NULL, leaf_fields, true, NULL, &fault), -1);
    ck_assert_str_eq(fault.parameter, "n");
    for (size_t i = 0; i < 5; i++) {
        json_t *j = parse(bad[i]);
        ck_assert_int_eq(fields_read(j, none, true, NULL, &fault), -1);
        ck_assert_str_eq(fault.parameter, "");
        ck_assert_str_eq(fault.reason, "must be an object");
        json_decref(j);
    }
}
END_TEST

/* --- Faults -------------------------------------------------------------- */

START_TEST(fault_texts_are_cut_not_overrun)
{
    struct wire_fault fault;
    char key[5000], value[5100];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    ck_assert_int_eq(read_with(key, "1", true, &fault), -1);
    ck_assert_uint_eq(strlen(fault.parameter), sizeof fault.parameter - 1);
    snprintf(value, sizeof value, "{'n':1,'%s':1}", key);
    ck_assert_int_eq(read_with("leaf", value, true, &fault), -1);
    ck_assert_uint_lt(strlen(fault.parameter), sizeof fault.parameter);
    ck_assert_ptr_eq(strstr(fault.parameter, "leaf.kkk"), fault.parameter);
    wire_fault_fill(&fault, "p", "%s", key);
    ck_assert_uint_eq(strlen(fault.reason), sizeof fault.reason - 1);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(wire_fault_nest(&fault, "outer"), -1);
    ck_assert_uint_lt(strlen(fault.parameter), sizeof fault.parameter);
}
END_TEST

START_TEST(nested_paths)
{
    struct wire_fault fault;
    ck_assert_int_eq(wire_fault_set(&fault, "", "reason %d", 1), -1);
    wire_fault_nest(&fault, "views[3]");
    ck_assert_str_eq(fault.parameter, "views[3]");
    wire_fault_nest(&fault, "layout");
    ck_assert_str_eq(fault.parameter, "layout.views[3]");
    ck_assert_str_eq(fault.reason, "reason 1");
}
END_TEST

UNIT_MAIN("fields", UNIT_TEST(read_every_kind), UNIT_TEST(missing_members), UNIT_TEST(null_members),
          UNIT_TEST(absent_members_keep_the_default), UNIT_TEST(wrong_types),
          UNIT_TEST(integer_ranges), UNIT_TEST(string_lengths), UNIT_TEST(enum_names),
          UNIT_TEST(lists_of_integers), UNIT_TEST(lists_of_objects), UNIT_TEST(unknown_members),
          UNIT_TEST(no_object), UNIT_TEST(fault_texts_are_cut_not_overrun), UNIT_TEST(nested_paths))
