/* SPDX-License-Identifier: Apache-2.0 */
/* Formats as trees: made at random, written as text, and evaluated by the book. Knows
 * nothing of the parser. */
#ifndef PROPERTY_TREE_H
#define PROPERTY_TREE_H

#include <shmview/element.h>

#include "choices.h"

#define TREE_PARTS      24
#define TREE_NAME_BYTES 12
#define TREE_NONE       UINT32_MAX

struct part {
    char mark;       /* written before it; 0: none */
    bool mark_late;  /* written after the array, as numpy does */
    bool is_complex; /* Z before the letter */
    char letter;     /* 'T': a struct, 'x': padding */
    uint64_t count;  /* of s, p, x: the length; else one more dimension. 0: not written */
    uint32_t ndim;
    uint32_t shape[SHMVIEW_MAX_NDIM];
    uint32_t child, next; /* TREE_NONE: none */
    char name[TREE_NAME_BYTES];
};

struct tree {
    uint32_t n_parts;
    struct part parts[TREE_PARTS]; /* the first of the element is parts[0] */
};

/* What a tree means, or what a parser says that a text means. Numbers are cut at 2^40. */
struct meaning_part {
    uint64_t offset, bytes, repeat, shape[SHMVIEW_MAX_NDIM];
    uint32_t dtype, depth, ndim;
    char name[64];
    uint32_t align; /* of a leaf; not known of a text */
};
struct meaning {
    uint64_t itemsize;
    uint32_t align, dtype, n_parts;
    bool has_too_many; /* dimensions, somewhere: no format */
    struct meaning_part parts[64];
};

void tree_generate(struct tree *tree, struct choices *from);

/* Returns the length of the text, which is cut where it does not fit. */
size_t tree_write(const struct tree *tree, char *ret_text, size_t bytes);

/* Sets dtype; parts of an element that is nothing but a struct become its own. */
void meaning_unwrap(struct meaning *m);

/* All zero where an element has no bytes: no format. */
void tree_evaluate(const struct tree *tree, struct meaning *ret);

#endif
