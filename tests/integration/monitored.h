/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon, a connection, and a monitor of it, for each test. */
#ifndef INTEGRATION_MONITORED_H
#define INTEGRATION_MONITORED_H

#include <shmview/monitor.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_monitor *monitor;

static inline struct shmview_monitor *monitor_open(const struct shmview_monitor_options *options)
{
    struct shmview_monitor *m;
    const struct shmview_event *e;
    OK(shmview_monitor_open(conn, options, &m));
    OK(shmview_monitor_next(m, 0, &e));
    ck_assert_uint_eq(e->kind, SHMVIEW_EVENT_SUBSCRIBED);
    ck_assert_int_gt(e->time_us, 1000000000000000);
    return m;
}

static inline void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    monitor = monitor_open(NULL);
}

static inline void end(void)
{
    OK(shmview_monitor_close(monitor));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* The next event, which is of that kind and that segment. */
static inline const struct shmview_event *expect_of(struct shmview_monitor *m, uint32_t kind,
                                                    const char *segment)
{
    const struct shmview_event *e;
    OK(shmview_monitor_next(m, shmview_deadline(AWAIT_NS), &e));
    ck_assert_str_eq(shmview_event_kind_name((int)e->kind), shmview_event_kind_name((int)kind));
    ck_assert_str_eq(e->segment, segment);
    return e;
}

static inline const struct shmview_event *expect(uint32_t kind, const char *segment)
{
    return expect_of(monitor, kind, segment);
}

static inline void expect_nothing(struct shmview_monitor *m)
{
    const struct shmview_event *e;
    OK(shmview_ping(conn)); /* events arrive in the order in which they happened */
    REFUSED(shmview_monitor_next(m, shmview_deadline(20000000), &e), TIMED_OUT, "deadline");
}

#endif
