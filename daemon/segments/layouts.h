/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of one segment, by index. Their views are kept as text only: the daemon checks them
 * once, and after that only clients read them. */
#ifndef DAEMON_LAYOUTS_H
#define DAEMON_LAYOUTS_H

#include <stddef.h>

struct layout {
    char *name;
    size_t at, n; /* where its text lies */
};

struct layouts {
    struct layout *list;
    size_t n;
    /* All of them as JSON, a comma after each. It is kept because writing it takes longer than
     * all else that is done for a request, and every Attach and Describe needs it. */
    char *text;
    size_t text_bytes; /* which is also what the segment's payer is charged */
};

/* Zeroed is empty; owes layouts_deinit(). */
void layouts_deinit(struct layouts *layouts);

/* Adds a copy of a layout: its name, and its text, JSON, n bytes with the NUL. text_bytes grows by
 * n. Returns its index or -ENOMEM. */
int layouts_add(struct layouts *layouts, const char *name, const char *text, size_t n);

/* Takes the last one away; there is one, which was added just now. */
void layouts_drop_last(struct layouts *layouts);

/* The text of all layouts, with commas between them, and of one: *ret_bytes without a NUL. The text
 * is borrowed until a layout is added or taken away. */
const char *layouts_text(const struct layouts *layouts, size_t *ret_bytes);
const char *layouts_text_of(const struct layouts *layouts, const struct layout *layout,
                            size_t *ret_bytes);

/* Returns the one of that name, or of another name with the same hash; or NULL. */
const struct layout *layouts_find(const struct layouts *layouts, const char *name);

#endif
