/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: the text that says what one element is, and what it says.
 *
 * The language is PEP 3118's; shmview/view.h has it in full. */
#ifndef COMMON_FORMAT_H
#define COMMON_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/views/dtype.h"

/* A leaf or a struct within an element. Nodes are in the order of the text, a struct before
 * its fields; offsets are absolute, in the first repetition of every array around. */
struct format_node {
    uint32_t offset;
    uint32_t bytes;  /* of one, without repetition; never 0 */
    uint32_t repeat; /* product of shape */
    uint16_t dtype;  /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint8_t depth;   /* 0: the element's own */
    uint8_t ndim;
    uint16_t name_at; /* in the canonical text */
    uint16_t name_bytes;
    uint32_t shape[SHMVIEW_MAX_NDIM];
};

/* Immutable. */
struct format {
    uint32_t itemsize; /* never 0 */
    uint32_t
        align; /* power of two; of a struct: its largest field's where all are aligned, else 1 */
    uint32_t dtype; /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t n_nodes;
    const struct format_node *nodes;
    const char *text; /* canonical */
};

struct format_fault {
    size_t at; /* index of the character at fault */
    char why[120];
};

/* Formats that were asked for, each once. Zeroed is empty; owes formats_deinit(). Not
 * locked. */
struct formats {
    struct kept_format *first;
};
void formats_deinit(struct formats *pool);

/* Returns what text (NUL-terminated, not trusted) means: static, or of the pool and as
 * long-lived. NULL on failure; ret_fault->why is "" where memory was short. */
const struct format *formats_get(struct formats *pool, const char *text,
                                 struct format_fault *ret_fault);

/* The format of one component of f: without its array, with its bytes. Returns it as
 * formats_get() does; NULL if memory is short. */
const struct format *formats_get_node(struct formats *pool, const struct format *f, uint32_t node);

/* The direct component called name, or the only one if name is NULL and it has no name.
 * Returns its index in nodes, or -1. */
int format_find(const struct format *f, const char *name);

/* What people call it: "float32" rather than "f". Lives as long as f. */
const char *format_name(const struct format *f);

#endif
