/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a struct turns: the daemon's lasts as long as the daemon. */
#ifndef UNIT_TURNS_H
#define UNIT_TURNS_H

#include "daemon/rights/turns.h"

/* Closes the handles. The loop must run once more. */
static inline void end_turns(struct turns *turns)
{
    uv_close((uv_handle_t *)&turns->slices, NULL);
    alarm_close(&turns->resting, NULL);
}

#endif
