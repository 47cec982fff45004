/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the command of a verb such as `lock` or `run`, as if the shell had run it: same exit status,
 * same signals. shmviewctl stays its parent, because it holds the lock or the segment until the
 * command ends. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <signal.h>

#include "cli/shell/cli.h"

/* The exit statuses of env(1) and sh(1). */
#define EXIT_CANNOT_RUN   126
#define EXIT_NO_PROGRAM   127
#define EXIT_BY_SIGNAL(n) (128 + (n))

struct command {
    char *const *argv; /* ends with NULL */
    int death_signal;  /* sent by the kernel to the command if this process is killed */
};

/* Runs the command and blocks until it ends. Forwards the signals that another process sends to
 * this one, but not those of a key, which the terminal sends to the command as well. Only the main
 * thread may call it. Returns the command's exit status, or EXIT_BY_SIGNAL(n) with *ret_signal = n
 * if signal n ended it; otherwise *ret_signal is 0. Returns EXIT_CANNOT_RUN or EXIT_NO_PROGRAM
 * after printing the error if it cannot be run. */
int command_run(struct context *c, const struct command *command, int *ret_signal);

#endif
