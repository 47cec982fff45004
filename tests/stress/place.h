/* SPDX-License-Identifier: Apache-2.0 */
/* Where a party may die: the steps of the lock, and places in the test itself. */
#ifndef STRESS_PLACE_H
#define STRESS_PLACE_H

#include "client/lock/steps.h"

#define PLACE_LIST(X)                                                                              \
    X(HOLDS, "test: holds, and has looked at the data")                                            \
    X(REPAIRS, "test: told that one died, nothing is repaired")                                    \
    X(NESTS, "test: holds it twice")                                                               \
    X(SWITCHED_ONLY, "test: the phase is switched, the data is not")                               \
    X(HALF_WRITTEN, "test: half of the data is written")                                           \
    X(HALF_READ, "test: half of the data is read, shared")                                         \
    X(NEST_READS, "test: holds it shared twice")                                                   \
    X(FORKED_HOLDING, "test: has forked while it holds")                                           \
    X(GUEST_BEGINS, "test: a forked child, before it uses anything")

enum place {
    AT_LAST_STEP = N_STEPS - 1,
#define X(name, where) AT_##name,
    PLACE_LIST(X)
#undef X
    N_PLACES
};

const char *place_name(int place);
const char *place_text(int place);

#endif
