/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive polling: how long a waiter polls before it sleeps in the kernel. If an answer comes
 * while the waiter polls, no sleeping processor has to be woken, which takes longer than most
 * answers.
 *
 * Polling is useless, and harmful, if the peer needs the processor that polls. Waits for the same
 * peer resemble each other. Therefore a useless poll halves the next one. When a poll would be very
 * short, only one wait in 256 polls again. A fixed time of 20 us was too short for a consumer that
 * waits for its next frame. */
#ifndef COMMON_SPIN_H
#define COMMON_SPIN_H

#include <stdint.h>

/* The experience with one kind of wait. Start from zero. One thread at a time. */
struct spin {
    uint32_t ns;      /* how long the next poll may take */
    uint32_t in_vain; /* counts useless waits; 0: no wait so far, 1: the last one was useful */
};

/* Returns how many nanoseconds to poll now; 0: not at all. After the wait the caller must report
 * the result by one of the next two functions: spin_hit() if the answer came during the poll,
 * took_ns after its beginning; otherwise spin_missed(), also if it did not poll. ns is the result
 * of spin_ns(). */
uint32_t spin_ns(const struct spin *spin);
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns);
void spin_missed(struct spin *spin, uint32_t ns);

#endif
