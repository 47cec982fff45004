/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are numbers, and what becomes of them in another type.
 *
 * These are the rules of shmview/view.h, "One element", one number at a time. What walks
 * whole rows (convert.h) has the same rules. A byte of text (SHMVIEW_CHAR) is a number here. */
#ifndef CLIENT_NUMBER_H
#define CLIENT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/value.h>

#include "client/views/handle.h"

#pragma GCC visibility push(hidden)

#define NUMBER_BYTES 32 /* of an element at most, with room to spare */

static inline struct shmview_value number_of_int64(int64_t i)
{
    return (struct shmview_value){.kind = SHMVIEW_VALUE_INT, .i = i};
}
static inline struct shmview_value number_of_complex(long double re, long double im)
{
    return (struct shmview_value){.kind = SHMVIEW_VALUE_COMPLEX, .z = {re, im}};
}
static inline struct shmview_value number_of_real(long double x)
{
    return (struct shmview_value){.kind = SHMVIEW_VALUE_REAL, .z = {x}};
}

/* Whether elements of this type are numbers: all but structs and strings. */
bool number_is_type(uint32_t dtype);

/* Reads the element at p, which need not be aligned. dtype may have SHMVIEW_SWAPPED. Exact. */
struct shmview_value number_load(uint32_t dtype, const void *p);

/* Writes it to p. False, and nothing is written, if it is no value of that type. */
bool number_store(uint32_t dtype, const struct shmview_value *n, void *p);

/* False if it is none. A double is the nearest one, also to an integer. */
bool number_to_int64(const struct shmview_value *n, int64_t *ret);
bool number_to_double(const struct shmview_value *n, double *ret);
bool number_to_complex(const struct shmview_value *n, double ret[2]);

/* By value, exactly. */
bool number_equal(const struct shmview_value *a, const struct shmview_value *b);

/* The number as the texts of errors have it. */
#define NUMBER_TEXT_BYTES 96
void number_text(const struct shmview_value *n, char ret[NUMBER_TEXT_BYTES]);

#pragma GCC visibility pop

#endif
