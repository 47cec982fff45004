/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a struct turns. The daemon's own lasts as long as the daemon, so it has no such function. */
#ifndef UNIT_TURNS_H
#define UNIT_TURNS_H

#include "daemon/rights/turns.h"

/* Closes the handles. The loop must run once more afterwards. */
static inline void end_turns(struct turns *turns)
{
    uv_close((uv_handle_t *)&turns->slices, NULL);
    alarm_close(&turns->resting, NULL);
}

#endif
