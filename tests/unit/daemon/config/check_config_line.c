/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the line of each member of a configuration by its path, also in damaged texts. */
#include "unit/unit.h"

#include "daemon/config/config_line.h"

static const char text[] = "\n"
                           "{ \"a\" : 1, \"b\": {\n"   /* 2 */
                           "  \"a\":\n"                /* 3 */
                           "    \"}],{[\\\"\\\\\",\n"  /* 4 */
                           "  \"c\": [],\n"            /* 5 */
                           "  \"d\": {}\n"             /* 6 */
                           "}, \"list\": [10,\n"       /* 7 */
                           "  [1,\n"                   /* 8 */
                           "   {\"x\": null}],\n"      /* 9 */
                           "  {\"x\": true,\n"         /* 10 */
                           "   \"y\\u0041\": \"\"},\n" /* 11 */
                           "  \"s\"\n"                 /* 12 */
                           "],\n"                      /* 13 */
                           "\"last.one[0]\": -1e9 ,\n" /* 14 */
                           "\"ab\": 0}\n";             /* 15 */

static const struct {
    const char *path;
    unsigned line;
} cases[] = {
    {"", 2},
    {"a", 2},
    {"b", 2},
    {"b.a", 3},
    {"b.c", 5},
    {"b.d", 6},
    {"list", 7},
    {"list[0]", 7},
    {"list[1]", 8},
    {"list[1][0]", 8},
    {"list[1][1]", 9},
    {"list[1][1].x", 9},
    {"list[2]", 10},
    {"list[2].x", 10},
    {"list[2].yA", 11},
    {"list[3]", 12},
    {"last.one[0]", 14},
    {"ab", 15},
    /* as far as the path exists */
    {"none", 2},
    {"b.none.deeper", 2},
    {"b.c[0]", 5},
    {"b.d.x", 6},
    {"b.a.x", 3},
    {"list[4]", 7},
    {"list[18446744073709551616]", 7},
    {"list[x]", 7},
    {"list[1", 7},
    {"list.x", 7},
    {"list[1][1].y", 9},
    {"a.b", 2},
};

START_TEST(every_place)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned line = config_line(text, cases[i].path);
        ck_assert_msg(line == cases[i].line, "%s: line %u, not %u", cases[i].path, line,
                      cases[i].line);
    }
}
END_TEST

START_TEST(all_elements_at_once)
{
    unsigned lines[6];
    config_lines(text, "list", lines, 4);
    const unsigned wanted[] = {7, 8, 10, 12};
    ck_assert_mem_eq(lines, wanted, sizeof wanted);
    config_lines(text, "list[1]", lines, 2);
    ck_assert_uint_eq(lines[0], 8);
    ck_assert_uint_eq(lines[1], 9);
    config_lines(text, "list", lines, 6); /* beyond the end: the line of the last element */
    ck_assert_uint_eq(lines[5], 12);
}
END_TEST

/* Tries every prefix of the text, and every text that lacks one character. */
START_TEST(rubbish)
{
    unsigned lines[5];
    for (size_t cut = 0; cut < sizeof text; cut++)
        for (int beginning = 0; beginning < 2; beginning++) {
            char *copy = malloc(sizeof text); /* of exactly that size, for a sanitizer */
            memcpy(copy, text, cut);
            strcpy(copy + cut, beginning || cut + 1 >= sizeof text ? "" : text + cut + 1);
            for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                ck_assert_uint_le(config_line(copy, cases[i].path), 16);
            config_lines(copy, "list", lines, 5);
            free(copy);
        }
}
END_TEST

UNIT_MAIN("config_line", UNIT_TEST(every_place), UNIT_TEST(all_elements_at_once),
          UNIT_TEST(rubbish))
