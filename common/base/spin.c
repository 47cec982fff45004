/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spin.h"

#define NS_FIRST 50000  /* the first poll, and each new attempt */
#define NS_MOST  100000 /* the longest poll */
#define NS_LEAST 2000   /* shorter polls are not worth it */
#define ANEW     256    /* after useless polls, one wait of so many polls again */

uint32_t spin_ns(const struct spin *spin)
{
    uint32_t ns = spin->in_vain % ANEW == 0 ? NS_FIRST : spin->ns;
    return ns < NS_LEAST ? 0 : ns;
}

/* The next poll may take twice as long as this answer took, so that a slower one is seen, too. */
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns)
{
    int64_t twice = took_ns < NS_MOST / 2 ? 2 * took_ns : NS_MOST;
    *spin = (struct spin){.ns = twice > ns ? (uint32_t)twice : ns, .in_vain = 1};
}

void spin_missed(struct spin *spin, uint32_t ns)
{
    /* after a useless new attempt, do not poll until the next one */
    spin->ns = spin->in_vain < ANEW ? ns / 2 : 0;
    spin->in_vain++;
}
