/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/lock/lock.h"
#include "common/base/util.h"

/* A cache line comes back from another core in some 100 ns, a critical section is
 * often as short: this is 2 to 4 us. */
#define SPINS 100
/* Parks are bounded: a read-only mapper can steal a wake-up, a daemon can be down. */
#define PARK_NS 100000000
/* Without futex_waitv a park cannot see deaths. */
#define PARK_BLIND_NS 10000000

void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

int spins_allowed(void)
{
    static _Atomic int cached; /* 0: not asked yet */
    int n = atomic_load_explicit(&cached, memory_order_relaxed);
    if (n == 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1 ? SPINS : -1;
        atomic_store_explicit(&cached, n, memory_order_relaxed);
    }
    return n < 0 ? 0 : n;
}

static void park_on_one(const uint32_t *at, uint32_t value, int64_t until)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    syscall(SYS_futex, at, FUTEX_WAIT_BITSET, value, &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

void park(const struct shmview_segment *s, const uint32_t *at, uint32_t value,
          const uint32_t *deaths, int64_t deadline)
{
    static _Atomic bool blind;
    int64_t now = now_ns();
    int64_t until = deadline < now + PARK_NS ? deadline : now + PARK_NS;
    if (!deaths) {
        park_on_one(at, value, until);
        return;
    }
    struct timespec t = {until / 1000000000, until % 1000000000};
    struct futex_waitv both[2] = {
        {.val = value, .uaddr = (uintptr_t)at, .flags = FUTEX_32},
        {.val = *deaths, .uaddr = (uintptr_t)&s->live->deaths, .flags = FUTEX_32},
    };
    if (!atomic_load_explicit(&blind, memory_order_relaxed)) {
        if (syscall(SYS_futex_waitv, both, 2, 0, &t, CLOCK_MONOTONIC) >= 0 ||
            (errno != ENOSYS && errno != EPERM))
            return;
        atomic_store_explicit(&blind, true, memory_order_relaxed); /* old kernel, or seccomp */
    }
    park_on_one(at, value, until < now + PARK_BLIND_NS ? until : now + PARK_BLIND_NS);
}

int wake(uint32_t *at, int n)
{
    long r = syscall(SYS_futex, at, FUTEX_WAKE, n, NULL, NULL, 0);
    return r > 0 ? (int)r : 0;
}

/* --- For people ---------------------------------------------------------- */

/* Interpreters wait in slices, between which they look for signals. */
#define BETWEEN_SLICES_NS 10000000

/* Nobody reads a clock on the way in, so the first who waits for an owner notes
 * when that was: the owner has been inside for longer. */
static void note_owner(const struct shmview_segment *s, int64_t now)
{
    struct shmview_control *c = s->control;
    uint64_t inside = load_inside(s);
    if (atomic_load_explicit(word64(&c->held_version), memory_order_relaxed) == inside)
        return;
    atomic_store_explicit(word64(&c->held_since_ns), (uint64_t)now, memory_order_relaxed);
    atomic_store_explicit(word64(&c->held_version), inside, memory_order_release);
}

void wait_begins(struct shmview_segment *s, uint32_t what)
{
    struct shmview_slot *slot = segment_slot(s, s->me & SHMVIEW_SLOT_MASK);
    int64_t now = now_ns();
    if (!slot_is_mine(s))
        return;
    note_owner(s, now);
    /* a reader that queues among the writers has waited all the while */
    if (atomic_load_explicit(word(&slot->waits), memory_order_relaxed) == SHMVIEW_WAITS_NOT &&
        now - atomic_load(&s->gave_up_ns) > BETWEEN_SLICES_NS)
        atomic_store_explicit(word64(&slot->since_ns), (uint64_t)now, memory_order_relaxed);
    atomic_store_explicit(word(&slot->waits), what, memory_order_release);
}

void wait_ends(struct shmview_segment *s, bool in_vain)
{
    struct shmview_slot *slot = segment_slot(s, s->me & SHMVIEW_SLOT_MASK);
    atomic_store(&s->gave_up_ns, in_vain ? now_ns() : 0);
    if (!slot_is_mine(s))
        return;
    atomic_store_explicit(word(&slot->waits), SHMVIEW_WAITS_NOT, memory_order_relaxed);
}
