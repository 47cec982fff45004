/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a number as the shortest text that is read back as exactly that number, as Python does. A
 * fixed number of digits would either lose bits or print 0.1 as 0.10000000000000001. */
#ifndef CLI_SCALAR_H
#define CLI_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/value.h>

#define SCALAR_DIGITS 40

/* The fewest digits that are read back as the same float. Its value is 0.d1d2d3... times 10^point.
 */
struct digits {
    bool is_negative;
    bool is_finite; /* false: inf or nan, without digits */
    int n;          /* digits in text */
    int point;      /* decimal exponent, see above */
    char text[SCALAR_DIGITS];
};

/* Returns the type of each part of a complex type, or any other type itself, without
 * SHMVIEW_SWAPPED. */
uint32_t scalar_part(uint32_t dtype);

/* Finds the digits of x, which is a value of the float type dtype. Zero has one digit, "0". */
void scalar_digits(long double x, uint32_t dtype, struct digits *ret);

#define SCALAR_TEXT_BYTES 128

/* Writes a number of dtype as Python prints it: 12, 0.1, 1e+20, nan, True, (1+2j). Returns text. */
const char *scalar_text(uint32_t dtype, const struct shmview_value *s,
                        char text[SCALAR_TEXT_BYTES]);
/* Writes a number as JSON: true, 12, 0.1. A complex is [1.0, 2.0]. JSON has no infinities, so
 * "nan", "inf" and "-inf" are strings. Returns text. */
const char *scalar_json(uint32_t dtype, const struct shmview_value *s,
                        char text[SCALAR_TEXT_BYTES]);

#endif
