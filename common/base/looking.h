/* SPDX-License-Identifier: Apache-2.0 */
/* How long one who waits looks before he sleeps: what comes at once is seen without waking
 * a sleeping processor, which takes longer than most answers. Waits for the same are like each
 * other: where looking was in vain, be it that the other one needs the processor on which we look,
 * the next time is half as long, and soon none is but one in so many. */
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
