/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/slice.h"

#include "common/base/util.h"

#define TURN_NS      300000
#define EVENTS_EARLY 8

static uv_loop_t *turning;
static int64_t began_ns, owed_ns;
static uint64_t idle_ns; /* for which the loop had waited before this turn */
static int64_t end_ns;   /* of the turn, without what is owed; 0: nobody has asked yet */
static unsigned n_events;

void slice_begin_turn(uv_loop_t *loop)
{
    turning = loop;
    owed_ns = end_ns = n_events = 0;
    if (!loop)
        return;
    began_ns = now_ns();
    idle_ns = uv_metrics_idle_time(loop);
}

/* The end of the turn. The loop waits once in a turn, before its first event, so the end does not
 * change after the first call. */
static int64_t turn_end(void)
{
    if (!end_ns)
        end_ns = began_ns + TURN_NS + (int64_t)(uv_metrics_idle_time(turning) - idle_ns);
    return end_ns - owed_ns;
}

int64_t slice_end(int64_t ns)
{
    int64_t end = now_ns() + ns;
    if (!turning || end < turn_end())
        return end;
    return turn_end();
}

bool slice_is_late(void)
{
    return turning && ++n_events > EVENTS_EARLY && now_ns() >= turn_end();
}

void slice_owe(int64_t ns)
{
    owed_ns += ns;
}
