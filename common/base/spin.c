/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spin.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#define NS_LEAST 2000 /* shorter polls are not worth it */
#define ANEW     16   /* after useless polls, one wait of so many polls again */

/* How long a wait of each kind may be polled. A sleeping processor of a virtual machine takes up to
 * 100 us to wake. A reply to a creation takes as long again, and a client that maps what it got
 * sends its next request after 50 us. If both sides sleep, the first attempt of either must last
 * until the other has been woken and has answered. KVM polls for as long before it lets a processor
 * halt (halt_poll_ns). */
static const struct {
    uint32_t first_ns; /* the first poll, and each new attempt */
    uint32_t most_ns;  /* the longest poll */
} kinds[] = {
    [SPIN_CHANGE] = {50000, 100000},
    [SPIN_REPLY] = {200000, 400000},
    [SPIN_REQUEST] = {200000, 200000},
};

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
        ns = kinds[spin->kind].first_ns;
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
        spin->looks = (uint8_t)(looks < SPIN_LOOKS_MOST ? 2 * looks : SPIN_LOOKS_MOST);
    else if (spin->looks > LOOKS_LEAST)
        spin->looks /= 2;
}

long spin_times_given(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

/* The next poll may take twice as long as this answer took, so that a slower one is seen, too. */
void spin_hit(struct spin *spin, uint32_t ns, int64_t took_ns)
{
    if (took_ns > 2 * (int64_t)ns) { /* another thread had the processor */
        spin_missed(spin, ns);
        return;
    }
    uint32_t most = kinds[spin->kind].most_ns;
    int64_t twice = took_ns < most / 2 ? 2 * took_ns : most;
    spin->ns = twice > ns ? (uint32_t)twice : ns;
    spin->in_vain = 1;
}

void spin_missed(struct spin *spin, uint32_t ns)
{
    /* after a useless new attempt, do not poll until the next one */
    spin->ns = spin->in_vain < ANEW ? ns / 2 : 0;
    spin->in_vain++;
}
