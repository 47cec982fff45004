/* SPDX-License-Identifier: Apache-2.0 */
/* A client truncates the control object of a segment that the page reads. */
#include <dlfcn.h>
#include <string.h>

#include <microhttpd.h>

#include "support/suite.h"
#include "unit/gone.h"

#include "web/api/api.h"
#include "web/memory/guard.h"
#include "web/memory/look.h"

static struct backend backend;
static bool cuts; /* before the next query */

/* Replaces the function of libmicrohttpd: each parameter is the name of the stream. */
enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *connection,
                                              enum MHD_ValueKind kind, const char *key,
                                              size_t key_bytes, const char **ret, size_t *ret_bytes)
{
    (void)connection, (void)kind, (void)key, (void)key_bytes;
    *ret = GONE_NAME;
    *ret_bytes = strlen(GONE_NAME);
    return MHD_YES;
}

/* Replaces the function of the library, and calls it when the object is gone. */
int shmview_stream_query(struct shmview_stream *stream, struct shmview_stream_status *status,
                         struct shmview_stream_slot_status *slots, size_t n_slots,
                         struct shmview_stream_reader_status *readers, size_t n_readers)
{
    __typeof__(shmview_stream_query) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_query");
    if (cuts)
        gone_cut();
    return real(stream, status, slots, n_slots, readers, n_readers);
}

/* Likewise: the page closes the stream right after the query, and then waits for the repair. */
int shmview_stream_close(struct shmview_stream *stream)
{
    __typeof__(shmview_stream_close) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_close");
    if (gone_is_cut) {
        gone_mend();
        gone_assert_library_works();
    }
    return real(stream);
}

static void begin(void)
{
    gone_begin();
    guard_init();
    ck_assert_int_eq(backend_init(&backend, gone_daemon.socket, 100), 0);
}

static void end(void)
{
    backend_deinit(&backend);
    gone_end();
}

static int copy_nothing(void *arg)
{
    (void)arg;
    return 0;
}

START_TEST(the_first_read_of_a_view)
{
    const struct look_at at = {.segment = GONE_NAME};
    struct look look;
    begin();
    OK(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look));
    gone_cut();
    ck_assert_int_eq(look_read(&look, copy_nothing, NULL), -SHMVIEW_ERR_LOST);
    ck_assert(look.is_gone);
    gone_mend();
    gone_assert_library_works();
    look_close(&look);
    OK(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look));
    OK(look_read(&look, copy_nothing, NULL));
    look_close(&look);
    end();
}
END_TEST

START_TEST(the_facts_of_a_stream)
{
    const struct request request = {.context = &backend};
    struct reply reply = {.status = 0};
    begin();
    cuts = true;
    api_stream(&request, &reply);
    ck_assert_uint_eq(reply.status, 409);
    reply_free(&reply);
    cuts = false;
    reply = (struct reply){.status = 0};
    api_stream(&request, &reply);
    ck_assert_uint_eq(reply.status, 0);
    reply_free(&reply);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(the_first_read_of_a_view),
                                       SUITE_TEST(the_facts_of_a_stream), SUITE_END};
    return suite_main("web_guard", tests);
}
