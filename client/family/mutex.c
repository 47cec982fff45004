/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes: lock, unlock, and take over from a dead owner.
 *
 * One word has the owner and the flag W (threads may be parked). An uncontended call is one CAS or
 * one exchange, without a system call. A waiter parks on the half of the word that has W. No
 * daemon reports deaths, so a waiter asks the kernel whether the owner lives after each park that
 * ended by its time, and takes the word from a dead owner by a CAS.
 *
 * shmview/mutex_layout.h states who writes which member. Each access to shared memory here is one
 * step of tests/model/mutex.pml, so a change of their order must be made there too. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/family.h>

#include "client/base/error.h"
#include "client/base/wait.h"
#include "client/family/owner.h"
#include "common/base/util.h"

/* How long a waiter parks before it asks the kernel about the owner for the first time, and how
 * long between later questions. */
#define FIRST_PARK_NS 4000000
#define PARK_NS       40000000

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* --- Words --------------------------------------------------------------- */

static inline uint32_t load(const uint32_t *p)
{
    return atomic_load_explicit((const _Atomic uint32_t *)p, memory_order_relaxed);
}

/* Loads two neighbouring words, which begin() compares at once. No thread writes them after
 * shmview_mutex_init(). */
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

/* Replaces the word if it is *expected. Otherwise stores the word in *expected. Returns whether it
 * has replaced the word. */
static inline bool swap_owner(struct shmview_mutex *m, uint64_t *expected, uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit((_Atomic uint64_t *)&m->owner, expected, desired,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline uint64_t without_waiters(uint64_t v)
{
    return v & ~(uint64_t)SHMVIEW_MUTEX_WAITERS;
}

/* Returns the half of the word that has the id and W, because a futex has 32 bits. If only the
 * birth has changed, a waiter may park once without need, and every park is bounded. */
static uint32_t *parked_half(struct shmview_mutex *m)
{
    return (uint32_t *)&m->owner + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* --- The beginning of a call --------------------------------------------- */

static bool is_of_threads(const struct shmview_mutex *m)
{
    return load(&m->kind) == SHMVIEW_MUTEX_OF_THREADS;
}

static uint64_t caller_as_owner(bool of_threads)
{
    return of_threads ? caller.thread : caller.process;
}

/* Whether the mutex belongs to another namespace than the caller. 0 stands for an unknown one,
 * which is not refused. */
static bool is_foreign(uint32_t namespace, uint32_t of_caller)
{
    return namespace && of_caller && namespace != of_caller;
}

/* Looks the caller up if necessary, and refuses memory that is no mutex, and a mutex of another
 * version or namespace. Returns 0 or an error. */
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

/* Checks the mutex and the caller, in the usual case with two comparisons of 64 bits. Returns 0 or
 * an error. */
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

/* Takes the word from the owner in v if that owner is dead and the word is still v. Sets W, because
 * other threads may be parked. Returns whether it has taken the word. */
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

/* Spins for a free word. Returns whether it has taken the word. */
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

/* Parks for ns, unless half of the word differs from that of v. Returns 0 after a wake-up, or an
 * errno. */
static int park_on(struct shmview_mutex *m, uint64_t v, int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    return syscall(SYS_futex, parked_half(m), FUTEX_WAIT, (uint32_t)v, &t, NULL, 0) ? errno : 0;
}

#define NESTED 1

/* Waits for the word and takes it.
 *
 * It takes the word with W, because other threads may be parked too. Before it leaves at its
 * deadline it has set W, or found it set. Otherwise it could take a wake-up with it, and the next
 * unlock would wake no other thread. A try (deadline 0) never parks, and need not set W.
 *
 * Returns 0; NESTED if the caller's function has locked the mutex for this thread and kept it; or
 * -SHMVIEW_ERR_TIMED_OUT or _INTERRUPTED. */
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

/* Locks once more for the thread that is the owner. Returns 0 or an error. */
static int nest(struct shmview_mutex *m)
{
    uint32_t depth = load(&m->depth);
    if (depth >= UINT32_MAX - 1)
        return fail(SHMVIEW_ERR_TOO_DEEP, "this thread holds the mutex too many times");
    store(&m->depth, depth + 1);
    return 0;
}

/* Completes a lock; the caller has the word. Returns 0 or SHMVIEW_OWNER_DIED. */
static inline int finish_locking(struct shmview_mutex *m)
{
    store(&m->pid, caller.pid);
    return LIKELY(!load(&m->died)) ? 0 : SHMVIEW_OWNER_DIED;
}

static int fail_held(void)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "another process or thread holds the mutex");
}

/* Tries the word once, without a system call. Returns what shmview_mutex_lock() returns, or OTHERS
 * if another owner has the word. */
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

/* Unlocks the mutex. Any process may unlock a mutex of processes, as with a semaphore; only its
 * owner may unlock a mutex of threads.
 *
 * died is stored before the word is freed, so that the next owner finds it. If an owner died inside
 * and the bytes are still not repaired, died keeps its process id. Returns 0 or an error. */
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
    int r = begin(m); /* a process that has never locked may unlock, and died names it */
    return r ? r : unlock(m, false);
}

/* --- The rest ------------------------------------------------------------ */

int shmview_mutex_init(struct shmview_mutex *m, int kind)
{
    int r = caller_is_known() ? 0 : caller_look_up();
    if (r)
        return r;
    if (kind != SHMVIEW_MUTEX_OF_THREADS && kind != SHMVIEW_MUTEX_OF_PROCESSES)
        return fail(SHMVIEW_ERR_INVALID, "%d is not a kind of mutex", kind);
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
