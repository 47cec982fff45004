/* SPDX-License-Identifier: Apache-2.0 */
/* Prints sizes for people: at most four digits, and never 1024 of a unit that has a larger one. */
#include "cli/shell/cli.h"
#include "unit/unit.h"

START_TEST(sizes)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0B"},         {1023, "1023B"},  {1024, "1K"},       {1536, "1.5K"},
                 {102348, "99.9K"}, {102349, "100K"}, {1048063, "1023K"}, {1048064, "1.0M"},
                 {1048576, "1M"},   {INT64_MAX, "8E"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[HUMAN_BYTES];
        ck_assert_str_eq(human_bytes(text, cases[i].bytes), cases[i].text);
    }
}
END_TEST

UNIT_MAIN("cli_numbers", UNIT_TEST(sizes))
