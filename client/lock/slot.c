/* SPDX-License-Identifier: Apache-2.0 */
/* The slot of this process: signs it with id, pid and command, and finds out whether it is lost. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client/lock/word.h"

bool lock_is_of_this_process(const struct lock *l)
{
    return atomic_load(&l->process) == process_epoch();
}

void lock_lose(struct lock *l)
{
    if (l->control)
        atomic_store(&l->epoch, LOST_EPOCH);
}

bool is_lost(const struct lock *l)
{
    return atomic_load(&l->epoch) == LOST_EPOCH && lock_is_of_this_process(l);
}

/* Whether this client has ever signed its slot; before that the slot cannot have its readers. */
static bool is_signed(const struct lock *l)
{
    return l->control && atomic_load(&l->epoch) != UNSIGNED_EPOCH;
}

static bool is_shared(const struct lock *l)
{
    return is_signed(l) && is_alive(l, l->me) &&
           atomic_load(word(l->my_readers)) - no_readers(l) - 1 < SHMVIEW_READER_COUNT_MASK;
}

bool lock_is_held(const struct lock *l)
{
    return atomic_load(&l->owner) || is_shared(l);
}

/* Whether the word readers has lost the generation, and with it the count. */
static bool is_overwritten(const struct lock *l)
{
    return (atomic_load(word(l->my_readers)) ^ no_readers(l)) >> SHMVIEW_READER_COUNT_BITS;
}

bool lock_may_be_shared(const struct lock *l)
{
    /* a slot that has ended keeps its count, and has no other user */
    bool is_counted = is_alive(l, l->me) && (!slot_is_mine(l) || !is_lost(l));
    return is_shared(l) ||
           (is_signed(l) && atomic_load(&l->my_group) && (!is_counted || is_overwritten(l)));
}

void lock_take_slot(struct lock *l, uint32_t slot, uint32_t generation, uint32_t v)
{
    l->me = generation << SHMVIEW_SLOT_BITS | slot;
    l->my_readers = &slot_at(l, slot)->readers;
    l->my_life = &l->live->generation[slot];
    l->nested = l->untidy = l->dead = 0;
    atomic_store(&l->owner, NULL);
    atomic_store(&l->my_group, 0);
    atomic_store(&l->epoch, UNSIGNED_EPOCH);
    /* No other client has this id. A word that names it is left from before the generations
     * wrapped. Others would wait for this client, so mark an owner that died and release it. */
    if (owner_of(v) == l->me && owner_of(lock_word(l)) == l->me) {
        distrust_groups(l);
        store_inside(l->control, load_inside(l), l->me);
        release_word(l, lock_word(l));
    }
}

/* Writes the slot. The id is cleared first and written last, with release order. A reader of the
 * status thus finds either no id, or the pid and command that belong to the id. */
static void sign_slot(struct lock *l)
{
    struct shmview_slot *mine = slot_at(l, l->me & SHMVIEW_SLOT_MASK);
    uint32_t generation = l->me >> SHMVIEW_SLOT_BITS;
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
    atomic_store_explicit(word(&mine->id), l->me, memory_order_release);
    STEP(AT_ADOPTED);
    uint32_t unsigned_epoch = UNSIGNED_EPOCH; /* otherwise it was lost in between */
    atomic_compare_exchange_strong(&l->epoch, &unsigned_epoch, process_epoch());
}

int lock_sign(struct lock *l)
{
    DETAILS;
    if (is_lost(l) || !slot_is_mine(l))
        return fail_lost(l);
    if (!is_ready(l))
        sign_slot(l);
    return is_ready(l) ? 0 : fail_lost(l); /* it may have been lost in between */
}

int enter_to_leave(struct lock *l)
{
    return is_lost(l) ? 0 : lock_enter(l);
}
