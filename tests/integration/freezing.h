/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of one's own, and sealed segments to be frozen. */
#ifndef INTEGRATION_FREEZING_H
#define INTEGRATION_FREEZING_H

#include <stdio.h>
#include <string.h>

#include <shmview/describe.h>
#include <shmview/freeze.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define BYTES 10000 /* three pages, the last one not full */
#define PAGES 12288

static struct daemon d;
static struct shmview_connection *conn;

static const struct shmview_create_options sealed = {
    .struct_bytes = sizeof sealed,
    .lifetime = SHMVIEW_MANUAL,
    .backing = SHMVIEW_BACKING_SEALED,
};

static inline struct shmview_segment *make(const char *name)
{
    struct shmview_segment *s;
    OK(shmview_create(conn, name, BYTES, &sealed, &s));
    memset(shmview_data(s), 'a', BYTES);
    return s;
}

static inline void drop(struct shmview_segment *segment, const char *name)
{
    OK(shmview_detach(segment));
    OK(shmview_remove(conn, name));
}

static inline void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static inline void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static inline uint32_t frozen(const char *name)
{
    const struct shmview_description *told;
    OK(shmview_describe(conn, name, &told));
    uint32_t is = told->frozen;
    shmview_description_free(told);
    return is;
}

/* How many attachments the daemon counts. It learns of the end of another connection only some time
 * after the client has died or hung up. */
static inline int64_t attachments(const char *name)
{
    const struct shmview_description *told;
    OK(shmview_describe(conn, name, &told));
    int64_t n = told->attachments;
    shmview_description_free(told);
    return n;
}

/* Writes and reads back, as only a writer can. The last byte stays. */
static inline void use(struct shmview_segment *segment)
{
    volatile char *data = shmview_data(segment);
    ck_assert_int_eq(shmview_access(segment), SHMVIEW_WRITE);
    for (size_t i = 0; i < BYTES; i += 4096)
        data[i] = 'b';
    ck_assert_int_eq(data[BYTES - 1], 'a');
}

/* Refused with _BUSY; the text names the process. */
#define BUSY(call, pid, part)                                                                      \
    do {                                                                                           \
        char busy_text[64];                                                                        \
        snprintf(busy_text, sizeof busy_text, "process %d (", (int)(pid));                         \
        REFUSED(call, BUSY, part);                                                                 \
        ck_assert_msg(strstr(shmview_error_text(), busy_text) != NULL, "%s",                       \
                      shmview_error_text());                                                       \
    } while (0)

/* A forked child that has not used the handle, uses it, and ends. */
static inline void heir(struct child *me, void *segment)
{
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_lock(segment));
    OK(shmview_unlock(segment));
    child_tell(me, 2);
    child_pause(me);
}

#endif
