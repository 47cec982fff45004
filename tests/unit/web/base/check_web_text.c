/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the texts that the page's server writes: JSON of any bytes, HTML; limits per second
 * and at the same time. */
#include "web/base/text.h"

#include <math.h>

#include "unit/unit.h"
#include "web/base/bucket.h"
#include "web/base/room.h"

/* Asserts what text_json_n() makes of n bytes. */
static void expect_json(const char *bytes, size_t n, const char *expected)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    text_json_n(&t, bytes, n);
    text_add(&t, "", 1);
    ck_assert(!t.failed);
    ck_assert_str_eq(t.bytes, expected);
}
#define EXPECT_JSON(bytes, expected) expect_json(bytes, sizeof(bytes) - 1, expected)

START_TEST(strings_of_json)
{
    EXPECT_JSON("", "\"\"");
    EXPECT_JSON("plain text", "\"plain text\"");
    EXPECT_JSON("a\"b\\c", "\"a\\u0022b\\u005cc\"");
    EXPECT_JSON("<img src=x>&", "\"\\u003cimg src=x\\u003e\\u0026\"");
    EXPECT_JSON("\n\0\x7f", "\"\\u000a\\u0000\\u007f\"");
    EXPECT_JSON("gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"");
    EXPECT_JSON("\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"");
}
END_TEST

/* Each byte that begins no sequence becomes one U+FFFD. */
START_TEST(bytes_that_are_no_text)
{
#define BAD "\xef\xbf\xbd"
    EXPECT_JSON("\xff", "\"" BAD "\"");
    EXPECT_JSON("a\xc3", "\"a" BAD "\"");
    EXPECT_JSON("\xc0\xaf", "\"" BAD BAD "\"");
    EXPECT_JSON("\xe0\x80\x80", "\"" BAD BAD BAD "\"");
    EXPECT_JSON("\xed\xa0\x80", "\"" BAD BAD BAD "\"");
    EXPECT_JSON("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\"");
    EXPECT_JSON("\xe2\x82", "\"" BAD BAD "\"");
}
END_TEST

START_TEST(numbers_that_json_lacks)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    text_json_double(&t, 0.1);
    text_json_double(&t, (double)NAN);
    text_json_double(&t, (double)INFINITY);
    text_json_double(&t, -(double)INFINITY);
    text_json_known(&t, -1);
    text_json_known(&t, 7);
    text_json(&t, NULL);
    text_int(&t, INT64_MIN);
    text_int(&t, INT64_MAX);
    text_int(&t, 0);
    text_add(&t, "", 1);
    ck_assert_str_eq(t.bytes, "0.10000000000000001\"nan\"\"inf\"\"-inf\"null7null"
                              "-922337203685477580892233720368547758070");
}
END_TEST

START_TEST(html_is_escaped)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    text_html(&t, "<a href=\"x\" b='c'>&");
    text_add(&t, "", 1);
    ck_assert_str_eq(t.bytes, "&lt;a href=&quot;x&quot; b=&#39;c&#39;&gt;&amp;");
}
END_TEST

START_TEST(long_texts)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    char long_text[3000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    for (int i = 0; i < 100; i++)
        text_print(&t, "%s", long_text);
    ck_assert(!t.failed);
    ck_assert_uint_eq(t.n, 100 * (sizeof long_text - 1));
    ck_assert_int_eq(t.bytes[t.n - 1], 'x');
    text_add(&t, long_text, SIZE_MAX / 2);
    ck_assert(t.failed);
    text_put(&t, "ignored");
    ck_assert_uint_eq(t.n, 100 * (sizeof long_text - 1));
}
END_TEST

START_TEST(a_bucket_empties_and_fills)
{
    struct bucket b;
    bucket_init(&b, 1000, 3);
    for (int i = 0; i < 3; i++)
        ck_assert(bucket_take(&b, 1));
    bucket_charge(&b, 100);
    ck_assert(!bucket_take(&b, 0));
    usleep(150000); /* 100 are there again after 100 ms */
    ck_assert(bucket_take(&b, 0));
    ck_assert(b.level <= 3);
    bucket_deinit(&b);
}
END_TEST

START_TEST(a_room_has_so_many_bytes)
{
    struct room r;
    struct hold a = {.room = NULL}, b = {.room = NULL};
    room_init(&r, 100);
    ck_assert(room_take(&r, 60, &a));
    ck_assert(!room_take(&r, 41, &b));
    hold_end(&b);
    ck_assert(room_take(&r, 40, &b));
    ck_assert(!room_take(&r, 1, &a) && !room_take(&r, SIZE_MAX, &a));
    hold_end(&a);
    hold_end(&a);
    ck_assert(room_take(&r, 20, &b));
    ck_assert(!room_take(&r, 41, &a));
    hold_end(&b);
    ck_assert(room_take(&r, 100, &a));
}
END_TEST

START_TEST(a_text_with_room_for_bytes)
{
    CLEANUP_TEXT struct text t = {.bytes = NULL};
    text_put(&t, "ab");
    ck_assert(text_fit(&t, 3));
    memcpy(t.bytes + t.n, "cde", 3);
    t.n += 3;
    text_add(&t, "f", 2);
    ck_assert_str_eq(t.bytes, "abcdef");
    ck_assert(!text_fit(&t, SIZE_MAX / 2));
    ck_assert(t.failed && !text_fit(&t, 1));
}
END_TEST

UNIT_MAIN("web_text", UNIT_TEST(strings_of_json), UNIT_TEST(bytes_that_are_no_text),
          UNIT_TEST(numbers_that_json_lacks), UNIT_TEST(html_is_escaped), UNIT_TEST(long_texts),
          UNIT_TEST(a_bucket_empties_and_fills), UNIT_TEST(a_room_has_so_many_bytes),
          UNIT_TEST(a_text_with_room_for_bytes))
