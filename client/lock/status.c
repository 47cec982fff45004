/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of holders, waiters and deaths.
 *
 * The functions read without the lock what other clients wrote about themselves. Any client with
 * write access can write something false there. So the result is for people, and no code of the
 * library decides by it. */
#include <string.h>

#include "client/lock/word.h"
#include "common/base/name.h"
#include "common/base/util.h"

/* Copies the pid and the command that the client with this id wrote into its slot. Refuses slots
 * that were never used, because they may have no memory. Returns whether the slot has this id. */
static bool read_slot(const struct lock *l, uint32_t slot_number, uint32_t id, uint32_t *ret_pid,
                      char ret_command[16])
{
    uint32_t high = atomic_load_explicit(const_word(&l->live->high), memory_order_acquire);
    if (slot_number >= high || slot_number >= SHMVIEW_SLOTS_MAX)
        return false;
    const struct shmview_slot *slot = slot_at(l, slot_number);
    if (atomic_load_explicit(const_word(&slot->id), memory_order_acquire) != id)
        return false;
    *ret_pid = slot->pid;
    command_copy(ret_command, slot->command);
    return true;
}

/* Copies the daemon's record of the last owner that died inside. Returns whether the record is of
 * the owner with this id. */
static bool read_death(const struct lock *l, uint32_t id, struct shmview_death *death)
{
    const struct shmview_liveness_death *d = &l->live->owner;
    if (atomic_load_explicit(const_word(&d->id), memory_order_acquire) != id)
        return false;
    death->pid = d->pid;
    death->when_ns = (int64_t)d->when_ns;
    memcpy(death->command, d->command, sizeof death->command);
    return true;
}

uint32_t phase_generation(const struct lock *l)
{
    struct shmview_control *c = l->control;
    return c ? (uint32_t)atomic_load_explicit(word64(&c->phase), memory_order_acquire) : 0;
}

int shmview_owner_died(struct shmview_segment *segment, struct shmview_death *ret_death)
{
    struct lock *l = lock_of(segment);
    int r = lock_enter(l);
    if (r)
        return r;
    if (!held_by_me(l))
        return fail_not_owner(l);
    uint32_t id = l->dead;
    struct shmview_death death = {.slot = id & SHMVIEW_SLOT_MASK};
    if (id) {
        if (!read_death(l, id, &death))
            read_slot(l, death.slot, id, &death.pid, death.command);
        death.phase = phase_generation(l);
    }
    *ret_death = death;
    return 0;
}

/* --- Status -------------------------------------------------------------- */

/* Counts the party, and stores it if the caller's array has room. */
static void add_party(struct shmview_lock_status *status, const struct shmview_lock_party *party,
                      struct shmview_lock_party *parties, size_t room)
{
    if (status->n_parties < room)
        parties[status->n_parties] = *party;
    status->n_parties++;
}

/* Adds the parties of one slot: its client can hold the lock, share it, and wait, each in another
 * thread. Skips slots whose client is dead or has not signed. */
static void peek_slot(const struct lock *l, uint32_t number, uint32_t owner, int64_t held_since,
                      struct shmview_lock_status *status, struct shmview_lock_party *parties,
                      size_t room)
{
    struct shmview_slot *slot = slot_at(l, number);
    uint32_t generation =
        atomic_load_explicit(const_word(&l->live->generation[number]), memory_order_acquire) &
        ~SHMVIEW_GENERATION_ENDED;
    uint32_t id = generation << SHMVIEW_SLOT_BITS | number;
    struct shmview_lock_party party = {.slot = number};
    if (!generation || generation & SHMVIEW_GENERATION_DEAD ||
        !read_slot(l, number, id, &party.pid, party.command))
        return;
    if (id == owner) {
        party.role = SHMVIEW_HOLDS;
        party.since_ns = held_since;
        add_party(status, &party, parties, room);
    }
    uint32_t v = atomic_load_explicit(word(&slot->readers), memory_order_relaxed);
    if (v & SHMVIEW_READER_COUNT_MASK && v >> SHMVIEW_READER_COUNT_BITS == generation) {
        party.role = SHMVIEW_HOLDS_SHARED;
        party.since_ns = 0;
        add_party(status, &party, parties, room);
    }
    uint32_t waits = atomic_load_explicit(word(&slot->waits), memory_order_acquire);
    if (waits == SHMVIEW_WAITS_EXCLUSIVE || waits == SHMVIEW_WAITS_SHARED) {
        party.role = waits == SHMVIEW_WAITS_SHARED ? SHMVIEW_WAITS_TO_SHARE : SHMVIEW_WAITS;
        party.since_ns =
            (int64_t)atomic_load_explicit(word64(&slot->since_ns), memory_order_relaxed);
        add_party(status, &party, parties, room);
    }
}

int shmview_lock_query(struct shmview_segment *segment, struct shmview_lock_status *ret_status,
                       struct shmview_lock_party *ret_parties, size_t n)
{
    struct lock *l = lock_of(segment);
    int r = lock_enter(l);
    if (r)
        return r;
    struct shmview_control *c = l->control;
    struct shmview_lock_status status = {0};
    uint64_t inside = load_inside(l);
    uint32_t owner = owner_of(atomic_load(word(&c->lock)));
    uint32_t high = atomic_load_explicit(const_word(&l->live->high), memory_order_acquire);
    int64_t since = 0;
    if (atomic_load_explicit(word64(&c->held_version), memory_order_acquire) == inside)
        since = (int64_t)atomic_load_explicit(word64(&c->held_since_ns), memory_order_relaxed);
    status.is_held = owner != 0;
    status.owner_is_dead = owner && !is_alive(l, owner);
    status.is_dirty = who_inside(inside) != 0;
    status.is_held_here = lock_is_held(l);
    for (uint32_t i = 0; i < high && i < SHMVIEW_SLOTS_MAX; i++)
        peek_slot(l, i, owner, since, &status, ret_parties, n);
    *ret_status = status;
    return 0;
}
