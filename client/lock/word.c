/* SPDX-License-Identifier: Apache-2.0 */
/* The lock word: takes it, releases it, and drains readers.
 *
 *   word    changes from free to the id of the owner, and back. An id that is not in the liveness
 *           object is dead. Any client may replace a dead id by its own. An id whose slot has ended
 *           is not dead: its client may be inside, and keeps the word. A waiter for it leaves when
 *           its own slot has ended, too.
 *   inside  the id of the owner that went inside and has not left in order. A client that takes
 *           the word and finds it set knows that the last owner died inside. Clients only test
 *           whether it is set, and never compare the id, because the client that repairs may die
 *           too.
 *   W, R    two flags of the word: writers, or readers, may be parked. A writer sets W before each
 *           park and before it leaves at its deadline. Otherwise it could take a wake-up with it,
 *           and the next release would wake no other writer.
 *
 * A release is a CAS that fails if the word does not name this client. Otherwise a client that was
 * declared dead too early would free the lock of its successor. */
#include <limits.h>

#include "client/lock/word.h"
#include "common/base/util.h"

bool is_alive(const struct lock *l, uint32_t id)
{
    uint32_t slot = id & SHMVIEW_SLOT_MASK;
    uint32_t generation = owner_of(id) >> SHMVIEW_SLOT_BITS;
    return generation && slot < SHMVIEW_SLOTS_MAX &&
           (atomic_load_explicit(const_word(&l->live->generation[slot]), memory_order_acquire) &
            ~SHMVIEW_GENERATION_ENDED) == generation;
}

bool word_is_mine(const struct lock *l)
{
    return owner_of(lock_word(l)) == l->me && slot_is_mine(l);
}

bool word_is_safe(const struct lock *l)
{
    return owner_of(lock_word(l)) == l->me && is_alive(l, l->me);
}

/* --- Taking -------------------------------------------------------------- */

/* The pauses after the first look at a word that another thread has, and the most. */
#define PAUSES_FIRST 8
#define PAUSES_MOST  64

/* Spins for the word, because most critical sections are shorter than a sleep and a wake-up. Keeps
 * W and R, because threads may be parked. Returns whether it has taken the word.
 *
 * A thread spins although others are parked. With eight owners of empty critical sections a pair
 * would take three quarters of the time if none spun, because one processor then takes the lock
 * several times in a row. With two owners of 0.3 to 3 us it would take 1.3 to 2 times as long.
 *
 * Each look takes the cache line away from the owner, whose release must then fetch it back. So the
 * pauses between the looks grow, and an owner that takes the word again and again does so at the
 * cost of an uncontended pair for a while. */
static bool take_word_spinning(struct lock *l)
{
    struct shmview_control *c = l->control;
    for (int left = spins_allowed(), pauses = PAUSES_FIRST; left > 0; left -= pauses) {
        uint32_t v = atomic_load_explicit(word(&c->lock), memory_order_relaxed);
        if (!owner_of(v) && swap(&c->lock, &v, l->me | v)) {
            STEP(AT_TAKEN_SPINNING);
            return true;
        }
        for (int i = 0; i < pauses; i++)
            relax();
        if (pauses < PAUSES_MOST)
            pauses *= 2;
    }
    return false;
}

enum attempt {
    WORD_TAKEN,
    LOOK_AGAIN, /* the word may have changed */
};

/* Takes the word if it is free or its owner is dead; otherwise parks once. Returns an enum
 * attempt, WAIT_ASKS, or an error without a text. */
static int take_word_once(struct lock *l, struct wait *w)
{
    struct shmview_control *c = l->control;
    /* read before the word and the generations, so that a later death ends the park */
    uint32_t deaths = atomic_load(const_word(&l->live->deaths));
    uint32_t v = atomic_load(word(&c->lock));
    STEP(AT_WORD_SEEN);
    if (!slot_is_mine(l)) {
        wake(&c->lock, 1); /* passes on a wake-up that this client may have received */
        return -SHMVIEW_ERR_LOST;
    }
    if (!owner_of(v) || !is_alive(l, v)) {
        /* W, because the wake-up may have been for one of several that are parked */
        uint32_t mine = l->me | SHMVIEW_LOCK_WRITERS | (v & SHMVIEW_LOCK_READERS);
        STEP(owner_of(v) ? AT_TAKES_DEAD : AT_TAKES_FREE);
        if (!swap(&c->lock, &v, mine))
            return LOOK_AGAIN;
        if (owner_of(v))
            distrust_groups(l);
        return WORD_TAKEN;
    }
    if (w->deadline == 0)
        return -SHMVIEW_ERR_TIMED_OUT; /* a try never parks, so it has received no wake-up */
    if (!(v & SHMVIEW_LOCK_WRITERS) && !swap(&c->lock, &v, v | SHMVIEW_LOCK_WRITERS))
        return LOOK_AGAIN;
    STEP(AT_W_SET);
    int over = wait_ends(w);
    if (over)
        return over;
    STEP(AT_PARKS);
    wait_park(l, w, &c->lock, v | SHMVIEW_LOCK_WRITERS, &deaths, v);
    STEP(AT_UNPARKED);
    return LOOK_AGAIN;
}

static int take_word_waiting(struct lock *l, struct wait *w)
{
    int r;
    if (w->deadline != 0 && take_word_spinning(l))
        return 0;
    do
        r = take_word_once(l, w);
    while (r == LOOK_AGAIN);
    if (r == WORD_TAKEN)
        STEP(AT_TAKEN_LATE);
    return r == -SHMVIEW_ERR_LOST ? fail_lost(l) : r < 0 ? fail_timed_out(l) : r;
}

int take_word(struct lock *l, struct wait *w)
{
    uint32_t free = 0;
    if (!slot_is_mine(l))
        return fail_lost(l);
    STEP(AT_TAKES);
    if (!swap(&l->control->lock, &free, l->me))
        return take_word_waiting(l, w);
    STEP(AT_TAKEN);
    return 0;
}

/* --- Giving back --------------------------------------------------------- */

/* Wakes waiters after the release of a word that was v. All readers are woken, because they can
 * run together; of the writers one, because only one can take the word. */
static void wake_waiters(struct lock *l, uint32_t v)
{
    struct shmview_control *c = l->control;
    STEP(AT_RELEASED);
    if (v & SHMVIEW_LOCK_READERS) {
        atomic_fetch_add(word(&c->reader_gate), 1);
        STEP(AT_GATE_OPENED);
        wake(&c->reader_gate, INT_MAX);
        STEP(AT_GATE_WOKEN);
    }
    if (v & SHMVIEW_LOCK_WRITERS)
        wake(&c->lock, 1);
    STEP(AT_WOKEN);
}

int release_word(struct lock *l, uint32_t v)
{
    STEP(AT_RELEASES);
    do
        if (owner_of(v) != l->me)
            return -SHMVIEW_ERR_NOT_OWNER;
    while (!swap(&l->control->lock, &v, 0));
    if (v & (SHMVIEW_LOCK_WRITERS | SHMVIEW_LOCK_READERS))
        wake_waiters(l, v);
    return 0;
}

/* --- Readers ------------------------------------------------------------- */

/* After so many versions, which is after as many exclusive holds, an owner clears the groups. A
 * reader then sets its group again, which costs it several shared pairs. The stress test clears
 * them more often, because the race with a reader is rare. */
#ifdef SHMVIEW_STEPS
#define CLEAR_EVERY 2
#else
#define CLEAR_EVERY 256
#endif

void distrust_groups(struct lock *l)
{
    STEP(AT_TAKEN_OVER);
    atomic_fetch_add(word64(&l->control->reader_groups), SHMVIEW_READER_TAKEOVER);
    STEP(AT_TAKEOVER_COUNTED);
    atomic_fetch_or(word64(&l->control->reader_groups), SHMVIEW_READER_GROUPS_MASK);
    STEP(AT_GROUPS_DISTRUSTED);
}

/* Returns the id of the slot's user if it is alive and has readers inside, otherwise 0. Clears the
 * count of a dead one. */
static uint32_t slot_reads(struct lock *l, uint32_t slot)
{
    uint32_t *at = &slot_at(l, slot)->readers;
    uint32_t v = atomic_load(word(at));
    while (v & SHMVIEW_READER_COUNT_MASK) {
        uint32_t id = v >> SHMVIEW_READER_COUNT_BITS << SHMVIEW_SLOT_BITS | slot;
        if (is_alive(l, id))
            return id;
        /* only that value: if the slot has a new user by now, look again */
        if (swap(at, &v, 0)) {
            STEP(AT_READER_CLEARED);
            break;
        }
    }
    return 0;
}

/* Returns the id of a living client of these groups that has readers inside, or 0; the same one as
 * long as it has. It looks only at slots that were ever used, because the others may have no
 * memory.
 */
static uint32_t any_reader(struct lock *l, uint64_t groups)
{
    uint32_t reader = 0, id;
    uint32_t high = atomic_load(const_word(&l->live->high));
    if (high > SHMVIEW_SLOTS_MAX)
        high = SHMVIEW_SLOTS_MAX;
    for (groups &= SHMVIEW_READER_GROUPS_MASK; groups; groups &= groups - 1)
        for (uint32_t slot = (uint32_t)__builtin_ctzll(groups); slot < high;
             slot += SHMVIEW_READER_GROUPS)
            if ((id = slot_reads(l, slot)) && !reader)
                reader = id;
    return reader;
}

/* Clears the groups, so that later owners need not look at their slots. The caller has the word,
 * and has found no reader in the groups `seen`.
 *
 * A reader that found its group set may have counted itself after the caller looked. Therefore the
 * caller looks again after it has cleared the groups, and sets those that have a reader. If it dies
 * before that, the owner that takes its word sets all groups, and counts a takeover. The swap then
 * fails, also if the caller runs although it was declared dead: it read `seen` before its slot was
 * lost, thus before the takeover. */
__attribute__((noinline)) static void clear_groups(struct lock *l, uint64_t seen)
{
    _Atomic uint64_t *at = word64(&l->control->reader_groups);
    uint64_t expected = seen;
    STEP(AT_CLEARS_GROUPS);
    if (!slot_is_mine(l) ||
        !atomic_compare_exchange_strong(at, &expected, seen & ~SHMVIEW_READER_GROUPS_MASK))
        return;
    STEP(AT_GROUPS_CLEARED);
    for (seen &= SHMVIEW_READER_GROUPS_MASK; seen; seen &= seen - 1)
        if (any_reader(l, seen & -seen)) {
            STEP(AT_GROUP_READS);
            atomic_fetch_or(at, seen & -seen);
        }
}

int drain_readers(struct lock *l, struct wait *w)
{
    struct shmview_control *c = l->control;
    for (int looks = 0;; looks++) {
        uint32_t deaths = atomic_load(const_word(&l->live->deaths));
        uint32_t event = atomic_load(word(&c->drain));
        /* a reader sets its group before it reads the word, which this client has already */
        uint64_t groups = atomic_load(word64(&c->reader_groups));
        STEP(AT_READERS_SEEN);
        uint32_t reader = any_reader(l, groups);
        if (!reader) {
            if (any_group(groups) && load_inside(l) / SHMVIEW_INSIDE_VERSION % CLEAR_EVERY == 0)
                clear_groups(l, groups);
            return 0;
        }
        if (looks < spins_allowed() / 8) {
            relax();
            continue;
        }
        /* the slot is checked after `deaths` was read, so that a later loss ends the park */
        int over = slot_is_mine(l) ? wait_ends(w) : -SHMVIEW_ERR_LOST;
        if (over)
            return over;
        STEP(AT_DRAIN_PARKS);
        wait_park(l, w, &c->drain, event, &deaths, reader);
        STEP(AT_DRAIN_UNPARKED);
        if (!slot_is_mine(l))
            return -SHMVIEW_ERR_LOST;
    }
}
