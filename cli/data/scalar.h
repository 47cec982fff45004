/* SPDX-License-Identifier: Apache-2.0 */
/* A number as the shortest text that means the same number. */
#ifndef CLI_SCALAR_H
#define CLI_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/value.h>

#define SCALAR_DIGITS 40

/* 0.d1d2d3... times 10^point: the fewest digits that are read back as the same float. */
struct digits {
    bool is_negative;
    bool is_finite; /* if not: inf or nan, and no digits */
    int n;
    int point;
    char text[SCALAR_DIGITS];
};

/* The type of a float, or of the two parts of a complex. Native. */
uint32_t scalar_part(uint32_t dtype);

/* The digits of x, a value of the float type dtype. Zero has one digit. */
void scalar_digits(long double x, uint32_t dtype, struct digits *ret);

#define SCALAR_TEXT_BYTES 128

/* A number of dtype as Python prints it: 12, 0.1, 1e+20, nan, True, (1+2j). Returns text. */
const char *scalar_text(uint32_t dtype, const struct shmview_value *s,
                        char text[SCALAR_TEXT_BYTES]);
/* As JSON has it: true, 12, 0.1; complex is [1.0, 2.0]; "nan", "inf" and "-inf" are strings. */
const char *scalar_json(uint32_t dtype, const struct shmview_value *s,
                        char text[SCALAR_TEXT_BYTES]);

#endif
