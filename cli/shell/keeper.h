/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of our own in a directory of its own, and a process that outlives us to end both:
 * whatever becomes of us, nothing is left.
 *
 *     we -- pipe --> keeper -- PDEATHSIG --> shmviewd
 *
 * The keeper waits for the end of the pipe, which comes with our own end at the latest. A keeper
 * that is killed takes its daemon with it. */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include <sys/types.h>

#include "cli/shell/cli.h"

#define KEEPER_PATH 108 /* of a socket */

struct keeper {
    char directory[KEEPER_PATH - 16];
    char socket[KEEPER_PATH];
    pid_t pid;
    int daemon_fd; /* pidfd */
    int life;      /* the keeper ends when this does */
};

struct keeper_options {
    const char *config; /* of the daemon; NULL: none */
    bool is_loud;       /* its log goes to standard error */
};

/* Starts both; returns when the daemon serves. Returns 0, and keeper_stop() is owed, or an exit
 * status: it was said why, and nothing is left. */
int keeper_start(struct context *c, const struct keeper_options *options, struct keeper *ret);

/* Ends both and waits until nothing is left. */
void keeper_stop(struct context *c, struct keeper *keeper);

#endif
