/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd is told and what it passes on: as sd_notify(3), sd_watchdog_enabled(3) and
 * sd_listen_fds(3). Where nobody asked all of it does nothing; without libsystemd the last two do
 * nothing. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/base/alarm.h"

struct notify_status {
    unsigned n_segments, n_clients;
};

/* The part of it that needs a loop. */
struct notify {
    struct alarm watchdog;
    struct alarm again; /* set for a while after a status was told */
    struct notify_status status, told;
    bool wants_status;
};

/* Takes the socket that was passed to this process. Returns it; -1 if none was passed;
 * -E2BIG (logged) if it is not one only. The caller owes close(). */
int notify_take_socket(void);

/* What is asked for in the environment is meant for the program that started this one. */
void notify_ignore(void);

/* Starts the watchdog's clock; closing the loop's handles ends it. Returns 0 or -errno. */
int notify_init(struct notify *notify, uv_loop_t *loop);

/* What there is now; systemd is told at most once a second. Does not wait: a status for which the
 * manager has no room is sent a second later. */
void notify_status(struct notify *notify, struct notify_status status);

/* Ready: clients are served. Reloading: from here to the next notify_ready() the configuration is
 * read again. Stopping: leaves. These wait up to a second for a manager that reads nothing. */
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);

#endif
