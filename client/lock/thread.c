/* SPDX-License-Identifier: Apache-2.0 */
/* Records what each thread holds, and cleans up when the thread ends.
 *
 * A thread-specific key has a destructor that runs when its thread exits. It removes the thread's
 * shared holds, and leaves a lock that the thread holds exclusively as if the owner had died. It
 * runs again in each round of destructors, because another destructor may take locks. */
#include <limits.h>
#include <stdlib.h>

#include "client/lock/word.h"

/* Its address is a value of held that is neither NULL nor a lock. */
static const char thread_special = 0;

__thread struct thread_state this_thread __attribute__((tls_model("initial-exec"))) = {
    .held = &thread_special,
};

/* --- The list ------------------------------------------------------------ */

static LIST_HEAD(, lock) locks = LIST_HEAD_INITIALIZER(locks);

void lock_enlist(struct lock *l)
{
    pthread_mutex_lock(&process->locks);
    {
        NOT_FORKED;
        LIST_INSERT_HEAD(&locks, l, link);
    }
    pthread_mutex_unlock(&process->locks);
}

void lock_delist(struct lock *l)
{
    pthread_mutex_lock(&process->locks);
    {
        NOT_FORKED;
        LIST_REMOVE(l, link);
    }
    pthread_mutex_unlock(&process->locks);
}

void locks_each(void (*visit)(struct lock *, void *), void *arg)
{
    struct lock *l;
    pthread_mutex_lock(&process->locks);
    LIST_FOREACH (l, &locks, link)
        visit(l, arg);
    pthread_mutex_unlock(&process->locks);
}

/* --- The end of a thread ------------------------------------------------- */

/* Abandons the lock if the exiting thread is inside: what it wrote may be incomplete. */
static void release_at_exit(struct lock *l, void *owner)
{
    if (atomic_load_explicit(&l->owner, memory_order_relaxed) == owner &&
        (is_ready(l) || is_lost(l)))
        abandon(l); /* the owner is this thread, and the attachment is this process's */
}

static pthread_key_t exit_key;
static int exit_key_error;

static void on_thread_exit(void *state)
{
    if (this_thread.epoch == process_epoch()) {
        if (thread_open() == 0)
            while (this_thread.n_shared) {
                STEP(AT_THREAD_SHARES);
                leave_slot(this_thread.shared[--this_thread.n_shared].lock);
            }
        atomic_fetch_sub(&process->n_threads, 1);
        locks_each(release_at_exit, state);
    }
    free(this_thread.shared);
    this_thread.shared = NULL;
    this_thread.epoch = 0; /* a later destructor may take locks, and must then register again */
    this_thread.held = &thread_special;
    if (++this_thread.exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(exit_key, state); /* to run, and count rounds, up to the last one */
}

/* In a forked child: its only thread has inherited the record, but holds nothing. */
static void thread_after_fork(void)
{
    this_thread.epoch = 0;
    this_thread.held = &thread_special;
}

void thread_check_process(void)
{
    if (this_thread.epoch && this_thread.epoch != process_epoch())
        thread_after_fork();
}

static void make_exit_key(void)
{
    process_at_fork(PROCESS_LOCK, thread_after_fork);
    exit_key_error = pthread_key_create(&exit_key, on_thread_exit);
}

/* Registers the thread for its exit. Returns 0 or an error; an error leaves nothing to undo. */
static int thread_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (this_thread.exit_rounds == PTHREAD_DESTRUCTOR_ITERATIONS)
        return fail(SHMVIEW_ERR_LIMIT, "this thread ends: nothing would give the lock back after "
                                       "its last round of destructors");
    /* a slot counts the threads that hold shared in 12 bits */
    if (atomic_fetch_add(&process->n_threads, 1) >= SHMVIEW_READER_COUNT_MASK) {
        atomic_fetch_sub(&process->n_threads, 1);
        return fail(SHMVIEW_ERR_LIMIT, "%u threads of this process use locks, which is the limit",
                    SHMVIEW_READER_COUNT_MASK);
    }
    pthread_once(&once, make_exit_key);
    int r = exit_key_error ? exit_key_error : pthread_setspecific(exit_key, &this_thread);
    if (r) {
        atomic_fetch_sub(&process->n_threads, 1);
        return fail_errno("a destructor for this thread", r);
    }
    return 0;
}

/* --- The table ----------------------------------------------------------- */

int thread_open(void)
{
    uint32_t epoch = process_epoch();
    if (this_thread.epoch != epoch) {
        this_thread.held = &thread_special; /* a child does not have its parent's holds */
        this_thread.n_shared = 0;
        int r = thread_register();
        if (r)
            return r;
        this_thread.epoch = epoch;
    }
    /* after the registration, because the destructor frees it */
    if (!this_thread.shared &&
        !(this_thread.shared = calloc(SHARED_MAX, sizeof *this_thread.shared)))
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (this_thread.held && this_thread.held != &thread_special) {
        this_thread.shared[0].lock = (struct lock *)(uintptr_t)this_thread.held;
        this_thread.shared[0].depth = 1;
        this_thread.n_shared = 1;
    }
    return 0;
}

int thread_close(int result)
{
    this_thread.held = &thread_special;
    if (this_thread.n_shared == 0) {
        this_thread.held = NULL;
    } else if (this_thread.n_shared == 1 && this_thread.shared[0].depth == 1) {
        this_thread.held = this_thread.shared[0].lock;
        this_thread.n_shared = 0;
    }
    return result;
}

int thread_find(const struct lock *l)
{
    for (uint32_t i = this_thread.n_shared; i-- > 0;)
        if (this_thread.shared[i].lock == l)
            return (int)i;
    return -1;
}

/* --- The end of a handle ------------------------------------------------- */

/* Removes the shared hold of this thread, at whatever depth, from the table or from held. */
static void share_give_up(struct lock *l)
{
    if (this_thread.epoch != process_epoch() || !this_thread.held || thread_open())
        return;
    int entry = thread_find(l);
    if (entry >= 0) {
        this_thread.shared[entry] = this_thread.shared[--this_thread.n_shared];
        leave_slot(l);
    }
    thread_close(0);
}

void lock_give_up(struct lock *l)
{
    if (!is_ready(l) && !is_lost(l))
        return; /* this process has never taken it */
    if (held_by_me(l)) {
        l->nested = 0;
        release_exclusive(l);
    } else if (atomic_load(&l->owner)) {
        abandon(l);
    }
    share_give_up(l);
}
