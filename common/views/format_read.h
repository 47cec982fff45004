/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of formats, and the writer of the canonical form. */
#ifndef COMMON_FORMAT_READ_H
#define COMMON_FORMAT_READ_H

#include "common/views/format.h"

/* Structs that may be taken off again: they count for no limit in the end. */
#define FORMAT_BRACES (LIMIT_FORMAT_DEPTH + 1)

/* What a format says. Names lie in the text that was read, or in the canonical one. */
struct format_tree {
    uint32_t itemsize;
    uint32_t n;
    struct format_node nodes[LIMIT_FORMAT_NODES + FORMAT_BRACES];
};

/* Reads text. At the top level no padding is added behind the last component, as in
 * Python's struct; a T{} around everything is taken off. Returns 0 or -1 with *fault. */
int format_read(const char *text, struct format_tree *ret, struct format_fault *fault);

/* Whether the tree is one component without a name that fills the element. */
bool format_is_plain(const struct format_tree *tree);

/* T{...} around everything says nothing: takes it off. */
void format_take_braces_off(struct format_tree *tree);

/* Writes the canonical text. Names, which lie in from, are found in it from now on.
 * Returns 0, or -1 if the text is too long. */
int format_write(struct format_tree *tree, const char *from, char text[SHMVIEW_FORMAT_BYTES]);

#endif
