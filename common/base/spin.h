/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive polling: how long a waiter polls before it sleeps in the kernel. If an answer comes
 * while the waiter polls, no sleeping processor has to be woken, which takes longer than most
 * answers.
 *
 * Waits for the same peer resemble each other. Therefore a useless poll halves the next one. When a
 * poll would be very short, only one wait in 16 polls again. If both sides sleep, both must try
 * again soon, because a side that sleeps answers too late for the other one's poll. A useless poll
 * is shorter than its wait. So one poll in 16 waits takes at most a sixteenth of the time that the
 * waiter would sleep.
 *
 * Polling is harmful if the peer needs the processor that polls. Therefore polls for replies and
 * requests, which may be long, yield it, so that the peer waits for about SPIN_YIELD_NS at most. A
 * thread that may run on one processor only shares it perhaps with its peer, and yields more often.
 * A yield takes as long as many looks. So the thread learns how often to look before it yields:
 * less often if answers come after yields, and more often if they come before. */
#ifndef COMMON_SPIN_H
#define COMMON_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* The most looks between two yields, or two looks at the clock. */
#define SPIN_LOOKS_MOST 64

/* How long a thread with several processors polls at most before it yields the one that it has. */
#define SPIN_YIELD_NS 20000

/* Whether polling can help at all: the machine has more than one processor. Those that this thread
 * may use do not matter, because the peer may use others. */
bool spin_is_possible(void);

/* For what a waiter waits, which decides how long it may poll at most. */
enum spin_kind {
    SPIN_CHANGE,  /* of a word in shared memory: 100 us */
    SPIN_REPLY,   /* of the daemon: 400 us */
    SPIN_REQUEST, /* of a client: 200 us */
};

/* The experience with one wait. Start with its kind, and zero else. One thread at a time. Of 8
 * bytes, so that threads can share it as one atomic value. */
struct spin {
    uint32_t ns;      /* how long the next poll may take */
    uint16_t in_vain; /* counts useless waits; 0: no wait so far, 1: the last one was useful */
    uint8_t looks;    /* before the first yield; 0: this thread has several processors */
    uint8_t kind;     /* enum spin_kind */
};

/* Returns how many nanoseconds to poll now; 0: not at all. After the wait the caller must report
 * the result by one of the next two functions: spin_hit() if the answer came during the poll,
 * took_ns after its beginning; otherwise spin_missed(), also if it did not poll. ns is the result
 * of spin_begin(). An answer that took more than twice as long counts as missed.
 *
 * If looks is not 0 after spin_begin(), the caller must call sched_yield() after each look, or
 * after as many as spin_looks() returns; otherwise after each SPIN_YIELD_NS, if the poll may last
 * longer. */
uint32_t spin_begin(struct spin *spin);
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns);
void spin_missed(struct spin *spin, uint32_t ns);

/* Returns how often this thread has given its processor to another one that could run, by a yield
 * or because the kernel took it. */
long spin_times_given(void);

/* Returns how often to look before the first yield, or before the first look at the clock if the
 * thread need not yield. After each yield the caller looks twice as often, up to SPIN_LOOKS_MOST.
 * now is a time of CLOCK_MONOTONIC, which is only used if looks is not 0: one wait of 16 tries the
 * largest number again. After a hit the caller reports by spin_yielded() how many yields there
 * were, and what this function returned. */
unsigned spin_looks(const struct spin *spin, int64_t now);
void spin_yielded(struct spin *spin, unsigned looks, unsigned n_yields);

#endif
