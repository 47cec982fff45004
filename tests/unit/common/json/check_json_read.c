/* SPDX-License-Identifier: Apache-2.0 */
/* Checks json_read.c: it accepts and refuses the same texts as jansson, and reports lack of
 * memory. */
#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/json/json_read.h"
#include "unit/faults.h"

static const char *const texts[] = {
    "{}",
    "[]",
    " { } ",
    "\t[\r\n1 , -2,3]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "12",
    "-9223372036854775808",
    "9223372036854775807",
    "1.5",
    "-0.0",
    "1e3",
    "1E+3",
    "12.5e-3",
    "1e308",
    "'x'",
    "''",
    "{'a':1,'b':{'c':[true,false,null,'d']},'e':[]}",
    "{'method':'io.shmview.DefineLayout','parameters':{'name':'n','layout':{'name':'l','views':["
    "{'name':'v','format':'i','shape':[1,2]}]}},'oneway':false}",
    "'\\\"\\\\\\/\\b\\f\\n\\r\\t'",
    "'\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\uFFFF'",
    "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf'",
    "{'a key that is longer than the first room of the reader, which grows for it, and for this "
    "one because it is longer than a hundred and twenty-eight bytes':'a value'}",
};

static const char *const bad_texts[] = {
    "",
    " ",
    "{",
    "[",
    "}",
    "]",
    "[1,]",
    "[,]",
    "[1 2]",
    "{'a'}",
    "{'a':}",
    "{'a':1,}",
    "{a:1}",
    "{1:1}",
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e+",
    "- 1",
    "NaN",
    "Infinity",
    "nul",
    "truex",
    "True",
    "'",
    "'\\x41'",
    "'\\",
    "'\\u12'",
    "'\\u12g4'",
    "'\\ud800'",
    "'\\udc00'",
    "'\\ud800\\u0041'",
    "'\\ud800x'",
    "'\\u0000'",
    "{'\\u0000':1}",
    "'\x01'",
    "'\n'",
    "'\x80'",
    "'\xc0\x80'",
    "'\xc3'",
    "'\xe0\x80\x80'",
    "'\xed\xa0\x80'",
    "'\xf0\x80\x80\x80'",
    "'\xf4\x90\x80\x80'",
    "'\xf5\x80\x80\x80'",
    "'\xff'",
    "{} {}",
    "[]x",
    "1 2",
    "9223372036854775808",
    "-9223372036854775809",
    "1e999",
    "[1}",
    "{'a':1]",
    "// c\n1",
    "{'a':1,'a':2}",
    "{'a':{'b':1,'\\u0062':2}}",
};

static json_t *by_jansson(const char *text, size_t n)
{
    return json_loadb(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

static void assert_same(const char *text, size_t n)
{
    struct wire_fault fault = {.no_memory = true};
    json_t *got = json_read(text, n, true, &fault), *wanted = by_jansson(text, n);
    if (!got != !wanted || (wanted && !json_equal(got, wanted)))
        ck_abort_msg("%s where jansson %s: %.*s", got ? "read" : fault.reason,
                     wanted ? "reads it" : "does not", (int)n, text);
    ck_assert(got || !fault.no_memory);
    json_decref(got);
    json_decref(wanted);
}

START_TEST(same_as_jansson)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = unit_json(texts[i]);
        for (size_t n = 0; n <= strlen(text); n++)
            assert_same(text, n);
    }
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        const char *text = unit_json(bad_texts[i]);
        assert_same(text, strlen(text));
    }
    assert_same("\"a\0b\"", 5);
}
END_TEST

/* Changes, removes and moves bytes of the texts above. */
START_TEST(same_as_jansson_when_damaged)
{
    static const char interesting[] = "{}[]\",:\\u0-1.eE \x80\xc3\xed\xf0\xff\ntrue";
    const size_t n_texts = sizeof texts / sizeof texts[0];
    uint64_t seed = 7;
    for (int i = 0; i < 40000; i++) {
        char text[1024] = "";
        snprintf(text, sizeof text, "%s", unit_json(texts[unit_random(&seed) % n_texts]));
        size_t n = strlen(text);
        for (uint64_t k = unit_random(&seed) % 4; k > 0 && n > 0; k--) {
            size_t at = unit_random(&seed) % n;
            char c = interesting[unit_random(&seed) % (sizeof interesting - 1)];
            if (unit_random(&seed) % 2)
                text[at] = c;
            else
                memmove(text + at, text + at + 1, n-- - at);
        }
        char *copy = malloc(n); /* for a sanitizer: no byte after it */
        memcpy(copy, text, n);
        assert_same(copy, n);
        free(copy);
    }
}
END_TEST

START_TEST(duplicates_where_they_are_allowed)
{
    struct wire_fault fault;
    json_t *got = json_read("{\"a\":1,\"a\":2}", 13, false, &fault);
    ck_assert_int_eq(json_integer_value(json_object_get(got, "a")), 2);
    json_decref(got);
}
END_TEST

START_TEST(depth)
{
    struct wire_fault fault;
    char text[2 * LIMIT_JSON_DEPTH + 2];
    memset(text, '[', LIMIT_JSON_DEPTH + 1);
    memset(text + LIMIT_JSON_DEPTH + 1, ']', LIMIT_JSON_DEPTH + 1);
    json_t *got = json_read(text + 1, 2 * LIMIT_JSON_DEPTH, true, &fault);
    ck_assert_ptr_nonnull(got);
    json_decref(got);
    ck_assert_ptr_null(json_read(text, sizeof text, true, &fault));
    unit_assert_holds(fault.reason, "byte 65: the depth is more than 64");
}
END_TEST

/* Writes an array of n values. */
static size_t write_values(char *text, const char *value, unsigned n)
{
    char *p = text;
    for (unsigned i = 0; i < n; i++)
        p += sprintf(p, "%c%s", i == 0 ? '[' : ',', value);
    return (size_t)(p - text) + (size_t)sprintf(p, "]");
}

START_TEST(weight_of_values)
{
    static const struct {
        const char *text;
        unsigned weight;
    } values[] = {{"0", 1},    {"-7", 1}, {"true", 1}, {"false", 1}, {"null", 1},    {"''", 2},
                  {"'xy'", 2}, {"{}", 2}, {"[]", 2},   {"1.5", 4},   {"{'a':1}", 5}, {"[1,2]", 4}};
    static char text[8 * LIMIT_JSON_WEIGHT];
    const unsigned all = LIMIT_JSON_WEIGHT - 2; /* the array itself weighs 2 */
    struct wire_fault fault;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *value = unit_json(values[i].text);
        unsigned most = all / values[i].weight;
        for (unsigned more = 0; more < 2; more++) {
            size_t n = write_values(text, value, most + more);
            json_t *got = json_read(text, n, true, &fault);
            ck_assert_msg((got == NULL) == more, "%u more of %s", more, value);
            json_decref(got);
        }
        unit_assert_holds(fault.reason, "too many values");
        json_t *got = json_read(text, strlen(text), false, &fault);
        ck_assert_uint_eq(json_array_size(got), most + 1);
        json_decref(got);
    }
}
END_TEST

/* Whichever allocation fails, the fault reports lack of memory and nothing leaks. */
START_TEST(every_allocation_fails)
{
    unsigned most = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = unit_json(texts[i]);
        bool failed = true;
        for (unsigned n = 1; failed; n++) {
            struct wire_fault fault = {.no_memory = false};
            faults_begin(FAULTS_MEMORY, n);
            json_t *got = json_read(text, strlen(text), true, &fault);
            failed = faults_end();
            ck_assert_msg(!got == failed, "%u of %s", n, text);
            ck_assert(fault.no_memory == failed);
            if (failed)
                ck_assert_str_eq(fault.reason, "out of memory");
            json_decref(got);
            most = n > most ? n : most;
        }
    }
    ck_assert_uint_gt(most, 20);
}
END_TEST

UNIT_MAIN("json_read", UNIT_TEST(same_as_jansson), UNIT_TEST(same_as_jansson_when_damaged),
          UNIT_TEST(duplicates_where_they_are_allowed), UNIT_TEST(depth),
          UNIT_TEST(weight_of_values), UNIT_TEST(every_allocation_fails))
