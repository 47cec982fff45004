/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of a property: many random cases, and the simplest that fails. */
#ifndef PROPERTY_RUNNER_H
#define PROPERTY_RUNNER_H

#include "choices.h"

struct property {
    const char *name; /* of the program */
    size_t state_bytes;
    /* Plays one case on state, which is zeroed at first and kept from case to case. Returns
     * NULL, or what is wrong. */
    const char *(*play)(void *state, struct choices *from);
    /* The case that was played last, or is being played, in words. */
    const char *(*story)(const void *state);
    /* Prints what was tried. Returns NULL, or why so many cases prove too little. */
    const char *(*summary)(const void *state);
};

/* Options: --seed N or --seed random (also: SHMVIEW_SEED in the environment), --count N
 * (SHMVIEW_COUNT), --case HEX for one case that failed. Returns the exit status. */
int property_main(const struct property *property, int argc, char **argv);

#endif
