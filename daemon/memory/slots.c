/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/slots.h"

#include <errno.h>
#include <stdlib.h>

#include <shmview/layout.h>

void slots_deinit(struct slots *slots)
{
    free(slots->entries);
    *slots = (struct slots){0};
}

static int slots_grow(struct slots *slots)
{
    uint32_t capacity = slots->capacity ? slots->capacity * 2 : 4;
    struct slot_entry *entries = realloc(slots->entries, capacity * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    slots->entries = entries;
    slots->capacity = capacity;
    return 0;
}

int slots_take(struct slots *slots, uint32_t *ret_slot, uint32_t *ret_generation)
{
    uint32_t slot;
    if (slots->n_used < slots->high) {
        slot = slots->head;
        slots->head = slots->entries[slot].next;
    } else {
        if (slots->high == SHMVIEW_SLOTS_MAX)
            return -ENOSPC;
        if (slots->high == slots->capacity && slots_grow(slots))
            return -ENOMEM;
        slot = slots->high++;
        slots->entries[slot].generation = 0;
    }
    struct slot_entry *e = &slots->entries[slot];
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
    struct slot_entry *entries = high ? malloc(high * sizeof *entries) : NULL;
    if (high && !entries)
        return -ENOMEM;
    *slots = (struct slots){.entries = entries, .capacity = high, .high = high, .n_used = high};
    for (uint32_t i = 0; i < high; i++)
        entries[i] = (struct slot_entry){generations[i] & SHMVIEW_GENERATION_MASK, SLOT_UNCLAIMED};
    for (uint32_t i = 0; i < high; i++)
        if (generations[i] == 0 || generations[i] & SHMVIEW_GENERATION_DEAD)
            slots_give(slots, i);
    return 0;
}

void slots_give(struct slots *slots, uint32_t slot)
{
    if (slots->n_used == slots->high)
        slots->head = slot;
    else
        slots->entries[slots->tail].next = slot;
    slots->tail = slot;
    slots->n_used--;
}
