/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which names of segments, views and layouts are valid: each byte in each place, and
 * every length. */
#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/base/name.h"

static bool letter_of_names(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

START_TEST(ordinary_names)
{
    const char *good[] = {"a",   "Z",   "0",    "demo", "a.b",      "a..b", "a.",
                          "-",   "_",   "-rf",  "9",    "A-b_c.9",  "a-",   "con",
                          "x.y", "0.0", "_.._", "--",   "a.control"};
    const char *bad[] = {"",    ".",    "..",   ".hidden", "a b",      " a",    "a ",   "a/b",
                         "/",   "/a",   "a/",   "../a",    "a\n",      "\na",   "a\tb", "a+b",
                         "a:b", "a\\b", "a\"b", "a'b",     "\xc3\xa9", "a\x80", "\x7f", "a\x01"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(name_is_valid(good[i], LIMIT_NAME_BYTES), "'%s' is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!name_is_valid(bad[i], LIMIT_NAME_BYTES), "'%s' is accepted", bad[i]);
}
END_TEST

START_TEST(every_byte_in_every_place)
{
    for (int c = 1; c < 256; c++) {
        const char alone[] = {(char)c, 0};
        const char last[] = {'a', (char)c, 0};
        const char inside[] = {'a', (char)c, 'b', 0};
        ck_assert_int_eq(name_is_valid(alone, 64), letter_of_names(c) && c != '.');
        ck_assert_int_eq(name_is_valid(last, 64), letter_of_names(c));
        ck_assert_int_eq(name_is_valid(inside, 64), letter_of_names(c));
    }
}
END_TEST

START_TEST(lengths)
{
    char name[300];
    memset(name, 'x', sizeof name);
    for (size_t max = 1; max <= LIMIT_NAME_BYTES; max++)
        for (size_t n = 0; n <= max + 2; n++) {
            name[n] = '\0';
            ck_assert_int_eq(name_is_valid(name, max), n >= 1 && n <= max);
            name[n] = 'x';
        }
    ck_assert(!name_is_valid("", 0));
    ck_assert(!name_is_valid("a", 0));
}
END_TEST

/* A name that is too long is read only as far as the byte that makes it too long. */
START_TEST(reads_no_further_than_it_must)
{
    char *name = malloc(LIMIT_NAME_BYTES + 1);
    memset(name, 'x', LIMIT_NAME_BYTES + 1);
    ck_assert(!name_is_valid(name, LIMIT_NAME_BYTES));
    free(name);
}
END_TEST

START_TEST(labels)
{
    static const char *const good[] = {"a", "MPI job 4711, rank 0 of 8 on node1",
                                       "\xc3\xa4\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\xa0"};
    static const char *const bad[] = {"",
                                      "a\n",
                                      "\x1b[0m",
                                      "\x7f",
                                      "\xc2\x80",
                                      "\xc2\x9f",
                                      "\xe2\x80\xa8",
                                      "\xe2\x80\xae",
                                      "\xe2\x81\xa6",
                                      "\xe2\x80\x8f",
                                      "\xff",
                                      "\x80",
                                      "\xc3",
                                      "\xe2\x82",
                                      "a\xf0\x9f\x98",
                                      "\xc1\xa1",
                                      "\xe0\x81\xa1",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(label_is_valid(good[i]), "good label %zu is refused", i);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!label_is_valid(bad[i]), "bad label %zu is accepted", i);
    char *label = malloc(LIMIT_LABEL_BYTES + 1);
    memset(label, 'x', LIMIT_LABEL_BYTES + 1);
    ck_assert(!label_is_valid(label)); /* and reads no further */
    label[LIMIT_LABEL_BYTES] = '\0';
    ck_assert(label_is_valid(label));
    free(label);
}
END_TEST

START_TEST(names_of_programs)
{
    char to[16], from[16] = "\033]0;\x7f\xc3\xa4~ !";
    command_copy(to, from);
    ck_assert_str_eq(to, "?]0;???~ !");
    memset(from, 'x', sizeof from); /* without a NUL */
    command_copy(to, from);
    ck_assert_str_eq(to, "xxxxxxxxxxxxxxx");
    command_copy(to, "");
    for (size_t i = 0; i < sizeof to; i++)
        ck_assert_int_eq(to[i], 0);
}
END_TEST

START_TEST(a_copy_of_a_list)
{
    char first[] = "a", last[] = "bcd";
    const char **copy = names_copy((const char *[]){first, "", last}, 3);
    memset(first, 'x', 1);
    memset(last, 'x', 3);
    ck_assert_str_eq(copy[0], "a");
    ck_assert_str_eq(copy[1], "");
    ck_assert_str_eq(copy[2], "bcd");
    ck_assert_ptr_null(copy[3]);
    free(copy);
    copy = names_copy(NULL, 0);
    ck_assert_ptr_null(copy[0]);
    free(copy);
}
END_TEST

UNIT_MAIN("name", UNIT_TEST(labels), UNIT_TEST(names_of_programs), UNIT_TEST(a_copy_of_a_list),
          UNIT_TEST(ordinary_names), UNIT_TEST(every_byte_in_every_place), UNIT_TEST(lengths),
          UNIT_TEST(reads_no_further_than_it_must))
