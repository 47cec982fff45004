/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of formats, and the writer of the canonical form. */
#ifndef COMMON_FORMAT_READ_H
#define COMMON_FORMAT_READ_H

#include "common/views/format.h"

/* Structs around the whole element. They are removed after reading and count for no limit, so the
 * tree has room for them while it is read. */
#define FORMAT_BRACES (LIMIT_FORMAT_DEPTH + 1)

/* A format while it is parsed. The name_at of a node is an index in the text that was read; after
 * format_write() it is an index in the canonical text. */
struct format_tree {
    uint32_t itemsize;
    uint32_t n;
    bool wants_alignment; /* some leaf with an alignment is in mode '@' */
    struct format_node nodes[LIMIT_FORMAT_NODES + FORMAT_BRACES];
};

/* Parses text. As in Python's struct, no padding follows the last component at the top level. A T{}
 * around everything is removed. Returns 0 or -1 with *fault. */
int format_read(const char *text, struct format_tree *ret, struct format_fault *fault);

/* Whether the tree is one component that has no name and fills the element. */
bool format_is_plain(const struct format_tree *tree);

/* Removes each T{...} around the whole element, because it does not change the meaning. */
void format_take_braces_off(struct format_tree *tree);

/* Writes the canonical text of a tree whose names are in `from`, and lets the names point into the
 * new text. Returns 0, or -1 if the text is too long. */
int format_write(struct format_tree *tree, const char *from, char text[SHMVIEW_FORMAT_BYTES]);

/* Writes the text of the free form, and returns true, if it is not the canonical text. That is so
 * for a leaf that is not swapped, and for an array of it: only its free form has a mark. */
bool format_write_free(const struct format_tree *tree, char text[SHMVIEW_FORMAT_BYTES]);

#endif
