/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the configuration in force by what its files say now, or not at all:
 *
 *   idle -> reading (off the loop) -> in force -> declared segments made -> idle
 *                \-> something is wrong: said, and nothing has changed -> idle */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "daemon/config/config_read.h"
#include "daemon/requests/state.h"

struct reload {
    uv_work_t work;
    struct state *state;
    const char *file; /* borrowed */
    bool required;
    bool active;           /* one is under way, or the daemon is not ready yet */
    bool again;            /* asked for while it was active */
    struct config *config; /* that was read */
    char *said[LIMIT_CONFIG_ERRORS + 2];
    size_t n_said;
};

/* Sets state->declared.done. Until reload_open() nothing is replaced, because the segments that
 * are being made at the start belong to the configuration in force, and the daemon is not ready
 * before they exist. */
void reload_init(struct reload *reload, struct state *state, const char *file, bool required);

/* The daemon is ready: from now on, and for what was asked before. */
void reload_open(struct reload *reload);

/* Returns at once. Asked for once more while it runs, it runs once more. */
void reload_start(struct reload *reload);

#endif
