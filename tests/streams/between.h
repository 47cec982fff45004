/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of one party between two steps of another one. The library is compiled with its steps here;
 * at the one that a test names, the test's function runs, as another process would. */
#ifndef STREAMS_BETWEEN_H
#define STREAMS_BETWEEN_H

#include "client/lock/steps.h"

static _Thread_local int at_step = N_STEPS;
static _Thread_local void (*between)(void);

void shmview_step(int step)
{
    if (step != at_step)
        return;
    void (*run)(void) = between;
    at_step = N_STEPS;
    run();
}

/* Lets this thread run a function at its next step of that kind. */
static inline void at(int step, void (*run)(void))
{
    at_step = step;
    between = run;
}

#endif
