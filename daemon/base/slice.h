/* SPDX-License-Identifier: Apache-2.0 */
/* When work on the loop must stop, so that no turn of the loop takes longer than a millisecond.
 *
 * Several modules work in slices of a quarter of a millisecond: connections, departures, the door,
 * monitors. In one turn of the loop all of them may be busy, and their slices would add up. So each
 * slice also ends when the turn has taken 0.3 ms. The rest is for the steps that have begun by
 * then, and for the one step that each module does in a turn even if the turn is over: thus every
 * module goes on.
 *
 * The time is that of the wall clock, because that of the processor costs a system call. If another
 * process interrupts the loop, the slices become shorter, which does no harm.
 *
 * There is one loop, so these functions have no object. */
#ifndef DAEMON_SLICE_H
#define DAEMON_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Call when the loop is about to look for events. The time for which it then waits is not part of
 * the turn, if the loop counts that (meter_init()). Before the first call, and after one with NULL,
 * a slice has its whole length. */
void slice_begin_turn(uv_loop_t *loop);

/* Returns the time of CLOCK_MONOTONIC at which a slice that begins now must end: after ns, or with
 * the turn. It may be over already; then the caller does one step all the same. */
int64_t slice_end(int64_t ns);

/* Whether an event should wait for the next turn, because this one has taken its time. The caller
 * may just ignore an event of a descriptor, because the loop then reports it again. That does not
 * hold for an error (status < 0), after which libuv stops polling the descriptor. The first few
 * events of a turn need not wait, and cost no look at the clock. */
bool slice_is_late(void);

/* Ends the turn earlier by so much time, which work takes that this turn must still do. */
void slice_owe(int64_t ns);

#endif
