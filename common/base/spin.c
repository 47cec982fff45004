/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spin.h"

#define NS_FIRST 50000
#define NS_MOST  100000
#define NS_LEAST 2000
#define ANEW     256 /* waits, of which one is tried again */

uint32_t spin_ns(const struct spin *spin)
{
    uint32_t ns = spin->in_vain % ANEW == 0 ? NS_FIRST : spin->ns;
    return ns < NS_LEAST ? 0 : ns;
}

void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns)
{
    int64_t twice = took_ns < NS_MOST / 2 ? 2 * took_ns : NS_MOST;
    *spin = (struct spin){.ns = twice > ns ? (uint32_t)twice : ns, .in_vain = 1};
}

void spin_missed(struct spin *spin, uint32_t ns)
{
    /* once is enough for who was of no use before */
    spin->ns = spin->in_vain < ANEW ? ns / 2 : 0;
    spin->in_vain++;
}
