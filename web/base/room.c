/* SPDX-License-Identifier: Apache-2.0 */
#include "web/base/room.h"

void room_init(struct room *r, size_t most)
{
    r->most = most;
    atomic_init(&r->used, 0);
}

bool room_take(struct room *r, size_t bytes, struct hold *hold)
{
    size_t used = atomic_load(&r->used);
    do {
        if (bytes > r->most - used)
            return false;
    } while (!atomic_compare_exchange_weak(&r->used, &used, used + bytes));
    hold->room = r;
    hold->bytes += bytes;
    return true;
}

void hold_end(struct hold *hold)
{
    if (hold->room)
        atomic_fetch_sub(&hold->room->used, hold->bytes);
    *hold = (struct hold){.room = NULL};
}
