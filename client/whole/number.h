/* SPDX-License-Identifier: Apache-2.0 */
/* The value of one element, whatever its type, and what becomes of it in another type.
 *
 * These are the rules of shmview/view.h, "One element", one number at a time. What walks
 * whole rows (convert.h) has the same rules. */
#ifndef CLIENT_NUMBER_H
#define CLIENT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/base/private.h"

#pragma GCC visibility push(hidden)

#define NUMBER_BYTES 32 /* of an element at most, with room to spare */

enum number_kind {
    NUMBER_INT,     /* i */
    NUMBER_UINT,    /* u, above INT64_MAX */
    NUMBER_REAL,    /* z[0]; z[1] is 0 */
    NUMBER_COMPLEX, /* z */
};

struct number {
    enum number_kind kind;
    union {
        int64_t i;
        uint64_t u;
    };
    long double z[2];
};

static inline struct number number_of_int64(int64_t i)
{
    return (struct number){.kind = NUMBER_INT, .i = i};
}
static inline struct number number_of_complex(long double re, long double im)
{
    return (struct number){.kind = NUMBER_COMPLEX, .z = {re, im}};
}
static inline struct number number_of_real(long double x)
{
    return (struct number){.kind = NUMBER_REAL, .z = {x}};
}

/* Whether elements of this type are numbers: all but structs and strings. */
bool number_is_type(uint32_t dtype);

/* Reads the element at p, which need not be aligned. dtype may have SHMVIEW_SWAPPED. Exact. */
struct number number_load(uint32_t dtype, const void *p);

/* Writes it to p. False, and nothing is written, if it is no value of that type. */
bool number_store(uint32_t dtype, const struct number *n, void *p);

/* False if it is none. A double is the nearest one, also to an integer. */
bool number_to_int64(const struct number *n, int64_t *ret);
bool number_to_double(const struct number *n, double *ret);
bool number_to_complex(const struct number *n, double ret[2]);

/* By value, exactly. */
bool number_equal(const struct number *a, const struct number *b);

/* What people call the value and the type. */
#define NUMBER_TEXT_BYTES 96
void number_text(const struct number *n, char ret[NUMBER_TEXT_BYTES]);
const char *number_type_name(uint32_t dtype);

#pragma GCC visibility pop

#endif
