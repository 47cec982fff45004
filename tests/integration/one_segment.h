/* SPDX-License-Identifier: Apache-2.0 */
/* One segment of a daemon of one's own, with a lock, and those who take that. */
#ifndef INTEGRATION_ONE_SEGMENT_H
#define INTEGRATION_ONE_SEGMENT_H

#include "support/child.h"
#include "support/client.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static inline void open_segment(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
}

static inline void close_segment(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* A child: locks, reports the result + 1, and unlocks on the cue. */
static inline void write_on_cue(struct child *me, void *arg)
{
    int r = shmview_lock(arg);
    ck_assert_int_ge(r, 0);
    child_tell(me, r + 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

static inline struct shmview_lock_status status_of(struct shmview_segment *segment)
{
    struct shmview_lock_status status = {.is_held_here = 77};
    OK(shmview_lock_query(segment, &status, NULL, 0));
    ck_assert_int_le(status.is_held_here, 1);
    return status;
}

#endif
