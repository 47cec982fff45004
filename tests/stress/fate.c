/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/fate.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"
#include "stress/arena.h"

/* The length of a park whose bound was removed. It exceeds the time after which a wait is a
 * stall. */
#define NO_NET_NS 30000000000

/* --- Dying --------------------------------------------------------------- */

void fate_die(void)
{
    party_doom(me.party);
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = 20000 + (long)(me_random() % 200000)};
    nanosleep(&t, NULL);
}

/* A thread is always slow while it adopts a slot, because that happens once in its life and the
 * others must get a chance to interfere. */
static bool is_slow(int place)
{
    return place == me.slow || (place >= AT_ADOPTS && place <= AT_ADOPTED);
}

/* Half of the slow places lie between a look at a word and the act that follows from it. */
void fate_draw_slow(void)
{
    static const int delicate[] = {
        AT_WORD_SEEN, AT_W_SET,      AT_PARKS,   AT_UNPARKED,  AT_READERS_SEEN, AT_DRAIN_PARKS,
        AT_RELEASED,  AT_DRAIN_OWED, AT_COUNTED, AT_GATE_SEEN, AT_GATE_PARKS,
    };
    uint32_t r = me_random() % (atomic_load(&arena->quiet) ? 2 : 4);
    me.slow = r == 0   ? (int)(me_random() % N_PLACES)
              : r == 1 ? delicate[me_random() % ARRAY_LEN(delicate)]
                       : -1;
}

static void dawdle(int place)
{
    uint32_t r = me_random() % 8192;
    if (is_slow(place))
        r /= atomic_load_explicit(&arena->quiet, memory_order_relaxed) ? 2048 : 512;
    if (r < 3)
        nap();
    else if (r < 80 && !is_slow(place))
        sched_yield();
}

void fate_place(int place)
{
    if (!me.party)
        return;
    _Atomic uint64_t *reached = &me.actor->reached[place];
    atomic_store_explicit(reached, atomic_load_explicit(reached, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&me.actor->at, place, memory_order_relaxed);
    uint32_t period = atomic_load_explicit(&arena->period[place], memory_order_relaxed);
    if (period && !atomic_load_explicit(&arena->quiet, memory_order_relaxed) && me_chance(period)) {
        atomic_fetch_add(&arena->deaths[place], 1);
        fate_die();
    }
    dawdle(place);
}

/* The library calls this at each step of the lock, because it is compiled with its steps here. */
void shmview_step(int step)
{
    fate_place(step);
}

/* --- Noticing ------------------------------------------------------------ */

/* Counts the time only if this thread has waited since before the death, and could run. */
void fate_note_latency(int64_t killed_ns)
{
    int64_t took = now_ns() - killed_ns;
    if (!me.party || !killed_ns || me.waits_from > killed_ns || me.blind || took < 0 ||
        took > UINT32_MAX || atomic_load(&me.party->awake_since) > killed_ns)
        return;
    uint32_t i = atomic_fetch_add(&arena->n_latencies, 1);
    if (i < LATENCIES_MAX)
        arena->latency_ns[i] = (uint32_t)took;
}

/* --- Waiting ------------------------------------------------------------- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Replaces syscall() in the library (-Wl,--wrap). For a blind waiter, futex_waitv does not
 * exist. While all is quiet, a park without a deadline of the caller loses its bound, so that a
 * lost wake-up becomes a stall. */
long __wrap_syscall(long number, ...)
{
    va_list ap;
    long a[6];
    struct timespec until;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long); /* the callee reads six registers; arguments that were not passed
                                    are never used */
    va_end(ap);
    if (number == SYS_futex_waitv && me.blind) {
        errno = ENOSYS;
        return -1;
    }
    bool waits = number == SYS_futex_waitv ||
                 (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
    if (waits && me.forever && !me.blind && atomic_load(&arena->quiet)) {
        int64_t far = now_ns() + NO_NET_NS;
        until = (struct timespec){far / 1000000000, far % 1000000000};
        a[3] = (long)(uintptr_t)&until;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
