/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - the same computation in one process and in private memory. */
#ifndef PHASES_CHECK_H
#define PHASES_CHECK_H

#include "arrays.h"
#include "sound.h"

/* Computes the result again and compares c, d and e bit by bit.
 *
 * Returns NULL if they are identical, else the name of the array that is not. Ends the program if
 * there is no memory. */
const char *check_against(struct sound *sound, const struct arrays *shared);

#endif
