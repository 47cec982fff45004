/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of a property: plays many random cases, and reduces the first that fails to a
 * simple one. */
#ifndef PROPERTY_RUNNER_H
#define PROPERTY_RUNNER_H

#include "choices.h"

struct property {
    const char *name; /* of the program */
    size_t state_bytes;
    /* Plays one case on state, which is zero before the first case and kept between cases. Returns
     * NULL, or the text of what is wrong. */
    const char *(*play)(void *state, struct choices *from);
    /* Returns a description of the current or the last case. */
    const char *(*story)(const void *state);
    /* Prints what was tried. Returns NULL, or the reason why these cases prove too little. */
    const char *(*summary)(const void *state);
};

/* Runs the property. Options: --seed N or --seed random (or SHMVIEW_SEED in the environment),
 * --count N (or SHMVIEW_COUNT), --case HEX for one case that failed. Returns the exit status. */
int property_main(const struct property *property, int argc, char **argv);

#endif
