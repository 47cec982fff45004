/* SPDX-License-Identifier: Apache-2.0 */
/* One value of an element, as a number, and as the shortest text that means the same number. */
#ifndef CLI_SCALAR_H
#define CLI_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>

enum scalar_kind {
    SCALAR_BOOL,
    SCALAR_INT,
    SCALAR_UINT,
    SCALAR_REAL,
    SCALAR_COMPLEX,
};

struct scalar {
    enum scalar_kind kind;
    uint32_t part; /* enum shmview_dtype of a float, or of the parts of a complex */
    int64_t i;     /* BOOL, INT */
    uint64_t u;    /* UINT */
    long double z[2];
};

/* Reads a value of dtype, in either byte order, from bytes that need not be aligned. Returns
 * whether dtype is a number: structs and strings are none. */
bool scalar_load(uint32_t dtype, uint32_t itemsize, const void *bytes, struct scalar *ret);

/* Whether elements of dtype are floats, or complex. */
bool scalar_is_real(uint32_t dtype);
bool scalar_is_complex(uint32_t dtype);

#define SCALAR_DIGITS 40

/* 0.d1d2d3... times 10^point: the fewest digits that are read back as the same float. */
struct digits {
    bool is_negative;
    bool is_finite; /* if not: inf or nan, and no digits */
    int n;
    int point;
    char text[SCALAR_DIGITS];
};

/* The digits of x, a value of the float type dtype. Zero has one digit. */
void scalar_digits(long double x, uint32_t dtype, struct digits *ret);

#define SCALAR_TEXT_BYTES 128

/* As Python prints it: 12, 0.1, 1e+20, nan, True, (1+2j). Returns text. */
const char *scalar_text(const struct scalar *s, char text[SCALAR_TEXT_BYTES]);
/* As JSON has it: true, 12, 0.1; complex is [1.0, 2.0]; "nan", "inf" and "-inf" are strings. */
const char *scalar_json(const struct scalar *s, char text[SCALAR_TEXT_BYTES]);

#endif
