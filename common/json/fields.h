/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a JSON object by a table, with one row for each member: its name, its kind, its place
 * in a struct, and its limits. This module reads an object into the struct; fields_text.h writes
 * one from it, and fields_scan.h reads the most usual reply without jansson.
 *
 *     struct point { int64_t x; const char *label; };
 *     static const struct field point_fields[] = {
 *         {"x", FIELD_INT, false, .offset = offsetof(struct point, x), .max = 100},
 *         {"label", FIELD_STRING, true, .offset = offsetof(struct point, label), .max = 64},
 *         FIELDS_END,
 *     };                                        reads {"x":3} and {"x":3,"label":"a"}
 *
 * One table for both directions keeps reading and writing equal. It also holds the limits of
 * numbers and strings, and lets every error name the member that is wrong.
 *
 * Strings that are read are borrowed from the JSON value, which must live as long as they are used.
 * Tables are constant, and nothing here has state: any thread may call. */
#ifndef COMMON_FIELDS_H
#define COMMON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <shmview/element.h>

/* The value of an optional integer that is absent. A narrow one, which has no sign, is 0 then, and
 * one whose row has `present` has a bool of its own. */
#define FIELDS_ABSENT ((int64_t)-1)

/* What a member is in JSON and in the struct. */
enum field_kind {
    FIELD_STRING, /* const char *; an optional one that is NULL or "" is not written */
    FIELD_INT,    /* int64_t; or uint32_t if it is narrow, as BOOL and ENUM may be too */
    FIELD_BOOL,   /* bool */
    FIELD_ENUM,   /* int64_t: 1 for the first name; 0 for absent */
    FIELD_SET,    /* int64_t: bit 0 for the first name of an enum, bit 1 for the second ... */
    FIELD_OBJECT, /* a struct, in place */

    /* An array of at most SHMVIEW_MAX_NDIM int64_t, in place, and its uint32_t count. A required
     * member sets the count. An optional one shares the count with it and must have as many
     * integers, as strides have with shape. */
    FIELD_INTS,

    /* A pointer to an array that is new when read, and its size_t count. The pointer stays as it
     * was if the member is optional and absent. An optional member is not written if the pointer is
     * NULL (STRINGS: if the count is 0). */
    FIELD_OBJECTS, /* of structs */
    FIELD_IDS,     /* of int64_t; when read, each is 0 or more */
    FIELD_STRINGS, /* of const char * */
    FIELD_LIST,    /* of pointers to structs; when read, one allocation has all of them */
};

/* One row of a table. Members that a kind does not use are 0. A `present` of 0 means that there is
 * no such bool; therefore the bool cannot be the first member of its struct. */
struct field {
    const char *name; /* NULL ends a table */
    enum field_kind kind;
    bool optional;            /* may be absent, or null */
    bool narrow;              /* INT, BOOL, ENUM: a uint32_t in the struct */
    bool if_true;             /* BOOL: false is not written */
    size_t offset;            /* of the member in its struct */
    size_t present;           /* INT, INTS: offset of a bool that is set if it is there; 0: none */
    size_t count;             /* INTS, OBJECTS, IDS, LIST, STRINGS: of the count */
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

/* Returns the number of an INT, BOOL or ENUM in the struct at base. */
static inline int64_t field_load(const struct field *f, const void *base)
{
    const void *at = (const char *)base + f->offset;
    if (f->narrow)
        return *(const uint32_t *)at;
    return f->kind == FIELD_BOOL ? *(const bool *)at : *(const int64_t *)at;
}

/* Stores the number of an INT, BOOL or ENUM, which must fit. */
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

/* Why a message was refused. Both texts are cut if they are too long. */
struct wire_fault {
    bool no_memory;      /* the message may be right, but memory is short */
    char parameter[160]; /* the path of the member: "layout.views[3].shape"; "": the whole */
    char reason[200];    /* the fault; continues the sentence that the path begins */
};

__attribute__((format(printf, 3, 4))) void
wire_fault_fill(struct wire_fault *fault, const char *parameter, const char *format, ...);
/* Fills the fault. Returns -1, so that a reader can return the result of this call. A macro, so
 * that compilers and analyzers see the result. */
#define wire_fault_set(fault, parameter, ...) (wire_fault_fill(fault, parameter, __VA_ARGS__), -1)
/* Sets the fault "out of memory". Returns -1. */
int wire_fault_memory(struct wire_fault *fault, const char *parameter);
/* Puts the name of the outer member before the path of the inner one. Returns -1. */
int wire_fault_nest(struct wire_fault *fault, const char *outer);

/* Reads the members of json, an object, into *ret; NULL counts as an empty object. Optional members
 * that are absent or null leave the values that *ret has, so the caller sets defaults first.
 *
 * strict refuses members that have no row: requests are strict, so that a client learns of an
 * option that this daemon does not know. Replies are not, because a newer daemon may add members.
 *
 * Returns 0, or -1 with *fault. Also after a fault *ret may have arrays that were allocated; the
 * caller frees them. */
int fields_read(const json_t *json, const struct field *fields, bool strict, void *ret,
                struct wire_fault *fault);

#endif
