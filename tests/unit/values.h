/* SPDX-License-Identifier: Apache-2.0 */
/* The values of elements and their conversion to other types. Slow and simple, and independent of
 * the library's code. */
#ifndef UNIT_VALUES_H
#define UNIT_VALUES_H

#include "unit/unit.h"

#include <float.h>
#include <math.h>

#include <shmview/shmview.h>

__extension__ typedef __int128 huge;

/* Unlike ck_assert_msg(), it writes to the parent process only if it fails, because each
 * message takes time. */
#define VALUE_ASSERT(condition, ...)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

struct value {
    bool is_integer;
    huge i;             /* if it is an integer */
    long double re, im; /* otherwise */
};

static inline struct value value_int(huge i)
{
    return (struct value){.is_integer = true, .i = i};
}
static inline struct value value_complex(long double re, long double im)
{
    return (struct value){.re = re, .im = im};
}
static inline struct value value_real(long double re)
{
    return value_complex(re, 0);
}

/* --- Types --------------------------------------------------------------- */

struct value_type {
    uint32_t dtype;
    const char *format;
    size_t bytes;
    char kind;     /* i, u: integers; b: bool; f: a C float; s: a small one; c: complex */
    int low, high; /* of a small float: exponents of its lowest and highest number */
    int digits;    /* of a small float: bits of a normal number */
};

static const struct value_type value_types[] = {
    {SHMVIEW_INT8, "b", 1, 'i', 0, 0, 0},
    {SHMVIEW_UINT8, "B", 1, 'u', 0, 0, 0},
    {SHMVIEW_INT16, "h", 2, 'i', 0, 0, 0},
    {SHMVIEW_UINT16, "H", 2, 'u', 0, 0, 0},
    {SHMVIEW_INT32, "i", 4, 'i', 0, 0, 0},
    {SHMVIEW_UINT32, "I", 4, 'u', 0, 0, 0},
    {SHMVIEW_INT64, "q", 8, 'i', 0, 0, 0},
    {SHMVIEW_UINT64, "Q", 8, 'u', 0, 0, 0},
    {SHMVIEW_FLOAT32, "f", 4, 'f', 0, 0, 0},
    {SHMVIEW_FLOAT64, "d", 8, 'f', 0, 0, 0},
    {SHMVIEW_LONGDOUBLE, "g", sizeof(long double), 'f', 0, 0, 0},
    {SHMVIEW_COMPLEX64, "Zf", 8, 'c', 0, 0, 0},
    {SHMVIEW_COMPLEX128, "Zd", 16, 'c', 0, 0, 0},
    {SHMVIEW_BOOL, "?", 1, 'b', 0, 0, 0},
    {SHMVIEW_CHAR, "c", 1, 'u', 0, 0, 0},
    {SHMVIEW_POINTER, "P", sizeof(void *), 'u', 0, 0, 0},
    {SHMVIEW_FLOAT16, "e", 2, 's', -24, 15, 11},
    {SHMVIEW_BFLOAT16, "bfloat16", 2, 's', -133, 127, 8},
    {SHMVIEW_FLOAT8_E3M4, "float8_e3m4", 1, 's', -6, 3, 5},
    {SHMVIEW_FLOAT8_E4M3, "float8_e4m3", 1, 's', -9, 7, 4},
    {SHMVIEW_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1, 's', -13, 4, 4},
    {SHMVIEW_FLOAT8_E4M3FN, "float8_e4m3fn", 1, 's', -9, 8, 4},
    {SHMVIEW_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1, 's', -10, 7, 4},
    {SHMVIEW_FLOAT8_E5M2, "float8_e5m2", 1, 's', -16, 15, 3},
    {SHMVIEW_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1, 's', -17, 15, 3},
    {SHMVIEW_FLOAT8_E8M0FNU, "float8_e8m0fnu", 1, 's', -127, 127, 1},
};
#define N_VALUE_TYPES (sizeof value_types / sizeof value_types[0])

/* Returns whether the type has no infinities. */
static inline bool value_type_is_finite(const struct value_type *t)
{
    return strstr(t->format, "fn") != NULL;
}
/* Returns whether the type has no negative zero. */
static inline bool value_type_is_uz(const struct value_type *t)
{
    return strstr(t->format, "fnuz") != NULL;
}
static inline bool value_type_has_order(const struct value_type *t)
{
    return t->bytes > 1;
}

/* Returns the format of the type, in the other byte order if swapped. */
static inline const char *value_type_format(const struct value_type *t, bool swapped)
{
    static char text[64];
    const char *mark = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ">" : "<";
    if (!swapped)
        return t->format;
    snprintf(text, sizeof text, "%s%s", mark, t->format);
    return text;
}

/* Returns whether the type has a swapped format. Addresses and long doubles are native, and names
 * give no byte order. */
static inline bool value_type_can_swap(const struct value_type *t)
{
    return value_type_has_order(t) && strlen(t->format) <= 2 && t->format[0] != 'P' &&
           t->format[0] != 'g';
}

/* --- Reading ------------------------------------------------------------- */

/* Returns the number of a small float's code, computed from its fields. */
static inline long double value_of_code(const struct value_type *t, uint32_t code)
{
    const int mantissa = t->digits - 1;
    const bool is_unsigned = t->dtype == SHMVIEW_FLOAT8_E8M0FNU;
    const int bits = 8 * (int)t->bytes - (is_unsigned ? 0 : 1); /* without the sign */
    const uint32_t magnitude = code & ((1u << bits) - 1), top = (1u << bits) - 1;
    const int e = (int)(magnitude >> mantissa), highest = (int)(top >> mantissa);
    const uint32_t m = magnitude & ((1u << mantissa) - 1);
    const long double sign = code >> bits ? -1 : 1;
    if (is_unsigned)
        return code == 255 ? (long double)NAN : ldexpl(1, (int)code - 127);
    if (value_type_is_uz(t) && code == 0x80)
        return (long double)NAN;
    if (value_type_is_finite(t) && !value_type_is_uz(t) && magnitude == top)
        return (long double)NAN;
    if (!value_type_is_finite(t) && e == highest)
        return m ? (long double)NAN : sign * (long double)INFINITY;
    if (e == 0)
        return sign * ldexpl((long double)m, t->low);
    return sign * ldexpl((long double)(m + (1u << mantissa)), t->low + e - 1);
}

/* Copies the bytes in the order of the machine. */
static inline void value_unswap(const struct value_type *t, const unsigned char *from,
                                unsigned char *to)
{
    size_t unit = t->kind == 'c' ? t->bytes / 2 : t->bytes;
    for (size_t i = 0; i < t->bytes; i++)
        to[i] = from[i - i % unit + unit - 1 - i % unit];
}

static inline struct value value_read_float(const struct value_type *t, const unsigned char *p)
{
    float f[2] = {0, 0};
    double d[2] = {0, 0};
    long double g;
    switch (t->dtype) {
    case SHMVIEW_FLOAT32:
    case SHMVIEW_COMPLEX64:
        memcpy(f, p, t->bytes);
        return value_complex((long double)f[0], (long double)f[1]);
    case SHMVIEW_FLOAT64:
    case SHMVIEW_COMPLEX128:
        memcpy(d, p, t->bytes);
        return value_complex((long double)d[0], (long double)d[1]);
    default:
        memcpy(&g, p, t->bytes);
        return value_real(g);
    }
}

static inline struct value value_read(const struct value_type *t, bool swapped, const void *element)
{
    unsigned char p[32];
    uint64_t bits = 0;
    memcpy(p, element, t->bytes);
    if (swapped)
        value_unswap(t, element, p);
    if (t->kind == 'f' || t->kind == 'c')
        return value_read_float(t, p);
    for (size_t k = 0; k < t->bytes; k++)
        bits |= (uint64_t)p[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? k : t->bytes - 1 - k]
                << 8 * k;
    if (t->kind == 's')
        return value_real(value_of_code(t, (uint32_t)bits));
    if (t->kind == 'b')
        return value_int(bits != 0);
    huge i = (huge)bits;
    if (t->kind == 'i' && bits >> (8 * t->bytes - 1))
        i -= (huge)1 << 8 * t->bytes;
    return value_int(i);
}

/* --- Converting ---------------------------------------------------------- */

/* Returns the nearest number with so many digits whose lowest bit is worth at least 2^low; ties go
 * to even. x must be in range. */
static inline long double value_round(long double x, int digits, int low)
{
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    frexpl(x, &exponent); /* x is below 2^exponent */
    int quantum = exponent - digits > low ? exponent - digits : low;
    long double steps = ldexpl(fabsl(x), -quantum), down = floorl(steps);
    long double rest = steps - down;
    if (rest > 0.5L || (rest == 0.5L && fmodl(down, 2) == 1))
        down += 1;
    return copysignl(ldexpl(down, quantum), x);
}

/* Converts a real number to a float type. Returns false if the type has no such value. */
static inline bool value_to_float(const struct value_type *t, long double x, bool exact,
                                  long double *ret)
{
    int digits = t->digits, low = t->low, high = t->high;
    long double y;
    if (t->kind != 's') {
        bool single = t->dtype == SHMVIEW_FLOAT32 || t->dtype == SHMVIEW_COMPLEX64;
        bool is_long = t->dtype == SHMVIEW_LONGDOUBLE;
        digits = single ? FLT_MANT_DIG : is_long ? LDBL_MANT_DIG : DBL_MANT_DIG;
        high = (single ? FLT_MAX_EXP : is_long ? LDBL_MAX_EXP : DBL_MAX_EXP) - 1;
        low = (single ? FLT_MIN_EXP : is_long ? LDBL_MIN_EXP : DBL_MIN_EXP) - digits;
    }
    *ret = x;
    if (isnan(x))
        return true;
    if (isinf(x))
        return !value_type_is_finite(t);
    if (t->dtype == SHMVIEW_FLOAT8_E8M0FNU) {
        int exponent;
        if (x <= 0)
            return false;
        y = ldexpl(1, -127);
        if (x > y) { /* ties between codes go up: 1.5 is as far from 1 as from 2 */
            long double half = frexpl(x, &exponent);
            y = ldexpl(1, half >= 0.75L ? exponent : exponent - 1);
        }
    } else {
        y = value_round(x, digits, low);
    }
    /* the highest number of a type that ends with NaN has one bit fewer */
    long double most = ldexpl(2, high) - ldexpl(1, high - digits + 1);
    if (t->dtype == SHMVIEW_FLOAT8_E4M3FN)
        most = 448;
    if (fabsl(y) > most || (exact && y != x))
        return false;
    *ret = y == 0 && value_type_is_uz(t) ? 0 : y;
    return true;
}

static inline bool value_is_whole(struct value v, huge *ret)
{
    if (v.is_integer) {
        *ret = v.i;
        return true;
    }
    if (v.im != 0 || !(fabsl(v.re) < 0x1p100L) || floorl(v.re) != v.re)
        return false;
    *ret = (huge)v.re;
    return true;
}

/* Converts v to type t. Returns false if t has no such value. */
static inline bool value_convert(const struct value_type *t, struct value v, struct value *ret)
{
    huge i;
    bool exact = v.is_integer;
    if (t->kind == 'b') {
        *ret = value_int(v.is_integer ? v.i != 0 : v.re != 0 || v.im != 0);
        return true;
    }
    if (t->kind == 'i' || t->kind == 'u') {
        int bits = 8 * (int)t->bytes - (t->kind == 'i');
        huge low = t->kind == 'i' ? -((huge)1 << bits) : 0;
        if (!value_is_whole(v, &i) || i < low || i >= (huge)1 << bits)
            return false;
        *ret = value_int(i);
        return true;
    }
    if (v.is_integer)
        v = value_real((long double)v.i); /* of at most 64 bits: exact, see below */
    ret->is_integer = false;
    ret->im = 0;
    if (!value_to_float(t, v.re, exact, &ret->re))
        return false;
    return t->kind == 'c' ? value_to_float(t, v.im, exact, &ret->im) : v.im == 0;
}
_Static_assert(LDBL_MANT_DIG >= 64, "these tests take every integer for a long double");

static inline bool value_same_real(long double a, long double b)
{
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b));
}

/* Compares two values. NaN equals NaN, and zeros have signs. */
static inline bool value_same(struct value a, struct value b)
{
    if (a.is_integer || b.is_integer)
        return a.is_integer && b.is_integer && a.i == b.i;
    return value_same_real(a.re, b.re) && value_same_real(a.im, b.im);
}

/* --- Edges --------------------------------------------------------------- */

/* Writes the integers around all powers of two to ret, which has room for VALUE_EDGES. Returns how
 * many. */
#define VALUE_EDGES 600
static inline size_t value_integers(huge *ret)
{
    size_t n = 0;
    ret[n++] = 0;
    for (int bit = 0; bit <= 64; bit++)
        for (int d = -1; d <= 1; d++) {
            huge i = ((huge)1 << bit) + d;
            if (i <= (huge)UINT64_MAX)
                ret[n++] = i;
            if (-i >= INT64_MIN && bit < 64)
                ret[n++] = -i;
        }
    ret[n++] = (huge)3 << 52;
    ret[n++] = ((huge)3 << 52) + 1;
    ret[n++] = 0x7fffff7fffffffff; /* between two floats */
    return n;
}

static inline size_t value_doubles(double *ret)
{
    static const double some[] = {0.0,
                                  -0.0,
                                  0.5,
                                  1.5,
                                  2.5,
                                  0.1,
                                  1e-300,
                                  5e-324,
                                  1e300,
                                  DBL_MAX,
                                  FLT_MAX,
                                  0x1.ffffffp127,
                                  0x1.fffffefffffffp127,
                                  FLT_MIN,
                                  0x1p-149,
                                  0x1p-150,
                                  0x1.8p-150,
                                  65504.0,
                                  65519.99,
                                  65520.0,
                                  448.0,
                                  464.0,
                                  464.1,
                                  240.0,
                                  248.0,
                                  57344.0,
                                  61440.0,
                                  15.5,
                                  15.75,
                                  30.0,
                                  31.0,
                                  0x1p-24,
                                  0x1p-25,
                                  0x1.8p-25,
                                  0x1p-127,
                                  0x1p-128,
                                  0x1p127,
                                  0x1.8p127,
                                  0x1.7p127,
                                  3.0,
                                  6.0,
                                  0x1.fe8p127,
                                  0x1.ffp127,
                                  127.5,
                                  255.0,
                                  256.0,
                                  1.0};
    size_t n = 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        ret[n++] = some[i];
        ret[n++] = -some[i];
    }
    for (int e = 7; e <= 65; e++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double x = sign * ldexp(1, e);
            ret[n++] = x;
            ret[n++] = nextafter(x, 0);
            ret[n++] = nextafter(x, sign * (double)INFINITY);
        }
    ret[n++] = (double)INFINITY;
    ret[n++] = -(double)INFINITY;
    ret[n++] = (double)NAN;
    return n;
}

#endif
