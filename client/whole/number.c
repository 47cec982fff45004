/* SPDX-License-Identifier: Apache-2.0 */
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

const char *number_type_name(uint32_t dtype)
{
    const struct dtype *t = dtype_of(dtype);
    return t ? t->name : "struct";
}

/* Each half of a complex number is reversed by itself. */
static void reverse(uint32_t dtype, unsigned char *to, const unsigned char *from, size_t bytes)
{
    bool is_complex = dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128;
    size_t unit = is_complex ? bytes / 2 : bytes;
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i / unit * unit + (unit - 1 - i % unit)];
}

/* --- Loading ------------------------------------------------------------- */

static struct number number_of_uint64(uint64_t u)
{
    if (u <= INT64_MAX)
        return number_of_int64((int64_t)u);
    return (struct number){.kind = NUMBER_UINT, .u = u};
}

static struct number load_native(uint32_t dtype, const void *p)
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
        LOAD(SHMVIEW_UINT8, uint8_t, number_of_int64(x))
        LOAD(SHMVIEW_CHAR, uint8_t, number_of_int64(x))
        LOAD(SHMVIEW_BOOL, uint8_t, number_of_int64(x != 0))
        LOAD(SHMVIEW_UINT16, uint16_t, number_of_int64(x))
        LOAD(SHMVIEW_UINT32, uint32_t, number_of_int64(x))
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

struct number number_load(uint32_t dtype, const void *p)
{
    if (!(dtype & SHMVIEW_SWAPPED))
        return load_native(dtype, p);
    unsigned char native[NUMBER_BYTES];
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    reverse(dtype, native, p, dtype_of(dtype)->itemsize);
    return load_native(dtype, native);
}

/* --- Turning one kind into another --------------------------------------- */

#define TWO_TO_63 9223372036854775808.0L

/* A number that is an integer as such. False if it is none, or beyond 64 bits. */
static bool to_integer(const struct number *n, struct number *ret)
{
    long double x = n->z[0];
    switch (n->kind) {
    case NUMBER_INT:
    case NUMBER_UINT:
        *ret = *n;
        return true;
    default:
        if (n->z[1] != 0 || !(x >= -TWO_TO_63 && x < 2 * TWO_TO_63))
            return false;
        *ret = x < TWO_TO_63 ? number_of_int64((int64_t)x) : number_of_uint64((uint64_t)x);
        return (ret->kind == NUMBER_INT ? (long double)ret->i : (long double)ret->u) == x;
    }
}

/* A real number as the nearest long double; *ret_exact tells whether it is the number. */
static bool to_real(const struct number *n, long double *ret, bool *ret_exact)
{
    struct number back;
    switch (n->kind) {
    case NUMBER_INT:
    case NUMBER_UINT:
        *ret = n->kind == NUMBER_INT ? (long double)n->i : (long double)n->u;
        /* where a long double is a double, rounding may change an integer */
        *ret_exact = to_integer(&(struct number){.kind = NUMBER_REAL, .z = {*ret}}, &back) &&
                     back.kind == n->kind && back.u == n->u;
        return true;
    default:
        *ret = n->z[0];
        *ret_exact = true;
        return n->z[1] == 0;
    }
}

bool number_to_int64(const struct number *n, int64_t *ret)
{
    struct number whole;
    if (!to_integer(n, &whole) || whole.kind != NUMBER_INT)
        return false;
    *ret = whole.i;
    return true;
}

/* One rounding, from the integer itself: by way of a long double there could be two. */
static double nearest_double(const struct number *n)
{
    if (n->kind == NUMBER_INT)
        return (double)n->i;
    return n->kind == NUMBER_UINT ? (double)n->u : (double)n->z[0];
}

static bool is_too_large(long double x, bool became_infinite)
{
    return became_infinite && !isinf(x);
}

bool number_to_double(const struct number *n, double *ret)
{
    double x = nearest_double(n);
    if (n->kind >= NUMBER_REAL && (n->z[1] != 0 || is_too_large(n->z[0], isinf(x))))
        return false;
    *ret = x;
    return true;
}

bool number_to_complex(const struct number *n, double ret[2])
{
    double re = nearest_double(n);
    double im = n->kind == NUMBER_COMPLEX ? (double)n->z[1] : 0;
    if (n->kind >= NUMBER_REAL &&
        (is_too_large(n->z[0], isinf(re)) || is_too_large(n->z[1], isinf(im))))
        return false;
    ret[0] = re;
    ret[1] = im;
    return true;
}

bool number_equal(const struct number *a, const struct number *b)
{
    if (a->kind < NUMBER_REAL && b->kind < NUMBER_REAL)
        return a->kind == b->kind && a->u == b->u;
    if (a->kind >= NUMBER_REAL && b->kind >= NUMBER_REAL)
        return a->z[0] == b->z[0] && a->z[1] == b->z[1];
    struct number whole;
    const struct number *real = a->kind < NUMBER_REAL ? b : a;
    const struct number *integer = a->kind < NUMBER_REAL ? a : b;
    return to_integer(real, &whole) && whole.kind == integer->kind && whole.u == integer->u;
}

/* --- Storing ------------------------------------------------------------- */

/* Any float, by its parts: also those beyond a double. */
static bool encode_small(struct small k, long double x, bool exact, uint32_t *ret)
{
    int exponent;
    bool negative = signbit(x);
    if (x == 0 || !isfinite(x))
        return small_special(k, negative, x == 0, isinf(x), ret);
    long double scaled = ldexpl(frexpl(negative ? -x : x, &exponent), 64);
    uint64_t significand = (uint64_t)scaled;
    return small_round(k, negative, exponent - 1, significand, (long double)significand != scaled,
                       exact, ret);
}

static bool store_integer(uint32_t dtype, const struct number *n, unsigned char *p)
{
    struct number whole;
    if (!to_integer(n, &whole))
        return false;
#define STORE(code, type, low, high)                                                               \
    case code: {                                                                                   \
        bool fits = whole.kind == NUMBER_INT                                                       \
                        ? whole.i >= (low) && (whole.i < 0 || (uint64_t)whole.i <= (high))         \
                        : whole.u <= (high);                                                       \
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

/* exact: the number is an integer, which is not rounded. */
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
        /* its padding is not what happens to lie on the stack */
        memset(p, 0, sizeof x);
        memcpy(p, &x, LDBL_MANT_DIG == 64 ? 10 : sizeof x);
        return true;
    default:
        return false;
    }
}

static bool store_complex(uint32_t dtype, const struct number *n, unsigned char *p)
{
    uint32_t part = dtype == SHMVIEW_COMPLEX64 ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
    size_t bytes = dtype == SHMVIEW_COMPLEX64 ? sizeof(float) : sizeof(double);
    struct number re = *n;
    if (n->kind == NUMBER_COMPLEX)
        re = number_of_real(n->z[0]);
    struct number im = number_of_real(n->kind == NUMBER_COMPLEX ? n->z[1] : 0);
    unsigned char both[2 * sizeof(double)];
    if (!number_store(part, &re, both) || !number_store(part, &im, both + bytes))
        return false;
    memcpy(p, both, 2 * bytes);
    return true;
}

static bool store_native(uint32_t dtype, const struct number *n, unsigned char *p)
{
    long double x;
    bool exact;
    switch (dtype) {
    case SHMVIEW_BOOL:
        *p = n->kind < NUMBER_REAL ? n->u != 0 : n->z[0] != 0 || n->z[1] != 0;
        return true;
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return store_complex(dtype, n, p);
    case SHMVIEW_FLOAT32:
    case SHMVIEW_FLOAT64:
    case SHMVIEW_LONGDOUBLE:
    case SHMVIEW_FLOAT16:
    case SHMVIEW_BFLOAT16 ... SHMVIEW_FLOAT8_E8M0FNU:
        return to_real(n, &x, &exact) && (exact || n->kind >= NUMBER_REAL) &&
               store_real(dtype, x, n->kind < NUMBER_REAL, p);
    default:
        return store_integer(dtype, n, p);
    }
}

bool number_store(uint32_t dtype, const struct number *n, void *p)
{
    if (!(dtype & SHMVIEW_SWAPPED))
        return store_native(dtype, n, p);
    unsigned char native[NUMBER_BYTES];
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    if (!store_native(dtype, n, native))
        return false;
    reverse(dtype, p, native, dtype_of(dtype)->itemsize);
    return true;
}

/* --- Texts --------------------------------------------------------------- */

/* As few digits as tell it from its neighbours. */
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

void number_text(const struct number *n, char ret[NUMBER_TEXT_BYTES])
{
    const size_t half = NUMBER_TEXT_BYTES / 2;
    char re[NUMBER_TEXT_BYTES / 2], im[NUMBER_TEXT_BYTES / 2 - 4];
    switch (n->kind) {
    case NUMBER_INT:
        snprintf(ret, NUMBER_TEXT_BYTES, "%" PRId64, n->i);
        break;
    case NUMBER_UINT:
        snprintf(ret, NUMBER_TEXT_BYTES, "%" PRIu64, n->u);
        break;
    case NUMBER_REAL:
        real_text(ret, half, false, n->z[0]);
        break;
    case NUMBER_COMPLEX:
        real_text(re, sizeof re, false, n->z[0]);
        real_text(im, sizeof im, true, n->z[1]);
        snprintf(ret, NUMBER_TEXT_BYTES, "(%s%sj)", re, im);
    }
}
