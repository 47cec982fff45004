/* SPDX-License-Identifier: Apache-2.0 */
/* no total */
#include "unit/unit.h"

#include "daemon/config/config_value.h"

static int lookup(enum access_kind kind, const char *name, uint32_t *ret_id)
{
    if (strcmp(name, "ann") == 0 && kind == ACCESS_USER)
        *ret_id = 1001;
    else if (strcmp(name, "lab") == 0 && kind == ACCESS_GROUP)
        *ret_id = 2001;
    else
        return strcmp(name, "slow") == 0 ? -ETIMEDOUT : -ENOENT;
    return 0;
}

START_TEST(sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"1", 1},
        {"4096", 4096},
        {"1KiB", 1024},
        {"64MiB", (uint64_t)64 << 20},
        {"2GiB", (uint64_t)2 << 30},
        {"65536TiB", LIMIT_SEGMENT_BYTES},
        {"72057594037927936", LIMIT_SEGMENT_BYTES},
        {"50%", 1000},
        {"1%", 20},
        {"100%", 2000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 0;
        ck_assert_int_eq(config_parse_size(cases[i].text, 2000, &bytes), 0);
        ck_assert_uint_eq(bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(sizes_refused)
{
    static const char *const bad[] = {"",      "MiB",   "-1",  "+1",   " 1",
                                      "1 MiB", "1MB",   "1M",  "1mib", "1.5MiB",
                                      "0x10",  "1MiB ", "1%%", "%",    "1KiBKiB"};
    static const char *const far[] = {"0",
                                      "0KiB",
                                      "0%",
                                      "101%",
                                      "65537TiB",
                                      "72057594037927937",
                                      "18446744073709551616",
                                      "99999999999999999999TiB"};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(config_parse_size(bad[i], 2000, &bytes) == -EINVAL, "%s", bad[i]);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        ck_assert_msg(config_parse_size(far[i], 2000, &bytes) == -ERANGE, "%s", far[i]);
    ck_assert_int_eq(config_parse_size("50%", 0, &bytes), -EINVAL); /* no total */
}
END_TEST

START_TEST(modes)
{
    static const char *const bad[] = {"",     "0",   "64",   "00640", "0700", "0001",
                                      "0800", "u+r", "1640", "640 ",  "-640"};
    uint32_t mode;
    ck_assert_int_eq(config_parse_mode("0640", &mode), 0);
    ck_assert_uint_eq(mode, 0640);
    ck_assert_int_eq(config_parse_mode("666", &mode), 0);
    ck_assert_uint_eq(mode, 0666);
    ck_assert_int_eq(config_parse_mode("0000", &mode), 0);
    ck_assert_uint_eq(mode, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(config_parse_mode(bad[i], &mode) == -EINVAL, "%s", bad[i]);
}
END_TEST

START_TEST(ids)
{
    uint32_t id;
    ck_assert_int_eq(config_parse_id("ann", ACCESS_USER, lookup, &id), 0);
    ck_assert_uint_eq(id, 1001);
    ck_assert_int_eq(config_parse_id("4294967294", ACCESS_GROUP, lookup, &id), 0);
    ck_assert_uint_eq(id, 4294967294);
    static const char *const none[] = {"",   "lab",   "4294967295",
                                       "-1", "12ann", "18446744073709551617"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(config_parse_id(none[i], ACCESS_USER, lookup, &id) == -ENOENT, "%s", none[i]);
    ck_assert_int_eq(config_parse_id("slow", ACCESS_USER, lookup, &id), -ETIMEDOUT);
}
END_TEST

static void entry_is(const char *text, bool with_perms, uint16_t kind, uint32_t id, uint16_t perms)
{
    struct access_entry e;
    ck_assert_int_eq(config_parse_entry(text, with_perms, lookup, &e), 0);
    ck_assert_msg(e.kind == kind && e.id == id && e.perms == perms, "%s: %u %u %u", text, e.kind,
                  e.id, e.perms);
}

START_TEST(entries)
{
    entry_is("user:ann", false, ACCESS_USER, 1001, 0);
    entry_is("group:lab", false, ACCESS_GROUP, 2001, 0);
    entry_is("group:7", false, ACCESS_GROUP, 7, 0);
    entry_is("user:ann:rw", true, ACCESS_USER, 1001, ACCESS_READ | ACCESS_WRITE);
    entry_is("user:0:r", true, ACCESS_USER, 0, ACCESS_READ);
    entry_is("group:lab:w", true, ACCESS_GROUP, 2001, ACCESS_WRITE);
    entry_is("user:ann:-", true, ACCESS_USER, 1001, 0);
}
END_TEST

START_TEST(entries_refused)
{
    static const char *const plain[] = {"",          "*",    "ann",       "user",       "user:",
                                        "users:ann", ":ann", "user:ann:", "user:ann:r", "User:ann"};
    static const char *const perms[] = {"user:ann",    "user:ann:", "user:ann:x",  "user:ann:wr",
                                        "user:ann:rr", "user::r",   "user:ann:r:", "other:r"};
    struct access_entry e;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        ck_assert_msg(config_parse_entry(plain[i], false, lookup, &e) == -EINVAL, "%s", plain[i]);
    for (size_t i = 0; i < sizeof perms / sizeof perms[0]; i++)
        ck_assert_msg(config_parse_entry(perms[i], true, lookup, &e) == -EINVAL, "%s", perms[i]);
    char name[400] = "user:";
    memset(name + 5, 'a', 300);
    ck_assert_int_eq(config_parse_entry(name, false, lookup, &e), -EINVAL);
    ck_assert_int_eq(config_parse_entry("group:ann", false, lookup, &e), -ENOENT);
    ck_assert_uint_eq(e.kind, ACCESS_GROUP);
    ck_assert_int_eq(config_parse_entry("user:slow:r", true, lookup, &e), -ETIMEDOUT);
}
END_TEST

START_TEST(of_the_system)
{
    uint32_t id = 7;
    ck_assert_int_eq(config_lookup_system(ACCESS_USER, "root", &id), 0);
    ck_assert_uint_eq(id, 0);
    id = 7;
    ck_assert_int_eq(config_lookup_system(ACCESS_GROUP, "root", &id), 0);
    ck_assert_uint_eq(id, 0);
    ck_assert_int_eq(config_lookup_system(ACCESS_USER, "no-such-user", &id), -ENOENT);
    ck_assert_int_eq(config_lookup_system(ACCESS_GROUP, "no-such-group", &id), -ENOENT);
}
END_TEST

UNIT_MAIN("config_value", UNIT_TEST(sizes), UNIT_TEST(sizes_refused), UNIT_TEST(modes),
          UNIT_TEST(ids), UNIT_TEST(entries), UNIT_TEST(entries_refused), UNIT_TEST(of_the_system))
