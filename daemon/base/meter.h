/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long the loop serves events between two looks for new ones: a client that sends a
 * request in that time waits for so long.
 *
 * The time is that of the processor, because another process may run in between. So the time that
 * the loop waits in a system call is not in it. Reading it costs a system call of half a
 * microsecond, so it is read only if the clock shows a long turn, at the beginning of the next
 * turns after that, and of one turn in several. Therefore the first long turn may come out too
 * short: by the time that other processes took from the turns since the last reading. */
#ifndef DAEMON_METER_H
#define DAEMON_METER_H

#include <uv.h>

/* One for each loop; used on it only. */
struct meter {
    uv_loop_t *loop;
    uint64_t began_ns, idle_ns; /* of the current turn; idle_ns: of the loop before it */
    uint64_t ended_ns;          /* of the last turn */
    int64_t cpu_ns;             /* of this thread, when it was last read */
    uint64_t since_ns;          /* by the clock, from then on, without the current turn */
    unsigned n_turns, n_exact;
    uint64_t longest_ns; /* since the start; read it at any time */
};

/* Prepares the struct. Must be called before the loop runs. Never fails. */
void meter_init(struct meter *meter, uv_loop_t *loop);

/* Call both when the loop is about to look for events: meter_end_turn() first, then what may wait,
 * as poll_ahead does, and then meter_begin_turn(). */
void meter_end_turn(struct meter *meter);
void meter_begin_turn(struct meter *meter);

#endif
