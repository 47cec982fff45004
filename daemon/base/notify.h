/* SPDX-License-Identifier: Apache-2.0 */
/* The protocols between systemd and a service: reports of the service's state as in sd_notify(3),
 * the watchdog of sd_watchdog_enabled(3), and sockets as in sd_listen_fds(3).
 *
 * If the environment asks for none of them, all functions do nothing. A build without libsystemd
 * still reports its state, but has no watchdog and takes no sockets. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/alarm.h"

/* The numbers in the status line that `systemctl status` shows. */
struct notify_status {
    unsigned n_segments, n_clients;
};

/* The part that needs a loop; embedded in struct server and used on its thread only. */
struct notify {
    struct alarm watchdog;             /* rings twice within the time that systemd allows */
    struct alarm again;                /* set for a second after a status was sent */
    struct notify_status status, told; /* the latest status, and the last one that was sent */
    bool wants_status;                 /* $NOTIFY_SOCKET was set at notify_init() */
};

/* Takes the listening socket that the service manager passed to this process. Returns its
 * descriptor, which the caller owes close(); -1 if none was passed; or -E2BIG, logged, if several
 * were passed or they cannot be read. Finds the stored descriptors too. */
int notify_take_socket(void);

/* Whether a service manager that may store descriptors started this daemon. A build without
 * libsystemd could not take them. */
bool notify_is_managed(void);

/* Calls take() with each descriptor that an earlier daemon stored with the service manager and that
 * notify_take_socket() has found, and its number; take() then owns it.
 * Returns 0, or the last error of take(). */
int notify_each_stored(int (*take)(int fd, uint64_t number));

/* Store a copy of the descriptor with the service manager under a number, for the next daemon, and
 * remove it again. They block wait_ms milliseconds at most if the manager's queue is full; 0: not
 * at all. Return 0; -EAGAIN if it stayed full; or another -errno. The manager does not report
 * whether it has room (FileDescriptorStoreMax=). Any thread. */
int notify_store(int fd, uint64_t number, unsigned wait_ms);
int notify_unstore(uint64_t number, unsigned wait_ms);

/* Removes the variables of these protocols from the environment. A session daemon calls this,
 * because the variables that it inherits are meant for the program that started it. */
void notify_ignore(void);

/* Starts the watchdog's clock. Closing all handles of the loop ends it. Returns 0 or -errno. */
int notify_init(struct notify *notify, uv_loop_t *loop);

/* Reports the current numbers, at most once a second. Does not block: if the queue of the service
 * manager is full, the status is sent a second later. */
void notify_status(struct notify *notify, struct notify_status status);

/* Report a state. Ready: clients are served. Reloading: the configuration is being read again,
 * until the next notify_ready(). Stopping: the daemon ends. systemd acts on each of these, so they
 * block up to a second if the queue of the service manager is full; then they log a warning. */
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);

#endif
