/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spin.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define NS_FIRST 50000  /* the first poll, and each new attempt */
#define NS_MOST  100000 /* the longest poll */
#define NS_LEAST 2000   /* shorter polls are not worth it */
#define ANEW     16     /* after useless polls, one wait of so many polls again */

/* How often a thread that has one processor looks before it yields it. A look takes 10 to 30 ns,
 * and a yield may take more than a microsecond. */
#define LOOKS_LEAST 4

bool spin_is_possible(void)
{
    static _Atomic int cached; /* 0: not yet known; -1: not possible */
    int n = atomic_load_explicit(&cached, memory_order_relaxed);
    if (n == 0) {
        n = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : -1;
        atomic_store_explicit(&cached, n, memory_order_relaxed);
    }
    return n > 0;
}

/* Whether this thread may run on one processor only. */
static bool is_pinned(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

uint32_t spin_begin(struct spin *spin)
{
    uint32_t ns = spin->ns;
    if (spin->in_vain % ANEW == 0) {
        ns = NS_FIRST;
        if (!is_pinned())
            spin->looks = 0;
        else if (!spin->looks)
            spin->looks = SPIN_LOOKS_MOST;
    }
    return ns < NS_LEAST ? 0 : ns;
}

unsigned spin_looks(const struct spin *spin, int64_t now)
{
    bool is_trial = (now >> 6 & 15) == 0; /* the last bits of a clock may be coarse */
    return spin->looks && !is_trial ? spin->looks : SPIN_LOOKS_MOST;
}

void spin_yielded(struct spin *spin, unsigned looks, unsigned n_yields)
{
    if (!spin->looks)
        return;
    if (n_yields == 0)
        spin->looks = (uint16_t)(looks < SPIN_LOOKS_MOST ? 2 * looks : SPIN_LOOKS_MOST);
    else if (spin->looks > LOOKS_LEAST)
        spin->looks /= 2;
}

/* The next poll may take twice as long as this answer took, so that a slower one is seen, too. */
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns)
{
    if (took_ns > 2 * (int64_t)ns) { /* another thread had the processor meanwhile */
        spin_missed(spin, ns);
        return;
    }
    int64_t twice = took_ns < NS_MOST / 2 ? 2 * took_ns : NS_MOST;
    spin->ns = twice > ns ? (uint32_t)twice : ns;
    spin->in_vain = 1;
}

void spin_missed(struct spin *spin, uint32_t ns)
{
    /* after a useless new attempt, do not poll until the next one */
    spin->ns = spin->in_vain < ANEW ? ns / 2 : 0;
    spin->in_vain++;
}
