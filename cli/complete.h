/* SPDX-License-Identifier: Apache-2.0 */
/* What may come next on a command line, for shells. */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "cli/shell/cli.h"

typedef const struct verb *find_verb_fn(const char *name);

/* words are those behind the program's name, the last one is what is there of the next, maybe "".
 * Prints one candidate a line; or a line that tells the shell what to look for itself: ":files",
 * ":commands", ":users", ":groups". Where the daemon does not answer there are no candidates.
 * Returns false, and has printed nothing, if it is a verb that may come. */
bool complete(struct context *c, int n, char **words, find_verb_fn *find_verb);

#endif
