/* SPDX-License-Identifier: Apache-2.0 */
/* A private daemon in a temporary directory for one command (shmviewctl run), and a second process,
 * the keeper, that removes both however shmviewctl ends.
 *
 *     shmviewctl -- pipe --> keeper -- PDEATHSIG --> shmviewd
 *
 * The keeper waits for the end of the pipe. The kernel closes it if shmviewctl is killed, which
 * leaves shmviewctl no chance to clean up itself. If the keeper is killed, the kernel sends SIGINT
 * to the daemon, which then removes its segments. */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include <limits.h>
#include <sys/types.h>

#include "cli/shell/cli.h"

#define KEEPER_PATH 108 /* bytes in sun_path */

/* The side of shmviewctl. */
struct keeper {
    char directory[KEEPER_PATH - 16];
    char socket[KEEPER_PATH];
    char program[PATH_MAX]; /* the daemon */
    pid_t pid;              /* of the keeper */
    int daemon_fd;          /* pidfd of the daemon; -1: none */
    int life;               /* write end of the pipe: the keeper ends when it is closed */
};

struct keeper_options {
    const char *config; /* configuration file of the daemon; NULL: none */
    bool is_loud;       /* the daemon logs to standard error, not to a file */
};

/* Starts the keeper, which starts the daemon. Blocks until the daemon accepts clients or fails. On
 * success the caller owes keeper_stop(). Returns 0, or the exit status after printing the daemon's
 * log and removing the directory. */
int keeper_start(struct context *c, const struct keeper_options *options, struct keeper *ret);

/* Ends both, and blocks until the segments and the directory are removed. */
void keeper_stop(struct context *c, struct keeper *keeper);

#endif
