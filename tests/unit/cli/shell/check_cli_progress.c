/* SPDX-License-Identifier: Apache-2.0 */
/* Prints progress texts, also into buffers that are too small for them. */
#include "unit/unit.h"

#include "cli/shell/progress.h"

#define GIB    (UINT64_C(1) << 30)
#define SECOND INT64_C(1000000000)

START_TEST(texts)
{
    static const struct {
        size_t width;
        bool utf8;
        uint64_t done, total;
        int64_t elapsed;
        const char *text;
    } cases[] = {
        {50, false, 0, GIB, 0, "  0%                     0B of 1G  0B/s  0:00 left"},
        {50, false, GIB / 2, GIB, SECOND, " 50% #######         512M of 1G  512M/s  0:01 left"},
        {50, false, GIB, GIB, 2 * SECOND, "100% ################# 1G of 1G  512M/s  0:00 left"},
        {50, true, GIB / 4, GIB, 60 * SECOND, " 25% ━━━             256M of 1G  4.3M/s  3:00 left"},
        {10, false, GIB / 2, GIB, SECOND, " 50%  512M of 1G  512M/s  0:01 left"},
        {50, true, GIB / 2, PROGRESS_UNKNOWN, 2 * SECOND, "512M  256M/s"},
        {30, false, 0, 0, 0, "100%  0B of 0B  0B/s  0:00 left"},
    };
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        progress_text(text, sizeof text, cases[i].width, cases[i].utf8, cases[i].done,
                      cases[i].total, cases[i].elapsed);
        ck_assert_msg(strcmp(text, cases[i].text) == 0, "%zu: \"%s\"", i, text);
    }
}
END_TEST

/* However long the text, it must not be written beyond the buffer. */
START_TEST(small_buffers)
{
    char text[512];
    for (size_t bytes = 1; bytes < sizeof text; bytes++) {
        memset(text, 0x7f, sizeof text);
        progress_text(text, bytes, 120, true, GIB - 1, GIB, 3 * SECOND);
        ck_assert_ptr_nonnull(memchr(text, '\0', bytes));
        for (size_t i = bytes; i < sizeof text; i++)
            ck_assert_int_eq(text[i], 0x7f);
    }
}
END_TEST

UNIT_MAIN("cli_progress", UNIT_TEST(texts), UNIT_TEST(small_buffers))
