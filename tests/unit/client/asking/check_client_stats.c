/* SPDX-License-Identifier: Apache-2.0 */
/* Checks stats.c of the library with the replies of a stub. */
#include <shmview/stats.h>

#include "unit/faults.h"
#include "unit/stub.h"

#define PAGE(next)                                                                                 \
    {                                                                                              \
        .method = "Stats", .reply = "{'parameters':{'instance':{'version':'0','started':1,"        \
                                    "'uptime':1,'refusals':[],'pid':1,'memory_free':1,"            \
                                    "'memory_limit':1,'quotas':[]},'segments':[]" next "}}"        \
    }

static struct shmview_connection *conn;
static struct stub stub;

/* Requests all pages of the stub. Returns what the library returned. */
static int ask(const struct stub_step *steps, size_t n)
{
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    const struct shmview_stats *stats = NULL;
    stub_start(&stub, steps, n);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    int r = shmview_stats_get(conn, &o, &stats);
    ck_assert((r == 0) == (stats != NULL));
    shmview_stats_free(stats);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    return r;
}

/* Nobody may see the segments of a page. */
START_TEST(empty_pages)
{
    const struct stub_step steps[] = {STUB_GREETING, PAGE(",'next':1"), PAGE(",'next':2"),
                                      PAGE("")};
    ck_assert_int_eq(ask(steps, 4), 0);
    unit_assert_holds(stub.requests[3], "\"after\":2");
}
END_TEST

START_TEST(pages_without_end)
{
    const struct stub_step steps[] = {STUB_GREETING, PAGE(",'next':2"), PAGE(",'next':2")};
    ck_assert_int_eq(ask(steps, 3), -SHMVIEW_ERR_PROTOCOL);
    unit_assert_holds(shmview_error_text(), "next is 2 on a page after 2");
}
END_TEST

UNIT_MAIN("stats", UNIT_TEST(empty_pages), UNIT_TEST(pages_without_end))
