/* SPDX-License-Identifier: Apache-2.0 */
/* Converts one number at a time, from and to every type. Speed matters little here: rows and common
 * types take the kernels and the short ways of element.c. */
#include "client/whole/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/whole/small.h"
#include "common/views/dtype.h"

bool number_is_type(uint32_t dtype)
{
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    return dtype_of(dtype) && dtype != SHMVIEW_BYTES && dtype != SHMVIEW_PASCAL;
}

/* Reverses the bytes of one number. Each half of a complex number is reversed by itself. */
static void reverse(const struct dtype *type, unsigned char *to, const unsigned char *from)
{
    size_t unit = type->kind == SHMVIEW_VALUE_COMPLEX ? type->itemsize / 2u : type->itemsize;
    for (size_t i = 0; i < type->itemsize; i += unit)
        for (size_t k = 0; k < unit; k++)
            to[i + k] = from[i + unit - 1 - k];
}

/* --- Loading ------------------------------------------------------------- */

static struct shmview_value number_of_uint64(uint64_t u)
{
    return (struct shmview_value){.kind = SHMVIEW_VALUE_UINT, .u = u};
}

static struct shmview_value number_of_bool(bool truth)
{
    return (struct shmview_value){.kind = SHMVIEW_VALUE_BOOL, .i = truth};
}

/* A bool is read as a byte, because a C bool that is neither 0 nor 1 is undefined, and any program
 * may have written the byte. */
static struct shmview_value load_native(uint32_t dtype, const void *p)
{
#define LOAD(code, type, number)                                                                   \
    case code: {                                                                                   \
        type x;                                                                                    \
        memcpy(&x, p, sizeof x);                                                                   \
        return number;                                                                             \
    }
#define LOAD_SMALL(name, code, type, exponent, mantissa, bias, specials)                           \
    LOAD(code, type,                                                                               \
         number_of_real(                                                                           \
             (long double)small_decode((struct small){exponent, mantissa, bias, specials}, x)))
#define LOAD_COMPLEX(code, type)                                                                   \
    case code: {                                                                                   \
        type z[2];                                                                                 \
        memcpy(z, p, sizeof z);                                                                    \
        return number_of_complex((long double)z[0], (long double)z[1]);                            \
    }
    switch (dtype) {
        LOAD(SHMVIEW_INT8, int8_t, number_of_int64(x))
        LOAD(SHMVIEW_INT16, int16_t, number_of_int64(x))
        LOAD(SHMVIEW_INT32, int32_t, number_of_int64(x))
        LOAD(SHMVIEW_INT64, int64_t, number_of_int64(x))
        LOAD(SHMVIEW_UINT8, uint8_t, number_of_uint64(x))
        LOAD(SHMVIEW_CHAR, uint8_t, number_of_uint64(x))
        LOAD(SHMVIEW_BOOL, uint8_t, number_of_bool(x != 0))
        LOAD(SHMVIEW_UINT16, uint16_t, number_of_uint64(x))
        LOAD(SHMVIEW_UINT32, uint32_t, number_of_uint64(x))
        LOAD(SHMVIEW_UINT64, uint64_t, number_of_uint64(x))
        LOAD(SHMVIEW_POINTER, uintptr_t, number_of_uint64(x))
        LOAD(SHMVIEW_FLOAT32, float, number_of_real((long double)x))
        LOAD(SHMVIEW_FLOAT64, double, number_of_real((long double)x))
        LOAD(SHMVIEW_LONGDOUBLE, long double, number_of_real(x))
        LOAD_COMPLEX(SHMVIEW_COMPLEX64, float)
        LOAD_COMPLEX(SHMVIEW_COMPLEX128, double)
        SMALL_LIST(LOAD_SMALL)
    default:
        return number_of_real((long double)NAN);
    }
}

struct shmview_value number_load(uint32_t dtype, const void *p)
{
    if (!(dtype & SHMVIEW_SWAPPED))
        return load_native(dtype, p);
    unsigned char native[NUMBER_BYTES];
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    reverse(dtype_of(dtype), native, p);
    return load_native(dtype, native);
}

/* --- Turning one kind into another --------------------------------------- */

#define TWO_TO_63 9223372036854775808.0L

static bool is_integer(const struct shmview_value *n)
{
    return n->kind < SHMVIEW_VALUE_REAL;
}

/* n must be an integer. */
static bool is_negative(const struct shmview_value *n)
{
    return n->kind != SHMVIEW_VALUE_UINT && n->i < 0;
}

/* Compares two integers of 64 bits, signed or not. The same bits are different numbers if only one
 * is negative. */
static bool same_integer(const struct shmview_value *a, const struct shmview_value *b)
{
    return a->u == b->u && is_negative(a) == is_negative(b);
}

/* Converts a number to an integer of 64 bits. Returns false if it has a fraction or an imaginary
 * part, or needs more bits. */
static bool to_integer(const struct shmview_value *n, struct shmview_value *ret)
{
    if (is_integer(n)) {
        *ret = *n;
        return true;
    }
    long double x = n->z[0];
    if (n->z[1] != 0 || !(x >= -TWO_TO_63 && x < 2 * TWO_TO_63))
        return false;
    *ret = x < TWO_TO_63 ? number_of_int64((int64_t)x) : number_of_uint64((uint64_t)x);
    return (ret->kind == SHMVIEW_VALUE_INT ? (long double)ret->i : (long double)ret->u) == x;
}

bool number_to_int64(const struct shmview_value *n, int64_t *ret)
{
    struct shmview_value whole;
    if (!to_integer(n, &whole) || (whole.i < 0 && !is_negative(&whole)))
        return false;
    *ret = whole.i;
    return true;
}

/* Converts the integer itself, so that it is rounded only once, whatever a long double is. */
static double nearest_double(const struct shmview_value *n)
{
    if (!is_integer(n))
        return (double)n->z[0];
    return is_negative(n) ? (double)n->i : (double)n->u;
}

/* Whether a finite number has become infinite by a conversion, which is an error. */
static bool is_too_large(long double x, bool became_infinite)
{
    return became_infinite && !isinf(x);
}

bool number_to_double(const struct shmview_value *n, double *ret)
{
    double x = nearest_double(n);
    if (!is_integer(n) && (n->z[1] != 0 || is_too_large(n->z[0], isinf(x))))
        return false;
    *ret = x;
    return true;
}

bool number_to_complex(const struct shmview_value *n, double ret[2])
{
    double re = nearest_double(n);
    double im = n->kind == SHMVIEW_VALUE_COMPLEX ? (double)n->z[1] : 0;
    if (!is_integer(n) && (is_too_large(n->z[0], isinf(re)) || is_too_large(n->z[1], isinf(im))))
        return false;
    ret[0] = re;
    ret[1] = im;
    return true;
}

bool number_equal(const struct shmview_value *a, const struct shmview_value *b)
{
    struct shmview_value x, y;
    if (is_integer(a) || is_integer(b))
        return to_integer(a, &x) && to_integer(b, &y) && same_integer(&x, &y);
    return a->z[0] == b->z[0] && a->z[1] == b->z[1];
}

/* --- Storing ------------------------------------------------------------- */

/* Encodes any long double as a small float. A value that is no double is passed as its parts,
 * because a first rounding to double could change the second one. Returns false as small_encode()
 * does. */
static bool encode_small(struct small k, long double x, bool exact, uint32_t *ret)
{
    int exponent;
    const bool negative = signbit(x);
    if (isnan(x) || (long double)(double)x == x)
        return small_encode(k, (double)x, exact, ret);
    long double scaled = ldexpl(frexpl(negative ? -x : x, &exponent), 64);
    uint64_t significand = (uint64_t)scaled;
    return small_round(k, negative, exponent - 1, significand, (long double)significand != scaled,
                       exact, ret);
}

/* Stores an integer. Returns false if the number is none or is outside the range of the type. */
static bool store_integer(uint32_t dtype, const struct shmview_value *n, unsigned char *p)
{
    struct shmview_value whole;
    if (!to_integer(n, &whole))
        return false;
#define STORE(code, type, low, high)                                                               \
    case code: {                                                                                   \
        bool fits = is_negative(&whole) ? whole.i >= (low) : whole.u <= (high);                    \
        type x = (type)whole.u;                                                                    \
        if (fits)                                                                                  \
            memcpy(p, &x, sizeof x);                                                               \
        return fits;                                                                               \
    }
    switch (dtype) {
        STORE(SHMVIEW_INT8, int8_t, INT8_MIN, INT8_MAX)
        STORE(SHMVIEW_INT16, int16_t, INT16_MIN, INT16_MAX)
        STORE(SHMVIEW_INT32, int32_t, INT32_MIN, INT32_MAX)
        STORE(SHMVIEW_INT64, int64_t, INT64_MIN, INT64_MAX)
        STORE(SHMVIEW_UINT8, uint8_t, 0, UINT8_MAX)
        STORE(SHMVIEW_CHAR, uint8_t, 0, UINT8_MAX)
        STORE(SHMVIEW_UINT16, uint16_t, 0, UINT16_MAX)
        STORE(SHMVIEW_UINT32, uint32_t, 0, UINT32_MAX)
        STORE(SHMVIEW_UINT64, uint64_t, 0, UINT64_MAX)
        STORE(SHMVIEW_POINTER, uintptr_t, 0, UINTPTR_MAX)
    default:
        return false;
    }
}

/* Stores a real number. exact: the number was an integer, so it is refused if it would be
 * rounded. */
static bool store_real(uint32_t dtype, long double x, bool exact, unsigned char *p)
{
    uint32_t code;
#define STORE_FLOAT(code, type)                                                                    \
    case code: {                                                                                   \
        type y = (type)x;                                                                          \
        if (is_too_large(x, isinf(y)) || (exact && (long double)y != x))                           \
            return false;                                                                          \
        memcpy(p, &y, sizeof y);                                                                   \
        return true;                                                                               \
    }
#define STORE_SMALL(name, dtype, type, exponent, mantissa, bias, specials)                         \
    case dtype:                                                                                    \
        if (!encode_small((struct small){exponent, mantissa, bias, specials}, x, exact, &code))    \
            return false;                                                                          \
        memcpy(p, &(type){(type)code}, sizeof(type));                                              \
        return true;
    switch (dtype) {
        STORE_FLOAT(SHMVIEW_FLOAT32, float)
        STORE_FLOAT(SHMVIEW_FLOAT64, double)
        SMALL_LIST(STORE_SMALL)
    case SHMVIEW_LONGDOUBLE:
        /* zeroes the padding, which would otherwise be bytes of our stack */
        memset(p, 0, sizeof x);
        memcpy(p, &x, LDBL_MANT_DIG == 64 ? 10 : sizeof x);
        return true;
    default:
        return false;
    }
}

/* Stores an integer, a real number, or the real part of a complex number. */
static bool store_real_part(uint32_t dtype, const struct shmview_value *n, unsigned char *p)
{
    if (!is_integer(n))
        return store_real(dtype, n->z[0], false, p);
    struct shmview_value real =
                             number_of_real(is_negative(n) ? (long double)n->i : (long double)n->u),
                         back;
    /* if a long double has no 64 bits of mantissa, rounding may have changed the integer */
    if (LDBL_MANT_DIG < 64 && !(to_integer(&real, &back) && same_integer(&back, n)))
        return false;
    return store_real(dtype, real.z[0], true, p);
}

/* Stores both parts, or neither. */
static bool store_complex(uint32_t dtype, const struct shmview_value *n, unsigned char *p)
{
    uint32_t part = dtype == SHMVIEW_COMPLEX64 ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
    size_t bytes = dtype == SHMVIEW_COMPLEX64 ? sizeof(float) : sizeof(double);
    long double im = n->kind == SHMVIEW_VALUE_COMPLEX ? n->z[1] : 0;
    unsigned char both[2 * sizeof(double)];
    if (!store_real_part(part, n, both) || !store_real(part, im, false, both + bytes))
        return false;
    memcpy(p, both, 2 * bytes);
    return true;
}

static bool store_native(uint32_t dtype, const struct shmview_value *n, unsigned char *p)
{
    switch (dtype) {
    case SHMVIEW_BOOL:
        *p = is_integer(n) ? n->u != 0 : n->z[0] != 0 || n->z[1] != 0;
        return true;
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return store_complex(dtype, n, p);
    case SHMVIEW_FLOAT32:
    case SHMVIEW_FLOAT64:
    case SHMVIEW_LONGDOUBLE:
    case SHMVIEW_FLOAT16:
    case SHMVIEW_BFLOAT16 ... SHMVIEW_FLOAT8_E8M0FNU:
        return (is_integer(n) || n->z[1] == 0) && store_real_part(dtype, n, p);
    default:
        return store_integer(dtype, n, p);
    }
}

bool number_store(uint32_t dtype, const struct shmview_value *n, void *p)
{
    if (!(dtype & SHMVIEW_SWAPPED))
        return store_native(dtype, n, p);
    unsigned char native[NUMBER_BYTES];
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    if (!store_native(dtype, n, native))
        return false;
    reverse(dtype_of(dtype), p, native);
    return true;
}

/* --- Texts --------------------------------------------------------------- */

/* Writes a real number with as few digits as identify it: the first precision of the list that
 * reads back as the same number. NaN has no sign in a text. */
static void real_text(char *ret, size_t bytes, bool plus, long double x)
{
    static const int digits[] = {6, 9, 17, 21, 36};
    bool is_double = (long double)(double)x == x;
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++) {
        snprintf(ret, bytes, plus ? "%+.*Lg" : "%.*Lg", digits[i], isnan(x) ? fabsl(x) : x);
        if (isnan(x) || (is_double ? strtod(ret, NULL) == (double)x : strtold(ret, NULL) == x))
            return;
    }
}

void number_text(const struct shmview_value *n, char ret[NUMBER_TEXT_BYTES])
{
    const size_t half = NUMBER_TEXT_BYTES / 2;
    char re[NUMBER_TEXT_BYTES / 2], im[NUMBER_TEXT_BYTES / 2 - 4];
    switch (n->kind) {
    case SHMVIEW_VALUE_UINT:
        snprintf(ret, NUMBER_TEXT_BYTES, "%" PRIu64, n->u);
        break;
    case SHMVIEW_VALUE_REAL:
        real_text(ret, half, false, n->z[0]);
        break;
    case SHMVIEW_VALUE_COMPLEX:
        real_text(re, sizeof re, false, n->z[0]);
        real_text(im, sizeof im, true, n->z[1]);
        snprintf(ret, NUMBER_TEXT_BYTES, "(%s%sj)", re, im);
        break;
    default:
        snprintf(ret, NUMBER_TEXT_BYTES, "%" PRId64, n->i);
    }
}
