/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of the lock of one segment are in use, and their generations.
 *
 * An id is a slot and its generation. A word in shared memory may name the id of a client that has
 * died. If a new client got that id, other clients would take it for the owner. Therefore a freed
 * slot goes to the end of a queue, and its next user gets the next generation, so that an id is
 * used again as late as possible.
 *
 * Slots are plain memory of the daemon, used on the loop only. use.c publishes generations and
 * deaths in the liveness object. */
#ifndef DAEMON_SLOTS_H
#define DAEMON_SLOTS_H

#include <stdint.h>

struct slot_entry {
    uint32_t generation;
    /* of a free slot: the next one in the queue. Of a taken slot: SLOT_UNCLAIMED if slots_restore()
     * found it taken and no client has claimed it; otherwise undefined. */
    uint32_t next;
};

/* There may be a hundred thousand of these, of which most have had one slot in use at most. */
struct slots {
    uint16_t high;       /* slots [0, high) have been used at least once */
    uint16_t n_used;     /* slots that are taken now */
    uint16_t head, tail; /* of the queue of free slots; valid if n_used < high */
    union {
        struct slot_entry one;   /* if high is 0 or 1 */
        struct slot_entry *many; /* owned; its capacity follows from high */
    };
};

/* Returns the entry of a slot below high. Borrowed until a slot is taken. */
static inline struct slot_entry *slots_entry(struct slots *slots, uint32_t slot)
{
    return slots->high <= 1 ? &slots->one : &slots->many[slot];
}

/* Frees the entries. A struct of zeroes is empty and valid; its owner owes this call. */
void slots_deinit(struct slots *slots);

/* Takes the slot that has been free longest, or a new one if none is free. Returns 0; -ENOSPC if
 * all SHMVIEW_SLOTS_MAX are taken; or -ENOMEM. */
int slots_take(struct slots *slots, uint32_t *ret_slot, uint32_t *ret_generation);

#define SLOT_NONE      UINT32_MAX /* no slot */
#define SLOT_UNCLAIMED UINT32_MAX

/* Restores slots [0, high) from the generations in a liveness object of an earlier daemon. A slot
 * whose generation is 0 or has SHMVIEW_GENERATION_DEAD is free; the others are taken and unclaimed.
 * slots must be empty. Returns 0 or -ENOMEM. */
int slots_restore(struct slots *slots, const uint32_t *generations, uint32_t high);

/* Gives a taken slot back. */
void slots_give(struct slots *slots, uint32_t slot);

#endif
