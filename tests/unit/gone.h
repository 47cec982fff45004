/* SPDX-License-Identifier: Apache-2.0 */
/* A stream whose control object a test truncates while its daemon is stopped, so that each access
 * to it raises SIGBUS until the test lets the daemon go on. */
#ifndef UNIT_GONE_H
#define UNIT_GONE_H

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/many.h>
#include <shmview/stream.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"

#define GONE_NAME "cam"

static struct daemon gone_daemon;
static struct shmview_connection *gone_connection;
static struct shmview_stream *gone_stream;
static char gone_path[200]; /* of the control object */
static volatile bool gone_is_cut;

/* Starts a daemon, connects to it, and creates the stream. */
static inline void gone_begin(void)
{
    const int64_t shape[] = {4, 6};
    const struct shmview_view_spec view = {
        .name = "image", .format = "uint8", .ndim = 2, .shape = shape};
    const struct shmview_stream_spec spec = {.struct_bytes = sizeof spec,
                                             .mode = SHMVIEW_LATEST,
                                             .n_slots = 4,
                                             .n_stages = 1,
                                             .views = &view,
                                             .n_views = 1};
    const struct shmview_description *d;
    daemon_start(&gone_daemon);
    gone_connection = client_connect(&gone_daemon);
    OK(shmview_stream_create(gone_connection, GONE_NAME, &spec, &gone_stream));
    OK(shmview_describe(gone_connection, GONE_NAME, &d));
    snprintf(gone_path, sizeof gone_path, "/dev/shm/shmview.%s/+%" PRId64 ".control",
             gone_daemon.instance, d->id);
    shmview_description_free(d);
}

static inline void gone_end(void)
{
    OK(shmview_stream_close(gone_stream));
    OK(shmview_disconnect(gone_connection));
    daemon_stop(&gone_daemon);
}

static inline void gone_cut(void)
{
    process_stop(gone_daemon.pid);
    ck_assert_int_eq(truncate(gone_path, 0), 0);
    gone_is_cut = true;
}

/* Lets the daemon go on. May be called by a handler of signals. */
static inline void gone_continue(void)
{
    gone_is_cut = false;
    kill(gone_daemon.pid, SIGCONT);
}

static inline bool gone_is_whole(void)
{
    struct stat st;
    return stat(gone_path, &st) == 0 && st.st_size > 0;
}

/* Lets the daemon go on, and waits until it has restored the object. */
static inline void gone_mend(void)
{
    gone_continue();
    AWAIT(gone_is_whole());
}

/* A jump out of the library may have left a mutex locked: the signal then ends the test. */
static inline void gone_assert_library_works(void)
{
    alarm(5);
    shmview_trim();
    alarm(0);
}

#endif
