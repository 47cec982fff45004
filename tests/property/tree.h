/* SPDX-License-Identifier: Apache-2.0 */
/* Formats as trees: made at random, written as text, and evaluated by the documented rules, without
 * the parser. */
#ifndef PROPERTY_TREE_H
#define PROPERTY_TREE_H

#include <shmview/element.h>

#include "choices.h"

#define TREE_PARTS      24
#define TREE_NAME_BYTES 12
#define TREE_NONE       UINT32_MAX

struct part {
    char mark;       /* written before the part; 0: none */
    bool mark_late;  /* written after the array shape, as numpy does */
    bool is_complex; /* Z before the letter */
    char letter;     /* 'T': a struct, 'x': padding */
    uint64_t count;  /* of s, p, x: the length; otherwise one more dimension. 0: not written */
    uint32_t ndim;
    uint32_t shape[SHMVIEW_MAX_NDIM];
    uint32_t child, next; /* TREE_NONE: none */
    char name[TREE_NAME_BYTES];
};

struct tree {
    uint32_t n_parts;
    struct part parts[TREE_PARTS]; /* parts[0] is the first part of the element */
};

/* The meaning of a tree, or of a text by the parser's result. Numbers are cut at 2^40. */
struct meaning_part {
    uint64_t offset, bytes, repeat, shape[SHMVIEW_MAX_NDIM];
    uint32_t dtype, depth, ndim;
    char name[64];
    uint32_t align; /* of a leaf; unknown for a text */
};
struct meaning {
    uint64_t itemsize;
    uint32_t align, dtype, n_parts;
    uint32_t least_align; /* that a view requires: align, or 1 if no leaf in mode @ wants its own */
    bool has_too_many;    /* some part has too many dimensions: not a valid format */
    struct meaning_part parts[64];
};

void tree_generate(struct tree *tree, struct choices *from);

/* Writes the tree, cut if it does not fit. Returns the length of the text. */
size_t tree_write(const struct tree *tree, char *ret_text, size_t bytes);

/* Sets dtype. If the element is a single struct, its parts become those of the element. */
void meaning_unwrap(struct meaning *m);

/* Computes the meaning of the tree. All of it is zero if an element has no bytes, which is no valid
 * format. */
void tree_evaluate(const struct tree *tree, struct meaning *ret);

#endif
