/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the configuration in force by the one that its files contain now, as a whole or not at
 * all:
 *
 *   idle -> reading (on a thread) -> in force -> declared segments are made -> idle
 *                \-> an error: it is logged, and nothing has changed -> idle
 *
 * A thread reads the files, because they may be slow, and looking up users may ask the network.
 * Used on the loop only; a request to reload comes by SIGHUP. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "daemon/config/config_read.h"
#include "daemon/requests/state.h"

struct reload {
    uv_work_t work;
    struct state *state;
    const char *file;                    /* borrowed, as config_read() takes it */
    bool required;                       /* the file must exist */
    bool active;                         /* a reload is under way, or the daemon is not ready yet */
    bool again;                          /* another reload was requested while active */
    struct config *config;               /* the result of the thread, until it is in force */
    char *said[LIMIT_CONFIG_ERRORS + 2]; /* errors, which the loop logs */
    size_t n_said;
};

/* Prepares reloading, and sets state->declared.done. Nothing is replaced before reload_open(): the
 * declared segments that are made at the start belong to the configuration in force, and the daemon
 * is not ready before they exist. */
void reload_init(struct reload *reload, struct state *state, const char *file, bool required);

/* Call when the daemon is ready. Starts a reload at once if one was requested before. */
void reload_open(struct reload *reload);

/* Starts a reload, and returns at once. If a reload is under way, another one follows it, because
 * files may have changed after they were read. */
void reload_start(struct reload *reload);

#endif
