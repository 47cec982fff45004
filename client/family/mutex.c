/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes. mutex_layout.h states who writes what; each step here that is one access to shared
 * memory is one step of tests/model/mutex.pml. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/family.h>

#include "client/base/error.h"
#include "client/base/wait.h"
#include "client/family/owner.h"
#include "common/base/util.h"

/* How long a waiter parks until it asks the kernel for the owner the first time, and then. */
#define FIRST_PARK_NS 4000000
#define PARK_NS       40000000

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* --- Words --------------------------------------------------------------- */

static inline uint32_t load(const uint32_t *p)
{
    return atomic_load_explicit((const _Atomic uint32_t *)p, memory_order_relaxed);
}

/* Two words that are compared at once. */
static inline uint64_t load_pair(const uint32_t *p)
{
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)p, memory_order_relaxed);
}

static inline void store(uint32_t *p, uint32_t v)
{
    atomic_store_explicit((_Atomic uint32_t *)p, v, memory_order_relaxed);
}

static inline uint64_t load_owner(const struct shmview_mutex *m)
{
    return atomic_load_explicit((const _Atomic uint64_t *)&m->owner, memory_order_relaxed);
}

/* On failure *expected is what the word was. */
static inline bool swap_owner(struct shmview_mutex *m, uint64_t *expected, uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit((_Atomic uint64_t *)&m->owner, expected, desired,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline uint64_t without_waiters(uint64_t v)
{
    return v & ~(uint64_t)SHMVIEW_MUTEX_WAITERS;
}

/* The half of the word that has the id and W: a futex has 32 bits. If only the birth has changed,
 * the waiter that parks costs itself one park at most. */
static uint32_t *parked_half(struct shmview_mutex *m)
{
    return (uint32_t *)&m->owner + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* --- What a call begins with --------------------------------------------- */

static bool is_of_threads(const struct shmview_mutex *m)
{
    return load(&m->kind) == SHMVIEW_MUTEX_OF_THREADS;
}

static uint64_t caller_as_owner(bool of_threads)
{
    return of_threads ? caller.thread : caller.process;
}

/* Whether the mutex is of another namespace; 0: not known. */
static bool is_foreign(uint32_t namespace, uint32_t of_caller)
{
    return namespace && of_caller && namespace != of_caller;
}

static int begin_slowly(const struct shmview_mutex *m)
{
    int r = caller_is_known() ? 0 : caller_look_up();
    if (r)
        return r;
    if (load(&m->magic) != SHMVIEW_MUTEX_MAGIC)
        return fail(SHMVIEW_ERR_INVALID, "not a mutex: shmview_mutex_init() makes one");
    if (load(&m->version) != SHMVIEW_MUTEX_LAYOUT_VERSION)
        return fail(SHMVIEW_ERR_LAYOUT_VERSION, "a mutex of layout version %u", load(&m->version));
    if (is_foreign(load(&m->pid_namespace), caller.namespaces[0]))
        return fail(SHMVIEW_ERR_INVALID, "the mutex belongs to another pid namespace");
    if (is_foreign(load(&m->time_namespace), caller.namespaces[1]))
        return fail(SHMVIEW_ERR_INVALID, "the mutex belongs to another time namespace");
    return 0;
}

/* Returns 0 with caller known, or an error. */
static inline int begin(const struct shmview_mutex *m)
{
    static _Alignas(8)
        const uint32_t known[2] = {SHMVIEW_MUTEX_MAGIC, SHMVIEW_MUTEX_LAYOUT_VERSION};
    return LIKELY(caller_is_known() && load_pair(&m->magic) == load_pair(known) &&
                  load_pair(&m->pid_namespace) == load_pair(caller.namespaces))
               ? 0
               : begin_slowly(m);
}

/* --- Locking ------------------------------------------------------------- */

/* Takes the word from the owner that is in v, if that is dead and still in the word. Sets W,
 * because other threads may be parked. */
static bool take_over(struct shmview_mutex *m, uint64_t v, bool of_threads)
{
    uint32_t pid = of_threads ? load(&m->pid) : 0;
    if (!owner_is_dead(v, of_threads) ||
        !swap_owner(m, &v, caller_as_owner(of_threads) | SHMVIEW_MUTEX_WAITERS))
        return false;
    store(&m->depth, 0);
    store(&m->died, pid ? pid : (uint32_t)v & SHMVIEW_MUTEX_ID);
    return true;
}

static bool spin(struct shmview_mutex *m, uint64_t me)
{
    for (int n = spins_allowed(); n > 0; n--) {
        uint64_t unlocked = 0;
        if (!load_owner(m) && swap_owner(m, &unlocked, me))
            return true;
        relax();
    }
    return false;
}

/* Parks for ns, or until the word's half is not v's. Returns 0 after a wake-up, else an errno. */
static int park_on(struct shmview_mutex *m, uint64_t v, int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    return syscall(SYS_futex, parked_half(m), FUTEX_WAIT, (uint32_t)v, &t, NULL, 0) ? errno : 0;
}

#define NESTED 1

/* Returns 0, NESTED where the caller's function has taken the mutex for this thread and kept it,
 * -SHMVIEW_ERR_TIMED_OUT or _INTERRUPTED. A waiter that has parked before takes the word with W,
 * because other threads may be parked too. It leaves only after it has set W, or found it set: it
 * may have used up a wake-up that another thread needs. */
static int wait_for_word(struct shmview_mutex *m, bool of_threads, int64_t deadline)
{
    uint64_t me = caller_as_owner(of_threads);
    int64_t longest = FIRST_PARK_NS, asked_ns = 0;
    bool is_due = false; /* the caller's function */
    if (deadline && spin(m, me))
        return 0;
    for (;;) {
        uint64_t v = load_owner(m);
        if (!v) {
            if (swap_owner(m, &v, me | SHMVIEW_MUTEX_WAITERS))
                return 0;
            continue;
        }
        if (of_threads && without_waiters(v) == me)
            return NESTED;
        if (deadline && !(v & SHMVIEW_MUTEX_WAITERS)) {
            if (!swap_owner(m, &v, v | SHMVIEW_MUTEX_WAITERS))
                continue;
            v |= SHMVIEW_MUTEX_WAITERS;
        }
        int64_t now = now_ns(), left = deadline == NEVER ? NEVER : deadline - now;
        if (deadline == 0 || left <= 0)
            return take_over(m, v, of_threads) ? 0 : -SHMVIEW_ERR_TIMED_OUT;
        if (is_due || (asked_ns && now - asked_ns >= WAIT_NS)) {
            int r = wait_ask();
            if (r)
                return r;
            is_due = false;
            asked_ns = now_ns();
            continue;
        }
        asked_ns = asked_ns ? asked_ns : now;
        int ended = park_on(m, v, left < longest ? left : longest);
        is_due = ended == EINTR;
        if (ended == ETIMEDOUT) {
            if (take_over(m, v, of_threads))
                return 0;
            longest = PARK_NS;
        }
    }
}

static int nest(struct shmview_mutex *m)
{
    uint32_t depth = load(&m->depth);
    if (depth >= UINT32_MAX - 1)
        return fail(SHMVIEW_ERR_TOO_DEEP, "this thread holds the mutex too many times");
    store(&m->depth, depth + 1);
    return 0;
}

/* The word is the caller's. */
static inline int finish_locking(struct shmview_mutex *m)
{
    store(&m->pid, caller.pid);
    return LIKELY(!load(&m->died)) ? 0 : SHMVIEW_OWNER_DIED;
}

static int fail_held(void)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "another process or thread holds the mutex");
}

/* Makes no system call. Returns what shmview_mutex_lock() does, or OTHERS: the word is not free. */
#define OTHERS 2
static inline int lock_at_once(struct shmview_mutex *m, bool of_threads)
{
    uint64_t v = 0;
    if (LIKELY(swap_owner(m, &v, caller_as_owner(of_threads))))
        return finish_locking(m);
    return of_threads && without_waiters(v) == caller.thread ? nest(m) : OTHERS;
}

static int lock_slowly(struct shmview_mutex *m, bool of_threads, int64_t deadline)
{
    NOT_CANCELLED;
    int r = wait_for_word(m, of_threads, deadline);
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        return fail_held();
    if (r == NESTED)
        return nest(m);
    return r ? r : finish_locking(m);
}

int shmview_mutex_trylock(struct shmview_mutex *m)
{
    int r = begin(m);
    if (UNLIKELY(r))
        return r;
    r = lock_at_once(m, is_of_threads(m));
    return LIKELY(r != OTHERS) ? r : fail_held();
}

int shmview_mutex_lock(struct shmview_mutex *m, int64_t deadline_ns)
{
    int r = begin(m);
    if (UNLIKELY(r))
        return r;
    bool of_threads = is_of_threads(m);
    r = lock_at_once(m, of_threads);
    return LIKELY(r != OTHERS) ? r : lock_slowly(m, of_threads, deadline_ns > 0 ? deadline_ns : 0);
}

/* --- Unlocking ----------------------------------------------------------- */

static int fail_not_held(const struct shmview_mutex *m)
{
    int r = begin(m);
    return r ? r : fail(SHMVIEW_ERR_NOT_OWNER, "the mutex is not the caller's");
}

__attribute__((always_inline)) static inline int unlock(struct shmview_mutex *m, bool is_repaired)
{
    uint64_t v = load_owner(m);
    if (UNLIKELY(load(&m->kind) == SHMVIEW_MUTEX_OF_PROCESSES
                     ? !v
                     : !caller_is_known() || without_waiters(v) != caller.thread))
        return fail_not_held(m);
    uint32_t depth = load(&m->depth);
    if (UNLIKELY(depth)) {
        store(&m->depth, depth - 1);
        return 0;
    }
    if (UNLIKELY(!load(&m->died) != is_repaired))
        store(&m->died, is_repaired ? 0 : caller.pid);
    store(&m->pid, 0);
    v = atomic_exchange_explicit((_Atomic uint64_t *)&m->owner, 0, memory_order_release);
    if (UNLIKELY(v & SHMVIEW_MUTEX_WAITERS))
        syscall(SYS_futex, parked_half(m), FUTEX_WAKE, 1, NULL, NULL, 0);
    return LIKELY(v) ? 0 : fail_not_held(m);
}

int shmview_mutex_unlock(struct shmview_mutex *m)
{
    return unlock(m, true);
}

int shmview_mutex_unlock_not_repaired(struct shmview_mutex *m)
{
    int r = begin(m); /* a process that has never locked may unlock, and is named */
    return r ? r : unlock(m, false);
}

/* --- The rest ------------------------------------------------------------ */

int shmview_mutex_init(struct shmview_mutex *m, int kind)
{
    int r = caller_is_known() ? 0 : caller_look_up();
    if (r)
        return r;
    if (kind != SHMVIEW_MUTEX_OF_THREADS && kind != SHMVIEW_MUTEX_OF_PROCESSES)
        return fail(SHMVIEW_ERR_INVALID, "%d is no kind of a mutex", kind);
    if ((uintptr_t)m % _Alignof(struct shmview_mutex))
        return fail(SHMVIEW_ERR_INVALID, "a mutex at %p is not aligned to 8", (void *)m);
    *m = (struct shmview_mutex){.version = SHMVIEW_MUTEX_LAYOUT_VERSION,
                                .kind = (uint32_t)kind,
                                .pid_namespace = caller.namespaces[0],
                                .time_namespace = caller.namespaces[1]};
    atomic_store_explicit((_Atomic uint32_t *)&m->magic, SHMVIEW_MUTEX_MAGIC, memory_order_release);
    return 0;
}

int shmview_mutex_query(struct shmview_mutex *m, struct shmview_mutex_status *ret_status)
{
    int r = begin(m);
    if (r)
        return r;
    uint64_t v = load_owner(m);
    bool is_mine = v && without_waiters(v) == caller_as_owner(is_of_threads(m));
    *ret_status = (struct shmview_mutex_status){
        .is_held = v != 0,
        .is_mine = is_mine,
        .depth = is_mine ? load(&m->depth) + 1 : 0,
        .pid = v ? load(&m->pid) : 0,
        .died = load(&m->died),
    };
    return 0;
}
