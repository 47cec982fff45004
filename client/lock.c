/* SPDX-License-Identifier: Apache-2.0 */
/* The exclusive lock. Everything shared is in the control object; who holds the
 * word for this process, and how often, is private and names a thread.
 *
 *   word    free -> my id -> free. An id that the liveness object does not know
 *           is dead, and so is rubbish: anybody may replace it by his own.
 *   dirty   set once inside, cleared on the way out: found set = the last owner
 *           died inside. A flag, not an id: whoever repairs may die as well.
 *   W       somebody may be parked. It is set before every park and before a
 *           timeout, since who times out may have taken a wake-up with him.
 *
 * A release is a CAS that fails if the word no longer names me: a client that was
 * declared dead too early must not free its successor's lock. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/private.h"
#include "common/util.h"

#define FOREVER INT64_MAX
#define SPINS   100
/* Parks are bounded: a read-only mapper can steal a wake-up, a daemon can be down. */
#define PARK_NS 100000000
/* Without futex_waitv a park cannot see deaths. */
#define PARK_BLIND_NS 10000000

static __thread struct {
    bool registered; /* its exit releases what it holds */
} self __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t *word(uint32_t *p)
{
    return (_Atomic uint32_t *)p;
}

static const _Atomic uint32_t *const_word(const uint32_t *p)
{
    return (const _Atomic uint32_t *)p;
}

/* --- Who lives, and waiting ---------------------------------------------- */

static bool is_alive(const struct shmview_segment *s, uint32_t id)
{
    uint32_t slot = id & SHMVIEW_SLOT_MASK;
    uint32_t generation = (id & SHMVIEW_LOCK_OWNER) >> SHMVIEW_SLOT_BITS;
    return generation && slot < SHMVIEW_SLOTS_MAX &&
           atomic_load_explicit(const_word(&s->live->generation[slot]), memory_order_acquire) ==
               generation;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Spinning helps only if the holder can run at the same time. */
static int spins_allowed(void)
{
    static _Atomic int cached;
    int n = atomic_load_explicit(&cached, memory_order_relaxed);
    if (n == 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1 ? SPINS : -1;
        atomic_store_explicit(&cached, n, memory_order_relaxed);
    }
    return n;
}

static void park_blind(uint32_t *at, uint32_t value, int64_t until)
{
    struct timespec t = {until / 1000000000, until % 1000000000};
    syscall(SYS_futex, at, FUTEX_WAIT_BITSET, value, &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Waits while *at is value and nobody has died since deaths was read, until the
 * deadline at the latest. May return for no reason: look again. */
static void park(const struct shmview_segment *s, uint32_t *at, uint32_t value, uint32_t deaths,
                 int64_t deadline)
{
    static _Atomic bool blind;
    int64_t now = now_ns();
    int64_t until = deadline < now + PARK_NS ? deadline : now + PARK_NS;
    struct timespec t = {until / 1000000000, until % 1000000000};
    struct futex_waitv both[2] = {
        {.val = value, .uaddr = (uintptr_t)at, .flags = FUTEX_32},
        {.val = deaths, .uaddr = (uintptr_t)&s->live->deaths, .flags = FUTEX_32},
    };
    if (!atomic_load_explicit(&blind, memory_order_relaxed)) {
        if (syscall(SYS_futex_waitv, both, 2, 0, &t, CLOCK_MONOTONIC) >= 0 ||
            (errno != ENOSYS && errno != EPERM))
            return;
        atomic_store_explicit(&blind, true, memory_order_relaxed); /* old kernel, or seccomp */
    }
    park_blind(at, value, until < now + PARK_BLIND_NS ? until : now + PARK_BLIND_NS);
}

static void wake(uint32_t *at, int n)
{
    syscall(SYS_futex, at, FUTEX_WAKE, n, NULL, NULL, 0);
}

/* --- The word ------------------------------------------------------------ */

static bool swap(uint32_t *at, uint32_t *expected, uint32_t desired)
{
    return atomic_compare_exchange_strong(word(at), expected, desired);
}

static bool take_word_spinning(struct shmview_segment *s)
{
    struct shmview_control *c = s->control;
    for (int i = spins_allowed(); i > 0; i--) {
        uint32_t v = atomic_load_explicit(word(&c->lock), memory_order_relaxed);
        if (!(v & SHMVIEW_LOCK_OWNER) && swap(&c->lock, &v, s->me | v))
            return true;
        relax();
    }
    return false;
}

/* Returns 0 or -SHMVIEW_ERR_TIMED_OUT. deadline 0: do not wait. */
static int take_word_waiting(struct shmview_segment *s, int64_t deadline)
{
    struct shmview_control *c = s->control;
    if (deadline != 0 && take_word_spinning(s))
        return 0;
    for (;;) {
        /* before the word and the table: a death after this ends the park */
        uint32_t deaths = atomic_load(const_word(&s->live->deaths));
        uint32_t v = atomic_load(word(&c->lock));
        if (!(v & SHMVIEW_LOCK_OWNER) || !is_alive(s, v)) {
            /* having waited, assume that others wait */
            uint32_t mine = s->me | SHMVIEW_LOCK_WRITERS | (v & SHMVIEW_LOCK_READERS);
            if (swap(&c->lock, &v, mine))
                return 0;
            continue;
        }
        if (deadline == 0)
            return -SHMVIEW_ERR_TIMED_OUT; /* it never parks, so it has taken no wake-up */
        if (!(v & SHMVIEW_LOCK_WRITERS) && !swap(&c->lock, &v, v | SHMVIEW_LOCK_WRITERS))
            continue;
        if (deadline != FOREVER && now_ns() >= deadline)
            return -SHMVIEW_ERR_TIMED_OUT;
        park(s, &c->lock, v | SHMVIEW_LOCK_WRITERS, deaths, deadline);
    }
}

/* v is what the word was a moment ago. Returns 0 or -SHMVIEW_ERR_NOT_OWNER. */
static inline int release_word(struct shmview_segment *s, uint32_t v)
{
    struct shmview_control *c = s->control;
    do
        if ((v & SHMVIEW_LOCK_OWNER) != s->me)
            return -SHMVIEW_ERR_NOT_OWNER;
    while (__builtin_expect(!swap(&c->lock, &v, 0), 0));
    if (v & SHMVIEW_LOCK_WRITERS)
        wake(&c->lock, 1);
    return 0;
}

/* --- Threads and processes ----------------------------------------------- */

static bool held_by_me(const struct shmview_segment *s)
{
    return atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == &self;
}

/* Whether nothing is to be done before the word may be touched: one comparison
 * for "has a lock" and "is this process's own". */
static bool is_ready(const struct shmview_segment *s)
{
    return atomic_load_explicit(&s->lock.epoch, memory_order_acquire) ==
           atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

/* A thread that exits while it holds leaves dirty set, as if it had died. */
static void release_at_exit(struct shmview_segment *s, void *owner)
{
    if (atomic_load_explicit(&s->lock.owner, memory_order_relaxed) != owner || !is_ready(s))
        return; /* another thread's, or an ancestor's */
    atomic_store_explicit(&s->lock.owner, NULL, memory_order_relaxed);
    s->lock.depth = 0;
    release_word(s, atomic_load(word(&s->control->lock)));
}

static void on_thread_exit(void *owner)
{
    segment_each(release_at_exit, owner);
}

static pthread_key_t exit_key;
static int exit_key_error;

static void make_exit_key(void)
{
    exit_key_error = pthread_key_create(&exit_key, on_thread_exit);
}

static int register_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_exit_key);
    int r = exit_key_error ? exit_key_error : pthread_setspecific(exit_key, &self);
    if (r)
        return fail_errno("a destructor for this thread", r);
    self.registered = true;
    return 0;
}

void lock_adopt_slot(struct shmview_segment *segment, uint32_t slot, uint32_t generation)
{
    struct shmview_slot *mine = segment_slot(segment, slot);
    struct shmview_control *c = segment->control;
    segment->me = generation << SHMVIEW_SLOT_BITS | slot;
    segment->lock = (struct lock_state){0};
    atomic_store_explicit(&segment->lock.epoch, process_epoch(), memory_order_release);
    atomic_store_explicit(word(&mine->id), 0, memory_order_release);
    mine->pid = (uint32_t)getpid();
    snprintf(mine->command, sizeof mine->command, "%s", program_invocation_short_name);
    atomic_store_explicit(word(&mine->readers), generation << 12, memory_order_relaxed);
    atomic_store_explicit(word(&mine->id), segment->me, memory_order_release);
    /* nobody else may have this id: a word that names it is as old as the last wrap */
    uint32_t v = atomic_load(word(&c->lock));
    if ((v & SHMVIEW_LOCK_OWNER) == segment->me) {
        atomic_store(word(&c->dirty), 1);
        release_word(segment, v);
    }
}

/* What every call begins with. Returns 0 or an error. */
static int enter(struct shmview_segment *s)
{
    if (__builtin_expect(is_ready(s), 1))
        return 0;
    int r = segment_step_in(s);
    if (r == 0 && !s->control)
        r = fail(SHMVIEW_ERR_NO_LOCK, "segment '%s' %s", s->name,
                 s->access == SHMVIEW_PEEK ? "is attached with access peek, which has no lock"
                                           : "was created without a lock");
    return r;
}

/* --- The calls ----------------------------------------------------------- */

/* The word is mine: goes inside. Returns 0 or SHMVIEW_OWNER_DIED. */
static inline int go_inside(struct shmview_segment *s)
{
    struct shmview_control *c = s->control;
    int r = 0;
    atomic_store_explicit(&s->lock.owner, &self, memory_order_relaxed);
    s->lock.depth = 1;
    if (__builtin_expect(atomic_load_explicit(word(&c->dirty), memory_order_relaxed) != 0, 0)) {
        s->lock.dead = atomic_load_explicit(word(&c->inside), memory_order_relaxed);
        r = SHMVIEW_OWNER_DIED;
    }
    atomic_store_explicit(word(&c->inside), s->me, memory_order_relaxed);
    atomic_store_explicit(word(&c->dirty), 1, memory_order_relaxed);
    /* a dead process's stores are all seen in its program order: only the compiler
     * could still move the caller's stores before the flag */
    atomic_signal_fence(memory_order_seq_cst);
    return r;
}

__attribute__((noinline)) static int lock_slowly(struct shmview_segment *s, int64_t deadline)
{
    int r = enter(s);
    if (r)
        return r;
    if (held_by_me(s)) {
        if (s->lock.depth == INT32_MAX)
            return fail(SHMVIEW_ERR_TOO_DEEP, "the lock of '%s' is held %u times", s->name,
                        s->lock.depth);
        s->lock.depth++;
        return 0;
    }
    if (!self.registered && (r = register_thread()))
        return r;
    if (take_word_waiting(s, deadline))
        return fail(SHMVIEW_ERR_TIMED_OUT, "the lock of '%s' is held by another", s->name);
    return go_inside(s);
}

static inline int lock_until(struct shmview_segment *s, int64_t deadline)
{
    uint32_t free = 0;
    if (__builtin_expect(is_ready(s) && self.registered, 1) &&
        !atomic_load_explicit(&s->lock.owner, memory_order_relaxed) &&
        swap(&s->control->lock, &free, s->me))
        return go_inside(s);
    return lock_slowly(s, deadline);
}

__attribute__((noinline)) static int fail_not_owner(const struct shmview_segment *s)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "this thread does not hold the lock of '%s'", s->name);
}

/* The word does not name this process any more: nothing shared is touched. */
__attribute__((noinline)) static int fail_taken_away(const struct shmview_segment *s)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "the lock of '%s' was taken away from this process",
                s->name);
}

/* Whoever said "not repaired" did not die: the next owner is told who did. */
__attribute__((noinline)) static void keep_unrepaired(struct shmview_segment *s)
{
    if (s->lock.not_repaired)
        atomic_store_explicit(word(&s->control->inside), s->lock.dead, memory_order_relaxed);
    s->lock.dead = 0;
}

static inline int unlock(struct shmview_segment *s)
{
    int r = enter(s);
    if (r)
        return r;
    if (!held_by_me(s))
        return fail_not_owner(s);
    if (--s->lock.depth)
        return 0;
    struct shmview_control *c = s->control;
    uint32_t v = atomic_load_explicit(word(&c->lock), memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(s->lock.dead != 0, 0))
        keep_unrepaired(s);
    if (__builtin_expect((v & SHMVIEW_LOCK_OWNER) == s->me && !s->lock.not_repaired, 1))
        atomic_store_explicit(word(&c->dirty), 0, memory_order_relaxed);
    s->lock.not_repaired = false;
    atomic_store_explicit(&s->lock.owner, NULL, memory_order_relaxed);
    if (__builtin_expect(release_word(s, v) != 0, 0))
        return fail_taken_away(s);
    return 0;
}

int shmview_lock(struct shmview_segment *segment)
{
    return lock_until(segment, FOREVER);
}

int shmview_trylock(struct shmview_segment *segment)
{
    return lock_until(segment, 0);
}

int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns)
{
    return lock_until(segment, deadline_ns > 0 ? deadline_ns : 0);
}

int64_t shmview_deadline(int64_t timeout_ns)
{
    int64_t deadline;
    return __builtin_add_overflow(now_ns(), timeout_ns, &deadline) ? FOREVER : deadline;
}

int shmview_unlock(struct shmview_segment *segment)
{
    return unlock(segment);
}

int shmview_unlock_not_repaired(struct shmview_segment *segment)
{
    if (is_ready(segment) && held_by_me(segment))
        segment->lock.not_repaired = true;
    return unlock(segment);
}

static uint32_t pid_told_by_daemon(const struct shmview_segment *s, uint32_t id)
{
    for (size_t i = 0; i < ARRAY_LEN(s->live->last); i++) {
        const struct shmview_liveness_death *d = &s->live->last[i];
        if (atomic_load_explicit(const_word(&d->id), memory_order_acquire) == id)
            return atomic_load_explicit(const_word(&d->pid), memory_order_relaxed);
    }
    return 0;
}

int shmview_owner_died(struct shmview_segment *segment, struct shmview_death *ret_death)
{
    int r = enter(segment);
    if (r)
        return r;
    if (!held_by_me(segment))
        return fail_not_owner(segment);
    uint32_t id = segment->lock.dead;
    struct shmview_death death = {.slot = id & SHMVIEW_SLOT_MASK};
    death.pid = pid_told_by_daemon(segment, id);
    /* only slots that were ever used have memory behind them */
    uint32_t high = atomic_load_explicit(const_word(&segment->live->high), memory_order_acquire);
    if (death.slot < high && death.slot < SHMVIEW_SLOTS_MAX) {
        /* hints from another client: copied once, ended by us */
        const struct shmview_slot *slot = segment_slot(segment, death.slot);
        if (atomic_load_explicit(const_word(&slot->id), memory_order_acquire) == id) {
            memcpy(death.command, slot->command, sizeof death.command);
            death.command[sizeof death.command - 1] = '\0';
            if (!death.pid)
                death.pid = slot->pid;
        }
    }
    *ret_death = death;
    return 0;
}
