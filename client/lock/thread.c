/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/lock/lock.h"

const char thread_special = 0;

__thread struct thread_state self __attribute__((tls_model("initial-exec"))) = {
    .held = &thread_special,
};

/* Whether this process's attachment, not an ancestor's, has ended. */
bool is_lost(const struct shmview_segment *s)
{
    return atomic_load(&s->lock.epoch) == LOST_EPOCH && atomic_load(&s->epoch) == process_epoch();
}

/* --- The end of a thread ------------------------------------------------- */

/* The owner stays inside for the next one, as if it had died. A lock that was lost has its next
 * owner already. */
static void abandon(struct shmview_segment *s)
{
    STEP(AT_THREAD_EXITS);
    if (word_is_mine(s))
        store_inside(s->control, load_inside(s) + SHMVIEW_INSIDE_VERSION, s->me);
    s->lock.nested = 0;
    s->lock.dead = 0;
    s->lock.untidy = 0;
    atomic_store_explicit(&s->lock.owner, NULL, memory_order_relaxed);
    STEP(AT_THREAD_MARKED);
    release_word(s, lock_word(s));
}

/* A thread that exits while it is inside has died there. */
static void release_at_exit(struct shmview_segment *s, void *owner)
{
    if (atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == owner &&
        (is_ready(s) || is_lost(s)))
        abandon(s); /* neither another thread's, nor an ancestor's */
}

static pthread_key_t exit_key;
static int exit_key_error;

static void on_thread_exit(void *state)
{
    if (self.epoch == process_epoch()) {
        if (thread_open() == 0)
            while (self.n_shared) {
                STEP(AT_THREAD_SHARES);
                leave_slot(self.shared[--self.n_shared].segment);
            }
        atomic_fetch_sub(&process->n_threads, 1);
        segment_each(release_at_exit, state);
    }
    free(self.shared);
    self.shared = NULL;
    self.epoch = 0; /* a destructor that runs later may lock again: register again */
    self.held = &thread_special;
    if (++self.exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(exit_key, state); /* to run in the last round, and know that it is */
}

static void make_exit_key(void)
{
    exit_key_error = pthread_key_create(&exit_key, on_thread_exit);
}

static int thread_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (self.exit_rounds == PTHREAD_DESTRUCTOR_ITERATIONS)
        return fail(SHMVIEW_ERR_LIMIT, "this thread ends: nothing would give the lock back after "
                                       "its last round of destructors");
    /* a slot counts the threads that hold shared in 12 bits */
    if (atomic_fetch_add(&process->n_threads, 1) >= SHMVIEW_READER_COUNT_MASK) {
        atomic_fetch_sub(&process->n_threads, 1);
        return fail(SHMVIEW_ERR_LIMIT, "%u threads of this process use locks, which is the limit",
                    SHMVIEW_READER_COUNT_MASK);
    }
    pthread_once(&once, make_exit_key);
    int r = exit_key_error ? exit_key_error : pthread_setspecific(exit_key, &self);
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
    if (self.epoch != epoch) {
        self.held = &thread_special; /* what an ancestor held is not ours */
        self.n_shared = 0;
        int r = thread_register();
        if (r)
            return r;
        self.epoch = epoch;
    }
    /* after registering: it is the thread's exit that frees it */
    if (!self.shared && !(self.shared = calloc(SHARED_MAX, sizeof *self.shared)))
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (self.held && self.held != &thread_special) {
        self.shared[0].segment = (struct shmview_segment *)(uintptr_t)self.held;
        self.shared[0].depth = 1;
        self.n_shared = 1;
    }
    return 0;
}

int thread_close(int result)
{
    self.held = &thread_special;
    if (self.n_shared == 0) {
        self.held = NULL;
    } else if (self.n_shared == 1 && self.shared[0].depth == 1) {
        self.held = self.shared[0].segment;
        self.n_shared = 0;
    }
    return result;
}

int thread_find(const struct shmview_segment *s)
{
    for (uint32_t i = self.n_shared; i-- > 0;)
        if (self.shared[i].segment == s)
            return (int)i;
    return -1;
}

/* --- The end of a handle ------------------------------------------------- */

/* What is shared goes; the table has it, or self.held. */
static void share_give_up(struct shmview_segment *s)
{
    if (self.epoch != process_epoch() || !self.held || thread_open())
        return;
    int entry = thread_find(s);
    if (entry >= 0) {
        self.shared[entry] = self.shared[--self.n_shared];
        leave_slot(s);
    }
    thread_close(0);
}

void lock_give_up(struct shmview_segment *segment)
{
    if (!is_ready(segment) && !is_lost(segment))
        return; /* never taken, or by an ancestor */
    if (held_by_me(segment)) {
        segment->lock.nested = 0;
        shmview_unlock(segment);
    } else if (atomic_load(&segment->lock.owner)) {
        abandon(segment);
    }
    share_give_up(segment);
}

/* --- Slots --------------------------------------------------------------- */

void lock_take_slot(struct shmview_segment *segment, uint32_t slot, uint32_t generation,
                    uint32_t lock)
{
    segment->me = generation << SHMVIEW_SLOT_BITS | slot;
    segment->my_readers = &segment_slot(segment, slot)->readers;
    segment->my_life = &segment->live->generation[slot];
    segment->lock = (struct lock_state){.epoch = UNSIGNED_EPOCH};
    /* nobody else may have this id: a word that names it is as old as the last wrap,
     * and others must not wait for it until I come */
    if (owner_of(lock) == segment->me && owner_of(lock_word(segment)) == segment->me) {
        store_inside(segment->control, load_inside(segment), segment->me);
        release_word(segment, lock_word(segment));
    }
}

/* The first call that needs the slot says whose it is: who attaches and never locks
 * never touches the control object. */
static void sign_slot(struct shmview_segment *segment)
{
    struct shmview_slot *mine = segment_slot(segment, segment->me & SHMVIEW_SLOT_MASK);
    uint32_t generation = segment->me >> SHMVIEW_SLOT_BITS;
    STEP(AT_ADOPTS);
    atomic_store_explicit(word(&mine->id), 0, memory_order_release);
    STEP(AT_ADOPT_UNSIGNED);
    mine->pid = (uint32_t)getpid();
    snprintf(mine->command, sizeof mine->command, "%s", program_invocation_short_name);
    atomic_store_explicit(word(&mine->waits), SHMVIEW_WAITS_NOT, memory_order_relaxed);
    STEP(AT_ADOPT_UNCOUNTED);
    atomic_store_explicit(word(&mine->readers), generation << SHMVIEW_READER_COUNT_BITS,
                          memory_order_relaxed);
    STEP(AT_ADOPT_COUNTS);
    atomic_store_explicit(word(&mine->id), segment->me, memory_order_release);
    STEP(AT_ADOPTED);
    uint32_t unsigned_epoch = UNSIGNED_EPOCH; /* or it was lost since */
    atomic_compare_exchange_strong(&segment->lock.epoch, &unsigned_epoch, process_epoch());
}

int fail_no_lock(const struct shmview_segment *s)
{
    if (!s->connection)
        return fail(SHMVIEW_ERR_NO_LOCK, "foreign memory has no lock");
    return fail(SHMVIEW_ERR_NO_LOCK, "segment '%s' %s", s->name,
                s->access == SHMVIEW_PEEK ? "is attached with access peek, which has no lock"
                                          : "was created without a lock");
}

int enter_slowly(struct shmview_segment *s)
{
    int r = segment_step_in(s);
    if (r)
        return r;
    if (!s->control)
        return fail_no_lock(s);
    DETAILS;
    if (is_lost(s) || !slot_is_mine(s))
        return fail_lost(s);
    if (!is_ready(s))
        sign_slot(s);
    return is_ready(s) ? 0 : fail_lost(s); /* it may have been lost since */
}

int enter_to_leave(struct shmview_segment *s)
{
    return is_lost(s) ? 0 : enter(s);
}
