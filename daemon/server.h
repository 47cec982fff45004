/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: listener, connections, signals, the idle clock. */
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
    struct alarm linger_alarm; /* set while connections linger */
    uint64_t repaired;         /* id of the segment that was looked at last */
    uv_prepare_t counts;       /* looks what there is before each wait */
    struct poll_ahead poll_ahead;
    struct listener listener;
    struct state state;
    struct reload reload;
    struct throttle throttle;
    struct turns turns;
    struct door door;
    struct notify notify;
    unsigned idle_exit;
    unsigned max_watched; /* survivors */
    bool stopping;
    bool keeps; /* what there is stays for the next daemon */
    LIST_HEAD(, connection) connections;
    TAILQ_HEAD(, connection) lingering; /* clients that have gone, and wait for a turn */
};

/* server is zeroed. Takes over the listener, the store, the configuration, and what the last daemon
 * left. Segments that are declared exist when this returns, or it is said why not. options lives as
 * long as the server. Returns 0 or -errno. */
int server_init(struct server *server, const struct listener *listener,
                const struct options *options, struct store *store, struct config *config);

/* Serves until SIGTERM: then everything stays for the next daemon; or until SIGINT or
 * idleness: then everything is given back. */
void server_run(struct server *server);

#endif
