/* SPDX-License-Identifier: Apache-2.0 */
/* A segment is removed while its page is made. */
#include <dlfcn.h>
#include <string.h>

#include <microhttpd.h>

#include <shmview/stats.h>

#include "support/suite.h"
#include "unit/gone.h"

#include "web/api/api.h"

static bool removes; /* before the next statistics */

/* Replaces the function of libmicrohttpd: each parameter is the name of the segment. */
enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *connection,
                                              enum MHD_ValueKind kind, const char *key,
                                              size_t key_bytes, const char **ret, size_t *ret_bytes)
{
    (void)connection, (void)kind, (void)key, (void)key_bytes;
    *ret = GONE_NAME;
    *ret_bytes = strlen(GONE_NAME);
    return MHD_YES;
}

/* Replaces the function of the library, and calls it when the segment is removed. */
int shmview_stats_get(struct shmview_connection *connection,
                      const struct shmview_stats_options *options, const struct shmview_stats **ret)
{
    __typeof__(shmview_stats_get) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stats_get");
    if (removes)
        OK(shmview_remove(gone_connection, GONE_NAME));
    return real(connection, options, ret);
}

START_TEST(a_segment_that_is_removed_between_two_requests)
{
    struct backend backend;
    const struct request request = {.context = &backend};
    struct reply reply = {.status = 0};
    gone_begin();
    ck_assert_int_eq(backend_init(&backend, gone_daemon.socket, 100), 0);
    api_segment(&request, &reply);
    ck_assert_uint_eq(reply.status, 0);
    reply_free(&reply);
    removes = true;
    reply = (struct reply){.status = 0};
    api_segment(&request, &reply);
    ck_assert_uint_eq(reply.status, 404);
    reply_free(&reply);
    backend_deinit(&backend);
    gone_end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(a_segment_that_is_removed_between_two_requests),
                                       SUITE_END};
    return suite_main("web_segment", tests);
}
