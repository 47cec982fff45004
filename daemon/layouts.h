/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of one segment, by index. */
#ifndef DAEMON_LAYOUTS_H
#define DAEMON_LAYOUTS_H

#include "common/wire.h"

struct layouts {
    struct wire_layout *list; /* strings and views owned */
    size_t n;
};

/* Zeroed is empty; owes layouts_deinit(). */
void layouts_deinit(struct layouts *layouts);

/* Adds a copy. Returns its index or -ENOMEM. */
int layouts_add(struct layouts *layouts, const struct wire_layout *layout);

/* Takes the last one away; there is one. */
void layouts_drop_last(struct layouts *layouts);

/* Returns the one of that name, or NULL. */
const struct wire_layout *layouts_find(const struct layouts *layouts, const char *name);

#endif
