/* SPDX-License-Identifier: Apache-2.0 */
/* Prints metrics from figures that no live daemon would give. */
#include "cli/text/metrics.h"

#include "unit/unit.h"

static char *said;

static const char *print(const struct shmview_stats *stats)
{
    size_t n;
    free(said);
    FILE *f = open_memstream(&said, &n);
    metrics_print(f, stats, stats ? stats->segments : NULL, stats ? stats->n_segments : 0,
                  10000000);
    fclose(f);
    return said;
}

static void refute(const char *text)
{
    ck_assert_msg(strstr(said, text) == NULL, "'%s' is in: %s", text, said);
}

START_TEST(characters_of_the_format_are_escaped)
{
    const struct shmview_stats stats = {.version = "a\"b\\c\nd"};
    unit_assert_holds(print(&stats), "shmview_build_info{version=\"a\\\"b\\\\c\\nd\"} 1\n");
}
END_TEST

START_TEST(nothing_is_said_of_what_is_not_known)
{
    const struct shmview_quota_stats quota = {
        .what = "bytes", .used = 5, .limit = -1, .total_used = -1, .total_limit = 7};
    const struct shmview_quota_stats *const quotas[] = {&quota};
    const struct shmview_stats stats = {
        .version = "1", .started_us = 1500000, .connections = -1, .quotas = quotas, .n_quotas = 1};
    print(&stats);
    unit_assert_holds(said, "\nshmview_start_time_seconds 1.500000\n");
    unit_assert_holds(said, "\nshmview_quota_used{what=\"bytes\",of=\"caller\"} 5\n");
    unit_assert_holds(said, "\nshmview_quota_limit{what=\"bytes\",of=\"all\"} 7\n");
    refute("shmview_connections");
    refute("-1");
    refute("shmview_refusals");
    refute("shmview_segment_");
    ck_assert_str_eq(print(NULL), "# HELP shmview_up Whether the daemon answers.\n"
                                  "# TYPE shmview_up gauge\nshmview_up 0\n");
}
END_TEST

START_TEST(the_longest_holds_and_waits)
{
    const struct shmview_party_stats holder = {.holds = SHMVIEW_SHARED, .since_us = 4000000},
                                     other = {.holds = SHMVIEW_SHARED, .since_us = -1},
                                     waiter = {.waits = SHMVIEW_EXCLUSIVE, .since_us = 8500000},
                                     later = {.waits = SHMVIEW_SHARED, .since_us = 11000000};
    const struct shmview_party_stats *const parties[] = {&holder, &other, &waiter, &later};
    const struct shmview_segment_stats segment = {.name = "s",
                                                  .is_named = 1,
                                                  .has_lock = 1,
                                                  .lifetime = SHMVIEW_MANUAL,
                                                  .layout = "",
                                                  .parties = parties,
                                                  .n_parties = 4},
                                       *const segments[] = {&segment};
    const struct shmview_stats stats = {.version = "1", .segments = segments, .n_segments = 1};
    print(&stats);
    unit_assert_holds(said, "lock_holders{segment=\"s\",mode=\"exclusive\"} 0\n");
    unit_assert_holds(said, "lock_holders{segment=\"s\",mode=\"shared\"} 2\n");
    unit_assert_holds(said, "lock_waiters{segment=\"s\",mode=\"shared\"} 1\n");
    unit_assert_holds(said, "lock_held_seconds{segment=\"s\"} 6.000000\n");
    unit_assert_holds(said, "lock_waited_seconds{segment=\"s\"} 1.500000\n");
}
END_TEST

UNIT_MAIN("metrics", UNIT_TEST(characters_of_the_format_are_escaped),
          UNIT_TEST(nothing_is_said_of_what_is_not_known), UNIT_TEST(the_longest_holds_and_waits))
