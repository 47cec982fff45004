/* SPDX-License-Identifier: Apache-2.0 */
/* An object of known members, struct <-> JSON, by a table: one row a member. This reads;
 * fields_text.h writes.
 *
 * Strings that are read are borrowed from the JSON value. */
#ifndef COMMON_FIELDS_H
#define COMMON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <shmview/element.h>

#define FIELDS_ABSENT ((int64_t)-1) /* an optional integer that is not there; 0 if it is narrow */

enum field_kind {
    FIELD_STRING, /* const char * */
    FIELD_INT,    /* int64_t; or uint32_t if it is narrow, as BOOL and ENUM may be too */
    FIELD_BOOL,   /* bool */
    FIELD_ENUM,   /* int64_t: 1 for the first name; 0 for absent */
    FIELD_SET,    /* int64_t: bit 0 for the first name of an enum, bit 1 for the second ... */
    FIELD_OBJECT, /* a struct, in place */

    /* An array of at most SHMVIEW_MAX_NDIM int64_t, in place, and its uint32_t count. A required
     * member sets the count; an optional one that is there must have as many. */
    FIELD_INTS,

    /* A pointer to an array that is new when read, and its size_t count; the pointer is NULL
     * where the member is optional and absent. */
    FIELD_OBJECTS, /* of structs */
    FIELD_STRINGS, /* of const char * */
    FIELD_LIST,    /* of pointers to structs; when read, one allocation has all of them */
};

struct field {
    const char *name; /* NULL ends a table */
    enum field_kind kind;
    bool optional;
    bool narrow;
    size_t offset;            /* of the member in its struct */
    size_t present;           /* INT, INTS: of a bool "is there", or 0 */
    size_t count;             /* INTS, OBJECTS, LIST, STRINGS: of the count */
    const char *const *enums; /* ENUM, SET: names of 1, 2, 3, then NULL */
    const struct field *of;   /* OBJECT, OBJECTS, LIST: their table */
    size_t of_bytes;          /* OBJECTS, LIST: size of one */
    int64_t min, max;         /* INT: range; STRING: max bytes; arrays: max count;
                                 min of STRINGS: max bytes of each */
    const void *blank;        /* OBJECTS, LIST: what each is before it is read; NULL: zeroes */
};

#define FIELDS_END                                                                                 \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Whether the member of struct type is a uint32_t: for .narrow. */
#define FIELD_IS_NARROW(type, member) (sizeof(((struct type *)NULL)->member) == sizeof(uint32_t))

/* The number of an INT, BOOL or ENUM in the struct at base. */
static inline int64_t field_load(const struct field *f, const void *base)
{
    const void *at = (const char *)base + f->offset;
    if (f->narrow)
        return *(const uint32_t *)at;
    return f->kind == FIELD_BOOL ? *(const bool *)at : *(const int64_t *)at;
}

static inline void field_store(const struct field *f, void *base, int64_t value)
{
    void *at = (char *)base + f->offset;
    if (f->narrow)
        *(uint32_t *)at = (uint32_t)value;
    else if (f->kind == FIELD_BOOL)
        *(bool *)at = value;
    else
        *(int64_t *)at = value;
}

/* The member at fault, as a path ("layout.views[3].shape"), and what is wrong. */
struct wire_fault {
    bool no_memory; /* nothing is wrong, but memory is short */
    char parameter[160];
    char reason[200];
};

__attribute__((format(printf, 3, 4))) int
wire_fault_set(struct wire_fault *fault, const char *parameter, const char *format, ...);
/* Memory is short. Returns -1. */
int wire_fault_memory(struct wire_fault *fault, const char *parameter);
/* Puts the name of the outer member before the path of the inner one. Returns -1. */
int wire_fault_nest(struct wire_fault *fault, const char *outer);

/* Reads json (NULL: an empty object) into *ret. Optional members that are absent
 * or null leave what *ret holds. strict refuses members without a row. Arrays
 * that were allocated before a fault are in *ret: the caller frees them.
 * Returns 0 or -1 with *fault. */
int fields_read(const json_t *json, const struct field *fields, bool strict, void *ret,
                struct wire_fault *fault);

#endif
