/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as values, and their conversion from and to any type of element.
 *
 * These are the rules of shmview/view.h, "One element", one number at a time. The kernels
 * (convert.h) have the same rules for whole rows; a test compares the two. A byte of text
 * (SHMVIEW_CHAR) is a number here. A real number is a long double, which holds every float64 and,
 * on x86, every int64 exactly. */
#ifndef CLIENT_NUMBER_H
#define CLIENT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/value.h>

#include "client/views/handle.h"

#pragma GCC visibility push(hidden)

#define NUMBER_BYTES 32 /* more than any number needs */

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

/* Whether elements of this type are numbers: all types except structs and strings. */
bool number_is_type(uint32_t dtype);

/* Returns the number at p, exactly. p need not be aligned. dtype may have SHMVIEW_SWAPPED. */
struct shmview_value number_load(uint32_t dtype, const void *p);

/* Writes a number to p, which need not be aligned. Returns false, and writes nothing, if the number
 * has no value in that type. */
bool number_store(uint32_t dtype, const struct shmview_value *n, void *p);

/* Convert a number. Return false if the result cannot represent it: an int64 must be exact, a
 * double is the nearest one, also to an integer, and must not become infinite. */
bool number_to_int64(const struct shmview_value *n, int64_t *ret);
bool number_to_double(const struct shmview_value *n, double *ret);
bool number_to_complex(const struct shmview_value *n, double ret[2]);

/* Whether two numbers have exactly the same value. NaN equals nothing. */
bool number_equal(const struct shmview_value *a, const struct shmview_value *b);

/* Writes the number for an error text. */
#define NUMBER_TEXT_BYTES 96
void number_text(const struct shmview_value *n, char ret[NUMBER_TEXT_BYTES]);

#pragma GCC visibility pop

#endif
