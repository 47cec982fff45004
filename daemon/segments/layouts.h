/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of one segment, by index. The daemon keeps them as JSON text only. It checks a layout
 * once, when it is defined; after that only clients read it. An earlier version kept parsed values,
 * and wrote the text for each reply: for the largest segment that took 150 ms.
 *
 * The text is kept in parts of as many layouts as one reply has. With one text for all layouts the
 * kernel moved megabytes when another one was added, which took up to 8 ms of the loop. */
#ifndef DAEMON_LAYOUTS_H
#define DAEMON_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

/* One layout; owned by struct layouts. */
struct layout {
    char *name; /* owned */
    char *part; /* owned: the text of a part, with a comma after each layout, as replies need it;
                 * NULL if the layout is not the first one of its part */
    uint32_t first; /* index of the first layout of its part */
    uint32_t at, n; /* its text is n bytes of the part, from byte `at` on */
};

/* Zeroes are an empty list. */
struct layouts {
    struct layout *list; /* by index */
    uint32_t n;          /* of list */
    uint32_t text_bytes; /* of all parts; the payer of the segment is charged for as many */
};

/* Frees everything and leaves an empty list. */
void layouts_deinit(struct layouts *layouts);

/* Adds a copy of a layout. text is its JSON, n bytes with the NUL; text_bytes grows by n. Returns
 * the index of the layout, or -ENOMEM. */
int layouts_add(struct layouts *layouts, const char *name, const char *text, size_t n);

/* Removes the layout that was added last. There must be one. */
void layouts_drop_last(struct layouts *layouts);

/* Returns the text of layouts with commas between them: from the index `from` on, as many of one
 * part as have at most `most` bytes together, but at least one if there is one. *ret_end is the
 * index after the last of them. The text has *ret_bytes bytes and no NUL, and is borrowed until a
 * layout is added or removed. */
const char *layouts_text(const struct layouts *layouts, size_t from, size_t most, size_t *ret_bytes,
                         size_t *ret_end);
/* Like layouts_text(), for one layout. */
const char *layouts_text_of(const struct layouts *layouts, const struct layout *layout,
                            size_t *ret_bytes);

/* Returns the layout with that name, or with another name of the same hash; or NULL. Clients find
 * layouts by hash, so a segment cannot have two layouts of one hash. */
const struct layout *layouts_find(const struct layouts *layouts, const char *name);

#endif
