/* SPDX-License-Identifier: Apache-2.0 */
/* The base types of elements, and the texts that name them: letters of PEP 3118, names of numpy and
 * DLPack, and numpy's typestrs. */
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
    bool is_ordered;     /* has a byte order: more than one byte, and not a string */
    const char *letters; /* the canonical format; "" if the type has only a name */
    const char *name;    /* of numpy or DLPack */
    const char *typestr; /* of numpy, without the byte order; "" if there is none */
};

/* Returns the facts of a type, which are static. Ignores SHMVIEW_SWAPPED. Returns NULL for
 * SHMVIEW_STRUCT and for a code that is not a type. Strings have one byte here; their length is in
 * the format. */
const struct dtype *dtype_of(uint32_t code);

/* Find a type by its name, or by its typestr without a byte order. Return NULL if there is none. */
const struct dtype *dtype_by_name(const char *text);
const struct dtype *dtype_by_typestr(const char *text);

/* Finds a type by its letter in a format, with native or standard sizes. 'F' and 'D' stand for Zf
 * and Zd. Returns NULL if the letter has no meaning in that mode. */
const struct dtype *dtype_by_letter(char letter, bool native);

#endif
