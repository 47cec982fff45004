/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's loop, and everything that it watches: the socket, connections, signals and timers.
 *
 * The server owns the objects of all rooms and connects them: it passes events of one room to the
 * functions of another, so that the rooms need not know each other. Everything here runs on the
 * thread of the loop. A server ends in two ways: with SIGTERM everything stays for the next daemon;
 * with SIGINT, or when it is idle, all segments are removed. */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include "daemon/base/notify.h"
#include "daemon/clients/door.h"
#include "daemon/clients/listener.h"
#include "daemon/clients/poll_ahead.h"
#include "daemon/clients/throttle.h"
#include "daemon/config/options.h"
#include "daemon/reload.h"
#include "daemon/requests/state.h"
#include "daemon/rights/turns.h"

struct server {
    uv_loop_t loop;
    uv_signal_t sigterm, sigint, sighup;
    uv_timer_t idle_timer;
    struct alarm repair_alarm; /* set while there are segments */
    struct alarm linger_alarm; /* set while the list below is not empty */
    uint64_t repaired;         /* id of the segment that was checked last */
    uv_prepare_t counts;       /* runs before the loop waits for events */
    struct poll_ahead poll_ahead;
    struct listener listener;
    struct state state;
    struct reload reload;
    struct throttle throttle;
    struct turns turns;
    struct door door;
    struct notify notify;
    unsigned idle_exit;   /* as in struct options */
    unsigned max_ready;   /* descriptors for objects that are made ahead */
    unsigned max_watched; /* clients without a connection that are watched by a pidfd */
    bool stopping;
    bool keeps; /* segments stay for the next daemon */
    LIST_HEAD(, connection) connections;
    TAILQ_HEAD(, connection) lingering; /* their clients have gone; requests wait for a turn */
};

/* Blocks SIGTERM, SIGINT and SIGHUP, before anything is made that an end must remove. server_init()
 * lets them through once the server handles them. When the server ends, they are blocked again, so
 * that no second signal ends the process before everything is removed. how: as for
 * pthread_sigmask(). */
void server_hold_signals(int how);

/* Starts a server, which must be zeroed: takes over the listener, the store, the configuration, and
 * the segments of the last daemon. When this returns 0, each segment that the configuration
 * declares exists, or the reason is logged, unless a signal has stopped the server. options must
 * live as long as the server. Returns 0 or -errno. */
int server_init(struct server *server, const struct listener *listener,
                const struct options *options, struct store *store, struct config *config);

/* Serves until SIGTERM, SIGINT, or until the server is idle. Then frees everything that
 * server_init() took over. */
void server_run(struct server *server);

#endif
