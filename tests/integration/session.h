/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon that shmview_connect() finds or starts in a test's own directory. */
#ifndef INTEGRATION_SESSION_H
#define INTEGRATION_SESSION_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/suite.h"

#define SYSTEM_SOCKET "/run/shmviewd/io.shmview"

static struct daemon d;
static char session[108]; /* the socket of a session daemon */

static inline void begin(const char *idle_exit)
{
    setenv("SHMVIEW_DAEMON", daemon_program(), 1);
    setenv("SHMVIEW_IDLE_EXIT", idle_exit, 1);
    snprintf(session, sizeof session, "%s/shmviewd/session/io.shmview", place_directory());
}

/* A daemon that could not start, or was not needed, may be on its way out. */
static inline void end(void)
{
    process_await_none();
    ck_assert_uint_eq(place_daemons(), 0);
}

static inline struct shmview_connection *connect_default(void)
{
    struct shmview_connection *conn = NULL;
    OK(shmview_connect(NULL, 0, &conn));
    return conn;
}

static inline void pause_ms(int ms)
{
    int64_t until = await_now_ns() + (int64_t)ms * 1000000;
    while (await_again(until))
        continue;
}

/* Like suite_main(), but skips the tests where the system has a daemon. */
static inline int session_main(const char *name, const struct suite_test *tests)
{
    if (access(SYSTEM_SOCKET, F_OK) == 0) {
        fprintf(stderr, "the system's daemon would be found first: not tried\n");
        return 77;
    }
    return suite_main(name, tests);
}

#endif
