/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/value.h - one element whose type is known only at run time, given its
 * address.
 *
 * element.h has the access for types that the program knows when it is compiled,
 * and view.h the access by view and index. The calls here take an address
 * instead, which may be anywhere: in a segment, or in memory that shmview does
 * not know. It need not be aligned. They are for programs that read, print or set
 * elements of any type, such as interpreters and shmviewctl.
 * shmview_format_parse() of view.h finds a type by its name.
 *
 *     struct shmview_value value;
 *     shmview_value_load(view.dtype, view.itemsize, address, &value);
 *     if (value.kind == SHMVIEW_VALUE_INT)
 *         printf("%" PRId64 "\n", value.i);
 *
 * A value is exact: it can represent every number of every type. A struct has no
 * single value; its parts do, and shmview_part_next() finds them.
 *
 * Nothing here allocates, blocks, takes a lock or asks the daemon: hold the
 * segment's lock. Any thread may call, and everything works in a forked child. */
#ifndef SHMVIEW_VALUE_H
#define SHMVIEW_VALUE_H

#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Values --------------------------------------------------------------- */

/* Which member of struct shmview_value has the value. */
enum shmview_value_kind {
    SHMVIEW_VALUE_STRUCT = 0,  /* bytes: a struct, unchanged */
    SHMVIEW_VALUE_BYTES = 1,   /* bytes: text */
    SHMVIEW_VALUE_BOOL = 2,    /* i: 0 or 1 */
    SHMVIEW_VALUE_INT = 3,     /* i */
    SHMVIEW_VALUE_UINT = 4,    /* u */
    SHMVIEW_VALUE_REAL = 5,    /* z[0] */
    SHMVIEW_VALUE_COMPLEX = 6, /* z[0] is the real part, z[1] the imaginary part */
};

/* The value of an element. Plain data, which needs no release. */
struct shmview_value {
    /* enum shmview_value_kind. */
    uint32_t kind;
    /* The length of bytes; 0 for numbers. */
    uint32_t n_bytes;
    union {
        int64_t i;
        uint64_t u;
        long double z[2];
        /* Borrowed from the memory that the value was loaded from: valid as long
         * as that is. */
        const void *bytes;
    };
};

/* Returns the kind of value that elements of a type have. dtype is an enum
 * shmview_dtype and may have SHMVIEW_SWAPPED, as in all calls below. Returns
 * SHMVIEW_VALUE_STRUCT for a number that is no type. Never fails. */
int shmview_dtype_kind(uint32_t dtype);

/* Returns the name of a type, such as "int16", "float8_e4m3fn" or "struct", or
 * NULL for a number that is no type. The string is static. Never fails. */
const char *shmview_dtype_name(uint32_t dtype);

/* Loads the element at p. The value has the kind of its type. itemsize is the
 * size of a struct or a string; numbers have the size of their type and ignore
 * it. Text of SHMVIEW_CHAR and SHMVIEW_BYTES has itemsize bytes. Text of
 * SHMVIEW_PASCAL has as many bytes as its length byte gives, but at most itemsize
 * - 1, because another program may have written a wrong length. Never fails. */
void shmview_value_load(uint32_t dtype, uint32_t itemsize, const void *p,
                        struct shmview_value *ret);

/* Stores a value in the element at p, by the rules of "One element" in view.h.
 * The kind of the value need not be that of the type. Text may be shorter than
 * the element, which is then filled with zeros. Text for SHMVIEW_CHAR and bytes
 * for a struct must have exactly its size.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_CONVERSION and stores nothing if no
 * element of the type has this value; the text names value and type. */
int shmview_value_store(uint32_t dtype, uint32_t itemsize, const struct shmview_value *value,
                        void *p);

/* --- Parts of a struct ---------------------------------------------------- */

struct shmview_format;
struct shmview_component;

/* A part of an element: the whole element, a field, an array, or an element of an
 * array.
 *
 * The parts of a struct are its fields. The parts of an array are as many as its
 * first dimension is long; each is an array of the other dimensions, or an
 * element if there are none. A part that is neither a struct nor an array has a
 * value: load it from the address of the element plus offset. Plain data, valid
 * as long as the components from shmview_format_parse(). */
struct shmview_part {
    /* Has the name and the type; NULL: the whole element. */
    const struct shmview_component *component;
    uint32_t offset; /* bytes from the beginning of the element */
    uint32_t nbytes;
    /* enum shmview_dtype; of an array the type of its elements. SHMVIEW_STRUCT
     * has fields. */
    uint32_t dtype;
    uint32_t is_array;
    uint32_t n_parts; /* 0 if it has a value */
    /* Its number in the struct or array to which it belongs. */
    uint32_t index;
    /* How many dimensions of the component's array have an index already. */
    uint32_t dimension;
    uint32_t reserved;
    /* For the library: the components of the fields. */
    const struct shmview_component *fields, *end;
};

/* Sets *ret to the whole of an element. format and components are those that
 * shmview_format_parse() has filled, with room for all n_components; *ret and its
 * parts borrow them. An element of several components without T{} is a struct,
 * and so is "3f", whose only field is an array. Never fails. */
void shmview_part_of(const struct shmview_format *format,
                     const struct shmview_component *components, struct shmview_part *ret);

/* Steps through the parts of whole. Sets *part to the part after *part, or to the
 * first one if part->component is NULL:
 *
 *     struct shmview_part part = {.component = NULL};
 *     while (shmview_part_next(&whole, &part))
 *         printf("%s at byte %u\n", part.component->name, part.offset);
 *
 * Returns 1 if there is such a part, or 0 after the last one, which leaves *part
 * as it is. Never fails. */
int shmview_part_next(const struct shmview_part *whole, struct shmview_part *part);

#ifdef __cplusplus
}
#endif
#endif
