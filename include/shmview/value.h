/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/value.h - one element whose type is known only at run time, given its address.
 *
 * The address may be anywhere: in a segment, or in memory that shmview does not know. It need
 * not be aligned. element.h has the access for types that the program knows, view.h the access by
 * view and index. shmview_format_parse() of view.h finds a type by its name.
 *
 * Nothing here allocates, blocks, takes a lock or talks to the daemon. Any thread; after a fork
 * everything works in the child. */
#ifndef SHMVIEW_VALUE_H
#define SHMVIEW_VALUE_H

#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Values --------------------------------------------------------------- */

enum shmview_value_kind {
    SHMVIEW_VALUE_STRUCT = 0,  /* bytes: a struct as it is; shmview_part_next() finds its fields */
    SHMVIEW_VALUE_BYTES = 1,   /* bytes: text */
    SHMVIEW_VALUE_BOOL = 2,    /* i: 0 or 1 */
    SHMVIEW_VALUE_INT = 3,     /* i */
    SHMVIEW_VALUE_UINT = 4,    /* u */
    SHMVIEW_VALUE_REAL = 5,    /* z[0] */
    SHMVIEW_VALUE_COMPLEX = 6, /* z[0] is the real part, z[1] the imaginary part */
};

/* The value of an element, exactly. Plain data. */
struct shmview_value {
    uint32_t kind;    /* enum shmview_value_kind */
    uint32_t n_bytes; /* how many there are at bytes */
    union {
        int64_t i;
        uint64_t u;
        long double z[2];
        const void *bytes; /* borrowed: they lie where they were loaded from */
    };
};

/* The kind of value that elements of a type have. dtype is an enum shmview_dtype and may have
 * SHMVIEW_SWAPPED, here as in all calls below. Never fails: what is no type has the kind
 * SHMVIEW_VALUE_STRUCT. */
int shmview_dtype_kind(uint32_t dtype);

/* The name of a type: "int16", "float8_e4m3fn", "struct". Static. NULL if dtype is no type. */
const char *shmview_dtype_name(uint32_t dtype);

/* Loads the element at p, whose value has the kind of its type. Text of SHMVIEW_CHAR and
 * SHMVIEW_BYTES has itemsize bytes; text of SHMVIEW_PASCAL has as many as its length byte
 * says, cut to itemsize - 1. Numbers have the size of their type, and ignore itemsize. Never
 * fails. */
void shmview_value_load(uint32_t dtype, uint32_t itemsize, const void *p,
                        struct shmview_value *ret);

/* Stores a value into the element at p, by the rules of "One element" in view.h: the kind of the
 * value need not be that of the type. Text may be shorter than the element, which is then filled
 * with zeros; that of SHMVIEW_CHAR and the bytes of a struct must have its size.
 * Returns 0, or -SHMVIEW_ERR_CONVERSION: no element of the type has this value, and nothing is
 * stored. The text names value and type. */
int shmview_value_store(uint32_t dtype, uint32_t itemsize, const struct shmview_value *value,
                        void *p);

/* --- Parts of a struct ---------------------------------------------------- */

struct shmview_format;
struct shmview_component;

/* A part of an element: the whole of it, a field, an array or an element of an array. The parts
 * of an array are as many as its first dimension is long, and are arrays of its other dimensions;
 * those of a struct are its fields. A part that is neither has a value.
 * Plain data, valid as long as the components. */
struct shmview_part {
    const struct shmview_component *component; /* name and type; NULL: the whole element */
    uint32_t offset;                           /* bytes from the beginning of the element */
    uint32_t nbytes;
    uint32_t dtype; /* SHMVIEW_STRUCT: has fields; of an array: what its elements are */
    uint32_t is_array;
    uint32_t n_parts;   /* 0 if it has a value */
    uint32_t index;     /* among the parts of the struct or array that it is a part of */
    uint32_t dimension; /* of the component's array: how many have an index */
    uint32_t reserved;
    const struct shmview_component *fields, *end; /* the components of the fields */
};

/* Sets *ret to the whole of an element. format and components are what shmview_format_parse() has
 * returned, all of the components; these are borrowed by *ret and its parts. An element of several
 * types without T{} is a struct; so is "3f", whose only field is an array. Never fails. */
void shmview_part_of(const struct shmview_format *format,
                     const struct shmview_component *components, struct shmview_part *ret);

/* Steps through the parts of whole: *part becomes the part after *part, or the first one if
 * part->component is NULL. Returns 1; or 0 after the last one, and *part does not change. */
int shmview_part_next(const struct shmview_part *whole, struct shmview_part *part);

#ifdef __cplusplus
}
#endif
#endif
