/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/scalar.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Python writes floats below and from these bounds with an exponent. */
#define PYTHON_LEAST 1e-4L
#define PYTHON_MOST  1e16L

uint32_t scalar_part(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    return dtype == SHMVIEW_COMPLEX64    ? SHMVIEW_FLOAT32
           : dtype == SHMVIEW_COMPLEX128 ? SHMVIEW_FLOAT64
                                         : dtype;
}

/* --- Digits ----------------------------------------------------------------- */

/* Whether text, read as a float of dtype, is x. Types without a function of libc (float16 and
 * others) are rounded by the library. */
static bool reads_as(const char *text, long double x, uint32_t dtype)
{
    struct shmview_value value = {.kind = SHMVIEW_VALUE_REAL};
    unsigned char small[2];
    if (dtype == SHMVIEW_FLOAT64)
        return strtod(text, NULL) == (double)x;
    if (dtype == SHMVIEW_FLOAT32)
        return strtof(text, NULL) == (float)x;
    if (dtype == SHMVIEW_LONGDOUBLE)
        return strtold(text, NULL) == x;
    value.z[0] = (long double)strtod(text, NULL);
    if (shmview_value_store(dtype, sizeof small, &value, small))
        return false;
    shmview_value_load(dtype, sizeof small, small, &value);
    return value.z[0] == x;
}

/* Returns the number of digits with which the search begins. Every float of normal size is exact
 * with these; the digits after them are zeros. */
static int digits_least(long double x, uint32_t dtype)
{
    if (dtype == SHMVIEW_FLOAT64 && fabsl(x) >= (long double)DBL_MIN)
        return DBL_DIG;
    if (dtype == SHMVIEW_FLOAT32 && fabsl(x) >= (long double)FLT_MIN)
        return FLT_DIG;
    if (dtype == SHMVIEW_LONGDOUBLE && fabsl(x) >= LDBL_MIN)
        return LDBL_DIG;
    return 1;
}

/* Tries one digit more until the text is read back as x. Printing never needs more digits than
 * LDBL_DECIMAL_DIG. */
void scalar_digits(long double x, uint32_t dtype, struct digits *ret)
{
    char text[SCALAR_DIGITS + 16];
    struct digits d = {.is_negative = signbit(x) != 0, .is_finite = isfinite(x) != 0};
    if (!d.is_finite || x == 0) {
        d.n = d.is_finite;
        d.point = d.is_finite;
        d.text[0] = '0';
        *ret = d;
        return;
    }
    for (int n = digits_least(x, dtype); n < LDBL_DECIMAL_DIG + 1; n++) {
        snprintf(text, sizeof text, "%.*Le", n - 1, fabsl(x));
        if (reads_as(text, fabsl(x), dtype))
            break;
    }
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p != '.')
            d.text[d.n++] = *p;
    while (d.n > 1 && d.text[d.n - 1] == '0')
        d.n--;
    d.text[d.n] = '\0';
    d.point = atoi(p + 1) + 1;
    *ret = d;
}

/* --- Texts ------------------------------------------------------------------ */

/* Writes a float as Python's repr() does. The sign of nan is not printed. Returns the length, as
 * snprintf() does. */
static int real_text(long double x, uint32_t dtype, char *text, size_t bytes)
{
    struct digits d;
    const char *sign = signbit(x) && !isnan(x) ? "-" : "";
    scalar_digits(x, dtype, &d);
    if (!d.is_finite)
        return snprintf(text, bytes, "%s%s", sign, isnan(x) ? "nan" : "inf");
    if (x != 0 && (fabsl(x) < PYTHON_LEAST || fabsl(x) >= PYTHON_MOST))
        return snprintf(text, bytes, "%s%c%s%.*se%c%02d", sign, d.text[0], d.n > 1 ? "." : "",
                        d.n - 1, d.text + 1, d.point <= 0 ? '-' : '+', abs(d.point - 1));
    if (d.point <= 0)
        return snprintf(text, bytes, "%s0.%.*s%.*s", sign, -d.point, "0000000000", d.n, d.text);
    if (d.n <= d.point)
        return snprintf(text, bytes, "%s%s%.*s.0", sign, d.text, d.point - d.n,
                        "00000000000000000000");
    return snprintf(text, bytes, "%s%.*s.%s", sign, d.point, d.text, d.text + d.point);
}

/* Removes a final ".0", which Python does not print in the parts of a complex. */
static void trim_zero(char *text)
{
    size_t n = strlen(text);
    if (n > 2 && strcmp(text + n - 2, ".0") == 0)
        text[n - 2] = '\0';
}

const char *scalar_text(uint32_t dtype, const struct shmview_value *s, char text[SCALAR_TEXT_BYTES])
{
    const uint32_t part = scalar_part(dtype);
    char re[SCALAR_TEXT_BYTES / 2 - 4], im[SCALAR_TEXT_BYTES / 2 - 4];
    switch (s->kind) {
    case SHMVIEW_VALUE_BOOL:
        return strcpy(text, s->i ? "True" : "False");
    case SHMVIEW_VALUE_UINT:
        snprintf(text, SCALAR_TEXT_BYTES, "%" PRIu64, s->u);
        break;
    case SHMVIEW_VALUE_REAL:
        real_text(s->z[0], part, text, SCALAR_TEXT_BYTES);
        break;
    case SHMVIEW_VALUE_COMPLEX:
        real_text(s->z[0], part, re, sizeof re);
        real_text(s->z[1], part, im, sizeof im);
        trim_zero(re);
        trim_zero(im);
        if (s->z[0] == 0 && !signbit(s->z[0]))
            snprintf(text, SCALAR_TEXT_BYTES, "%sj", im);
        else
            snprintf(text, SCALAR_TEXT_BYTES, "(%s%s%sj)", re, im[0] == '-' ? "" : "+", im);
        break;
    default:
        snprintf(text, SCALAR_TEXT_BYTES, "%" PRId64, s->i);
    }
    return text;
}

/* Writes a float as JSON; infinities and nan become strings. Returns the length. */
static int real_json(long double x, uint32_t dtype, char *text, size_t bytes)
{
    if (isfinite(x))
        return real_text(x, dtype, text, bytes);
    return snprintf(text, bytes, "\"%s\"", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

const char *scalar_json(uint32_t dtype, const struct shmview_value *s, char text[SCALAR_TEXT_BYTES])
{
    const uint32_t part = scalar_part(dtype);
    char re[SCALAR_TEXT_BYTES / 2 - 4], im[SCALAR_TEXT_BYTES / 2 - 4];
    switch (s->kind) {
    case SHMVIEW_VALUE_BOOL:
        return strcpy(text, s->i ? "true" : "false");
    case SHMVIEW_VALUE_REAL:
        real_json(s->z[0], part, text, SCALAR_TEXT_BYTES);
        return text;
    case SHMVIEW_VALUE_COMPLEX:
        real_json(s->z[0], part, re, sizeof re);
        real_json(s->z[1], part, im, sizeof im);
        snprintf(text, SCALAR_TEXT_BYTES, "[%s, %s]", re, im);
        return text;
    default:
        return scalar_text(dtype, s, text);
    }
}
