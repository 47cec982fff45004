/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": finds known names that resemble a name that the user mistyped. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include "cli/shell/cli.h"

#define SUGGEST_MOST  3
#define SUGGEST_BYTES 160 /* of a name; a longer one is neither suggested nor corrected */

struct suggest {
    const char *typed; /* set by the caller; borrowed */
    size_t distance;   /* of each name below */
    size_t n;
    char names[SUGGEST_MOST][SUGGEST_BYTES]; /* sorted */
};

/* Compares name with s->typed, and keeps it if no known name is nearer. The distance is the number
 * of characters that are inserted, left out, replaced or swapped with their neighbour; a name that
 * begins with what was typed has distance 1; letters may differ in their case. A name that is
 * further away than one character in four is not kept. Of more than SUGGEST_MOST names at the same
 * distance the first ones by strcmp() are kept, so the result does not depend on the order of
 * calls. */
void suggest_offer(struct suggest *s, const char *name);

/* Prints "Did you mean 'show'?" on standard error, or nothing if no name was kept. */
void suggest_print(const struct suggest *s);

/* Suggests segments that the user may see. Blocks for one round trip. Prints nothing if the daemon
 * does not reply. */
void suggest_segments(struct context *c, const char *typed);

/* Calls visit with the name of each segment that the user may see; never if the daemon does not
 * reply. The name is valid only during the call. */
void each_segment_name(struct context *c, void *arg, void (*visit)(void *arg, const char *name));

#endif
