/* SPDX-License-Identifier: Apache-2.0 */
/* Element types that are not made of others, and the texts that name them. */
#ifndef COMMON_DTYPE_H
#define COMMON_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/value.h>

/* A base type, without SHMVIEW_SWAPPED. */
struct dtype {
    uint16_t code; /* enum shmview_dtype */
    uint8_t kind;  /* enum shmview_value_kind */
    uint8_t itemsize;
    uint8_t align;
    bool is_ordered;     /* has a byte order: not one byte, no string */
    const char *letters; /* canonical format, "" where there is only a name */
    const char *name;    /* numpy's or DLPack's */
    const char *typestr; /* numpy's, without the byte order; "" where it has none */
};

/* Facts of a type; SHMVIEW_SWAPPED is ignored. Static; NULL for SHMVIEW_STRUCT and for what
 * is no type. Strings are of one byte here. */
const struct dtype *dtype_of(uint32_t code);

/* The type whose name, or typestr, text is; NULL if there is none. */
const struct dtype *dtype_by_name(const char *text);
const struct dtype *dtype_by_typestr(const char *text);

/* The type that a letter of a format means, in standard or native sizes; NULL if none.
 * letter is 'F' or 'D' for Zf and Zd. */
const struct dtype *dtype_by_letter(char letter, bool native);

#endif
