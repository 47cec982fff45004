/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of one segment are in use, and their generations.
 *
 * A slot that comes free goes to the back of a queue, and its next user gets the
 * next generation: an id that a stale word still names is used again as late as
 * possible. */
#ifndef DAEMON_SLOTS_H
#define DAEMON_SLOTS_H

#include <stdint.h>

struct slots {
    uint32_t high; /* slots [0, high) have ever been used */
    uint32_t capacity;
    uint32_t n_used;
    uint32_t head, tail; /* of the queue of free ones; valid if n_used < high */
    struct slot_entry {
        uint32_t generation;
        uint32_t next; /* of a taken one: SLOT_UNCLAIMED after slots_restore(), else nothing */
    } * entries;
};

/* Zeroed is empty; owes slots_deinit(). */
void slots_deinit(struct slots *slots);

/* Takes a slot. Returns 0, -ENOSPC if all SHMVIEW_SLOTS_MAX are taken, -ENOMEM. */
int slots_take(struct slots *slots, uint32_t *ret_slot, uint32_t *ret_generation);

#define SLOT_NONE      UINT32_MAX /* no slot */
#define SLOT_UNCLAIMED UINT32_MAX

/* Takes over slots [0, high) as a liveness object shows them: those without
 * SHMVIEW_GENERATION_DEAD are taken. slots is empty. Returns 0 or -ENOMEM. */
int slots_restore(struct slots *slots, const uint32_t *generations, uint32_t high);

/* Gives a taken slot back. */
void slots_give(struct slots *slots, uint32_t slot);

#endif
