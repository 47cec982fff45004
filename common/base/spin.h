/* SPDX-License-Identifier: Apache-2.0 */
/* How long a waiter polls before it sleeps. An answer that comes at once is then seen without
 * waking a sleeping processor, which takes longer than most answers. Waits for one thing resemble
 * each other. So where polling was in vain, for example because the peer needs the processor that
 * polls, the next poll is half as long, and soon only one wait in many polls at all. */
#ifndef COMMON_SPIN_H
#define COMMON_SPIN_H

#include <stdint.h>

struct spin {
    uint32_t ns;
    uint32_t in_vain; /* times, one after the other; 0: never looked */
};

/* Returns how long to poll this time, in nanoseconds; 0: not at all. After each call the caller
 * owes spin_hit() or spin_missed(); the latter also where it did not poll. */
uint32_t spin_ns(const struct spin *spin);
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns);
void spin_missed(struct spin *spin, uint32_t ns);

#endif
