/* SPDX-License-Identifier: Apache-2.0 */
/* How long a waiter polls before it sleeps. An answer that comes at once is then seen without
 * waking a sleeping processor, which takes longer than most answers. Waits for one thing resemble
 * each other. So where polling was in vain, for example because the peer needs the processor that
 * polls, the next poll is half as long, and soon only one wait in many polls at all. */
#ifndef COMMON_LOOKING_H
#define COMMON_LOOKING_H

#include <stdint.h>

struct looking {
    uint32_t ns;
    uint32_t in_vain; /* times, one after the other; 0: never looked */
};

/* How long this time; 0: not at all. Then one of the others is owed, looking_in_vain() also where
 * nobody looked. */
uint32_t looking_ns(const struct looking *looking);
void looking_saw(struct looking *looking, uint32_t ns, int64_t took_ns);
void looking_in_vain(struct looking *looking, uint32_t ns);

#endif
