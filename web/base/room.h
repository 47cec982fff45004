/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of bytes that are held at the same time. Any thread may use a room at any time. */
#ifndef WEB_ROOM_H
#define WEB_ROOM_H

#include <stdatomic.h>

#include "web/base/base.h"

struct room {
    size_t most;
    atomic_size_t used;
};

/* Bytes of a room. A struct of zeroes holds none. */
struct hold {
    struct room *room;
    size_t bytes;
};

/* Makes an empty room. */
void room_init(struct room *r, size_t most);

/* Adds bytes to what *hold has. Returns false, and changes nothing, if the room has less left. Only
 * one thread may use a hold. */
bool room_take(struct room *r, size_t bytes, struct hold *hold);
/* Gives all bytes back. */
void hold_end(struct hold *hold);

#endif
