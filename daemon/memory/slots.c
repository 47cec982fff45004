/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/slots.h"

#include <errno.h>
#include <stdlib.h>

#include <shmview/layout.h>

_Static_assert(SHMVIEW_SLOTS_MAX <= UINT16_MAX, "slots and their number fit");
_Static_assert(sizeof(struct slots) == 16, "two words in each segment");

void slots_deinit(struct slots *slots)
{
    if (slots->high > 1)
        free(slots->many);
    *slots = (struct slots){.high = 0};
}

/* How many entries are allocated for this many slots, if they are more than one. */
static uint32_t capacity_for(uint32_t high)
{
    uint32_t capacity = 4;
    while (capacity < high)
        capacity *= 2;
    return capacity;
}

/* Makes room for one more slot than there are. Returns 0 or -ENOMEM. */
static int make_room(struct slots *slots)
{
    const uint32_t high = slots->high;
    if (high == 0 || (high > 1 && high < capacity_for(high)))
        return 0;
    struct slot_entry *old = high > 1 ? slots->many : NULL;
    struct slot_entry *many = realloc(old, capacity_for(high + 1) * sizeof *many);
    if (!many)
        return -ENOMEM;
    if (!old)
        many[0] = slots->one;
    slots->many = many;
    return 0;
}

int slots_take(struct slots *slots, uint32_t *ret_slot, uint32_t *ret_generation)
{
    uint32_t slot;
    if (slots->n_used < slots->high) {
        slot = slots->head;
        slots->head = (uint16_t)slots_entry(slots, slot)->next;
    } else {
        if (slots->high == SHMVIEW_SLOTS_MAX)
            return -ENOSPC;
        if (make_room(slots))
            return -ENOMEM;
        slot = slots->high++;
        slots_entry(slots, slot)->generation = 0;
    }
    struct slot_entry *e = slots_entry(slots, slot);
    e->generation = (e->generation + 1) & SHMVIEW_GENERATION_MASK;
    if (e->generation == 0)
        e->generation = 1; /* 0 means that the slot was never used */
    slots->n_used++;
    *ret_slot = slot;
    *ret_generation = e->generation;
    return 0;
}

int slots_restore(struct slots *slots, const uint32_t *generations, uint32_t high)
{
    struct slot_entry *many =
        high > 1 ? malloc(capacity_for(high) * sizeof(struct slot_entry)) : NULL;
    if (high > 1 && !many)
        return -ENOMEM;
    *slots = (struct slots){.high = (uint16_t)high, .n_used = (uint16_t)high};
    if (many)
        slots->many = many;
    for (uint32_t i = 0; i < high; i++)
        *slots_entry(slots, i) =
            (struct slot_entry){generations[i] & SHMVIEW_GENERATION_MASK, SLOT_UNCLAIMED};
    for (uint32_t i = 0; i < high; i++)
        if (generations[i] == 0 || generations[i] & SHMVIEW_GENERATION_DEAD)
            slots_give(slots, i);
    return 0;
}

void slots_give(struct slots *slots, uint32_t slot)
{
    if (slots->n_used == slots->high)
        slots->head = (uint16_t)slot;
    else
        slots_entry(slots, slots->tail)->next = slot;
    slots->tail = (uint16_t)slot;
    slots->n_used--;
}
