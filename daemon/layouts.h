/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of one segment, by index. */
#ifndef DAEMON_LAYOUTS_H
#define DAEMON_LAYOUTS_H

#include "common/wire.h"

struct layouts {
    struct wire_layout *list; /* strings and views owned */
    size_t n;
    /* All of them as JSON with commas between them. It is kept because writing it takes longer than
     * all else that is done for a request, and every Attach and Describe needs it. */
    char *text;
    size_t text_bytes;
    size_t last_at; /* where the last one begins, its comma included */
};

/* Zeroed is empty; owes layouts_deinit(). */
void layouts_deinit(struct layouts *layouts);

/* Adds a copy. Returns its index or -ENOMEM. */
int layouts_add(struct layouts *layouts, const struct wire_layout *layout);

/* Takes the last one away; there is one, which was added just now. */
void layouts_drop_last(struct layouts *layouts);

/* The text of all, and of the last one. Borrowed until one is added or taken away. */
struct wire_text layouts_text(const struct layouts *layouts);
struct wire_text layouts_text_of_last(const struct layouts *layouts);

/* Returns the one of that name, or of another name with the same hash; or NULL. */
const struct wire_layout *layouts_find(const struct layouts *layouts, const char *name);

#endif
