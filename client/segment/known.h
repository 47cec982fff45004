/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts that a handle knows, by index, and their views, by the hashes of their names.
 *
 * The reply to Attach has the layouts as text, which is read when a layout is looked for first. If
 * that text is long, it has only the names: the views of such a layout are unknown until they are
 * requested (client/views/layouts.c). Layouts cannot be changed or removed, so a known one is never
 * out of date.
 *
 * All threads share it. The caller of each function must hold the details (DETAILS). Changes are
 * made within NOT_FORKED, so that a fork cannot copy half of one. */
#ifndef CLIENT_KNOWN_H
#define CLIENT_KNOWN_H

#include "common/wire/wire_layouts.h"

#pragma GCC visibility push(hidden)

struct known_views;

/* One layout, or a gap: an index that the handle does not know. */
struct known_layout {
    char *name;                /* owned; NULL: a gap */
    struct known_views *views; /* owned; NULL: unknown */
};

/* Zeroes are a handle that knows nothing. */
struct known {
    char *text; /* owned: the array of layouts of the reply to Attach. NULL: read already */
    struct known_layout *list; /* by index; owned */
    size_t n;
    uint8_t *table; /* in the block of list: 2 * room places with index + 1 of a layout, or 0 */
    size_t room;    /* entries of list; a power of two, or 0 */
};

/* Frees everything and leaves zeroes. */
void known_deinit(struct known *known);

/* Reads the text, if there is one. The other functions do not see its layouts before that. Returns
 * 0 or an error, after which the next call tries again. */
int known_read(struct known *known);

/* Adds a layout, with its views if layout->views is not NULL. Takes these, and sets the member to
 * NULL. Copies the strings. Does nothing for a layout that is known with its views. Returns 0 or an
 * error. */
int known_add(struct known *known, size_t index, struct wire_layout *layout);

/* Returns the index of the layout with this name, or -1. */
int known_find(const struct known *known, const char *name);
/* Returns the name of a layout, borrowed while the caller holds the details, or NULL for a gap. */
const char *known_name(const struct known *known, size_t index);
/* Whether the views of the layout are known. */
bool known_has_views(const struct known *known, int index);
/* Returns the name of view i of a layout whose views are known, or NULL if it has not so many.
 * Borrowed like that of a layout. */
const char *known_view_name(const struct known *known, int index, size_t i);
/* Returns a view of a layout whose views are known, or NULL if it has none with this name. Borrowed
 * until known_deinit(). The caller may resolve its description, which then has an item. */
struct wire_view *known_view(const struct known *known, int index, const char *name);

#pragma GCC visibility pop

#endif
