/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: finds the words that may come next on a command line.
 *
 * bash and zsh pass the line to the hidden option --complete. Their scripts know no verb and no
 * option, so they cannot differ from the program: verbs, options and the kinds of values are read
 * from the help texts of the verbs, and names from the daemon. A new verb or option therefore needs
 * nothing here, if its help follows the form of the others: "  -x, --name VALUE   text". */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

#include "cli/shell/cli.h"

/* Finds a verb by its name, which is borrowed; NULL if there is none. */
typedef const struct verb *find_verb_fn(const char *name);

/* Completes a command line. words are the n words after the name of the program; the last one is
 * the beginning of the word to complete, which may be "". Prints each candidate on a line of its
 * own; or a line that asks the shell for its own candidates: ":files", ":commands", ":users",
 * ":groups". If the daemon does not answer, there are no candidates for its names. Starts no
 * daemon, because the user is still typing. Returns true; or false, after printing nothing, if a
 * verb must come next.
 */
bool complete(struct context *c, int n, char **words, find_verb_fn *find_verb);

#endif
