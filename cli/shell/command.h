/* SPDX-License-Identifier: Apache-2.0 */
/* Running the command that a verb was given, as if the shell had run it. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <signal.h>

#include "cli/shell/cli.h"

/* As env(1) and sh(1) have them. */
#define EXIT_CANNOT_RUN   126
#define EXIT_NO_PROGRAM   127
#define EXIT_BY_SIGNAL(n) (128 + (n))

struct command {
    char *const *argv; /* ends with NULL */
    int death_signal;  /* what it gets if this process is killed */
};

/* Runs it to its end. Signals that somebody sends to this process go to it; those of the terminal,
 * which it gets itself, do not. Returns its exit status; EXIT_BY_SIGNAL(n) where signal n ended it,
 * with *ret_signal = n, else 0; EXIT_CANNOT_RUN or EXIT_NO_PROGRAM where it could not be run, which
 * was said. Of the main thread. */
int command_run(struct context *c, const struct command *command, int *ret_signal);

#endif
