/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: the text that describes one element, and its parsed form. The language is that of PEP
 * 3118; shmview/view.h documents it.
 *
 * A format is parsed once and kept in a pool. Equal formats of a pool are one object, so that views
 * of the same type share it. Formats of the base types are static and need no memory. Each format
 * has one canonical text: programs compare formats by comparing these texts. */
#ifndef COMMON_FORMAT_H
#define COMMON_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/views/dtype.h"

/* One component of an element: a base type (a leaf) or a struct. Nodes are in the order of the
 * text, a struct before its fields. An offset counts from the beginning of the element. If the
 * component is within arrays, it is the offset in the first entry of each. */
struct format_node {
    uint32_t offset;
    uint32_t bytes;  /* of one entry of the array; never 0 */
    uint32_t repeat; /* entries of the array: the product of shape, 1 if it is not an array */
    uint16_t dtype;  /* enum shmview_dtype, perhaps with SHMVIEW_SWAPPED; SHMVIEW_STRUCT is 0 */
    uint8_t depth;   /* number of structs around; 0: a direct component of the element */
    uint8_t ndim;
    uint16_t name_at; /* in the canonical text */
    uint16_t name_bytes;
    uint32_t shape[SHMVIEW_MAX_NDIM];
};

/* A parsed format; never changes.
 *
 * A format whose leaves all have a mark other than '@' comes in two forms. Elements of the free
 * form may begin at any byte. view_settle() replaces it by the aligned form for a view whose
 * elements happen to be aligned, so that fast access is possible. A format with a leaf in mode '@'
 * has only the aligned form. So does a format whose alignment is 1, which needs no other. */
struct format {
    uint32_t itemsize; /* never 0 */
    uint32_t align;    /* a power of two; see alignment() in format.c for structs */
    uint32_t dtype;    /* enum shmview_dtype, perhaps with SHMVIEW_SWAPPED */
    uint32_t n_nodes;
    const struct format_node *nodes;
    const char *text; /* canonical; that of the free form parses as the free form */
    const struct format
        *aligned; /* of the free form, whose align is 1: the other form; else NULL */
};

/* Why a text is not a format. */
struct format_fault {
    size_t at; /* index of the character at fault */
    char why[120];
};

/* A pool: owns the formats that were requested, each once. A struct of zeroes is empty and valid.
 * Has no lock: its owner must serialise calls. */
struct formats {
    struct kept_format *first;
};
/* Frees all formats of the pool. */
void formats_deinit(struct formats *pool);

/* Returns the aligned form of f, whose text and alignment do not depend on marks. */
static inline const struct format *format_aligned(const struct format *f)
{
    return f->aligned ? f->aligned : f;
}

/* Parses text, which ends with a NUL and need not be trusted. Returns a format that lives as long
 * as the pool. Returns NULL with *ret_fault on failure; its `why` is "" if memory was short. */
const struct format *formats_get(struct formats *pool, const char *text,
                                 struct format_fault *ret_fault);

/* Returns the format of one component of f, or of one entry if the component is an array. It has
 * the free form if there is one, because a component of a packed struct may begin at any byte. It
 * lives as long as the pool. Returns NULL if memory is short. */
const struct format *formats_get_node(struct formats *pool, const struct format *f, uint32_t node);

/* Finds the direct component called name. If name is NULL, finds the only direct component,
 * provided that it has no name. Returns its index in nodes, or -1. */
int format_find(const struct format *f, const char *name);

/* Returns a name for messages: "float32" for "f". It lives as long as f. */
const char *format_name(const struct format *f);

#endif
