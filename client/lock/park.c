/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeps until a word changes or a client dies, and records waits for reports.
 *
 * A park watches two words at once: the one that the thread waits for, and the daemon's count of
 * deaths. When a holder dies, the daemon adds to that count and wakes every waiter, which then
 * finds the holder dead. Each park is bounded, because another process can take a wake-up, and
 * because the daemon can be down. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/lock/word.h"
#include "common/base/linux.h"
#include "common/base/util.h"

/* The bound of a park that a death ends. Another process can take its wake-up, and a wake-up from a
 * sleep takes 50 us of a processor on some virtual machines. */
#define WAIT_WATCHING_NS 250000000
/* The bound of a park that neither a death nor the caller's function can end. It is long, so that
 * hundreds of threads that wait for a change use hardly any processor time. */
#define WAIT_IDLY_NS 1000000000
/* The bound of a park for which the kernel has no futex_waitv(), because it cannot see deaths. */
#define PARK_BLIND_NS 10000000

/* Sleeps on one word. Returns whether a signal has ended the sleep. */
static bool park_on_one(const uint32_t *at, uint32_t value, int64_t until)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    return syscall(SYS_futex, at, FUTEX_WAIT_BITSET, value, &t, NULL, FUTEX_BITSET_MATCH_ANY) < 0 &&
           errno == EINTR;
}

bool park(const struct lock *l, const uint32_t *at, uint32_t value, const uint32_t *deaths,
          int64_t deadline)
{
    static _Atomic bool blind;
    int64_t now = now_ns();
    int64_t bound = wait_has_caller() ? WAIT_NS : deaths ? WAIT_WATCHING_NS : WAIT_IDLY_NS;
    int64_t until = deadline < now + bound ? deadline : now + bound;
    if (!deaths)
        return park_on_one(at, value, until);
    struct timespec t = {until / 1000000000, until % 1000000000};
    struct futex_waitv both[2] = {
        {.val = value, .uaddr = (uintptr_t)at, .flags = FUTEX_32},
        {.val = *deaths, .uaddr = (uintptr_t)&l->live->deaths, .flags = FUTEX_32},
    };
    if (!atomic_load_explicit(&blind, memory_order_relaxed)) {
        if (syscall(SYS_futex_waitv, both, 2, 0, &t, CLOCK_MONOTONIC) >= 0)
            return false;
        if (errno != ENOSYS && errno != EPERM)
            return errno == EINTR;
        atomic_store_explicit(&blind, true, memory_order_relaxed); /* old kernel, or seccomp */
    }
    return park_on_one(at, value, until < now + PARK_BLIND_NS ? until : now + PARK_BLIND_NS);
}

int wake(uint32_t *at, int n)
{
    long r = syscall(SYS_futex, at, FUTEX_WAKE, n, NULL, NULL, 0);
    return r > 0 ? (int)r : 0;
}

/* --- Reports ------------------------------------------------------------- */

/* Records when a client first waited for the current owner. The owner does not read a clock when
 * it goes inside, because that would cost each pair. So this time is the latest at which it can
 * have gone inside. The version of `inside` identifies the owner's turn. */
static void note_owner(const struct lock *l, int64_t now)
{
    struct shmview_control *c = l->control;
    uint64_t inside = load_inside(l);
    if (atomic_load_explicit(word64(&c->held_version), memory_order_relaxed) == inside)
        return;
    atomic_store_explicit(word64(&c->held_since_ns), (uint64_t)now, memory_order_relaxed);
    atomic_store_explicit(word64(&c->held_version), inside, memory_order_release);
}

/* Records in the slot that this client waits. If another of its threads waits already, the time of
 * that thread stays, because it has waited longer. */
static void note_wait(struct lock *l, uint32_t what, int64_t now)
{
    struct shmview_slot *slot = slot_at(l, l->me & SHMVIEW_SLOT_MASK);
    if (!slot_is_mine(l))
        return;
    note_owner(l, now);
    if (atomic_load_explicit(word(&slot->waits), memory_order_relaxed) == SHMVIEW_WAITS_NOT)
        atomic_store_explicit(word64(&slot->since_ns), (uint64_t)now, memory_order_relaxed);
    atomic_store_explicit(word(&slot->waits), what, memory_order_release);
}

/* --- Reports to the daemon ----------------------------------------------- */

/* A process that is killed keeps its locks until the kernel has freed its memory, unless the daemon
 * looks at it (daemon/clients/exiting.h). So a thread that waits reports its holder, first after a
 * millisecond, then after 32, and from then on once a second. The first report makes the daemon
 * watch the holder, and the others keep it watching (daemon/clients/exit_watch.h). While the lock
 * goes from owner to owner, nobody reports.
 *
 * Of all waiters of a lock one reports, which the word reporter decides; another one takes its
 * place later, in case that it has stopped waiting. */
#define REPORT_FIRST_NS 1000000
#define REPORT_MOST_NS  1000000000
#define SPARE_FIRST_NS  16000000

/* Returns the time until the next report, or until the next try to report, which is due when the
 * wait has become 32 times as long. */
static int64_t pause_after(int64_t waited, int64_t first)
{
    int64_t pause = waited > REPORT_MOST_NS ? REPORT_MOST_NS : 31 * waited;
    return pause < first ? first : pause < REPORT_MOST_NS ? pause : REPORT_MOST_NS;
}

/* Lets this thread be the one that reports for the next `ns`. Returns false if another one is. */
static bool claim_reports(const struct lock *l, struct wait *w, int64_t now, int64_t ns)
{
    uint32_t *at = &l->control->reporter;
    uint32_t until = atomic_load_explicit(word(at), memory_order_relaxed);
    uint32_t now_ms = (uint32_t)(now / 1000000), left = until - now_ms;
    /* a claim of longer than a report may take is rubbish */
    if (until != w->claim && left != 0 && left <= REPORT_MOST_NS / 1000000 + 2)
        return false;
    w->claim = now_ms + (uint32_t)(ns / 1000000) + 2;
    return swap(at, &until, w->claim);
}

/* Reports the holder if that is due, and decides when it is due again. */
static void report_holder(const struct lock *l, struct wait *w, uint32_t holder, int64_t now)
{
    uint64_t turn = load_inside(l);
    bool is_new = holder != w->holder || turn != w->turn;
    if (is_new) {
        w->holder = holder;
        w->turn = turn;
        w->since_ns = now;
    } else if (now < w->report_ns) {
        return;
    }
    int64_t waited = now - w->since_ns, step = pause_after(waited, REPORT_FIRST_NS);
    if (claim_reports(l, w, now, step)) {
        if (!is_new)
            l->report_wait(l, holder);
        w->report_ns = now + step;
    } else {
        w->report_ns = now + pause_after(waited, SPARE_FIRST_NS);
    }
}

/* --- The wait of a call -------------------------------------------------- */

void wait_park(struct lock *l, struct wait *w, const uint32_t *at, uint32_t value,
               const uint32_t *deaths, uint32_t holder)
{
    int64_t now = now_ns();
    if (!w->is_noted) {
        note_wait(l, w->what, now);
        w->is_noted = true;
        w->asked_ns = now;
    }
    report_holder(l, w, owner_of(holder), now);
    int64_t until = w->report_ns < w->deadline ? w->report_ns : w->deadline;
    /* not after each wake-up: an owner that waits for readers must release the word before the
     * function runs, and would lose it to new readers each time that an old reader leaves */
    if (park(l, at, value, deaths, until) || now_ns() - w->asked_ns >= WAIT_NS)
        w->is_due = true;
}

void wait_over(struct lock *l, const struct wait *w)
{
    /* if the caller's function has forked, the slot belongs to the parent of this child; one that
     * has ended keeps its user */
    if (w->is_noted && is_ready(l) && is_alive(l, l->me))
        atomic_store_explicit(word(&slot_at(l, l->me & SHMVIEW_SLOT_MASK)->waits),
                              SHMVIEW_WAITS_NOT, memory_order_relaxed);
}

int wait_ends(const struct wait *w)
{
    if (w->deadline == 0 || (w->deadline != NEVER && has_passed(w->deadline, now_ns())))
        return -SHMVIEW_ERR_TIMED_OUT;
    return w->is_due && wait_has_caller() ? WAIT_ASKS : 0;
}

int wait_goes_on(struct wait *w)
{
    int r = wait_ask();
    w->is_due = false;
    w->asked_ns = now_ns();
    return r;
}
