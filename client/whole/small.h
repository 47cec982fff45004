/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of one or two bytes: one codec, told apart by a few parameters.
 *
 * float16 is IEEE 754's binary16, bfloat16 the upper half of a binary32. The kinds of float8
 * and their special values are those of the README of github.com/jax-ml/ml_dtypes, whose
 * names DLPack has taken over (github.com/dmlc/dlpack, DLDataTypeCode); e4m3fn and e5m2 are
 * also in the OCP 8-bit Floating Point Specification, e8m0fnu in OCP Microscaling Formats.
 *
 * Everything is inline and takes the kind by value: where that is a constant the compiler
 * makes a codec for it alone. */
#ifndef CLIENT_SMALL_H
#define CLIENT_SMALL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <shmview/element.h>

enum small_specials {
    SMALL_IEEE, /* the highest exponent: infinities and NaNs */
    SMALL_FN,   /* no infinity; NaN is the highest code of either sign */
    SMALL_FNUZ, /* no infinity; NaN is where negative zero would be */
    SMALL_FNU,  /* unsigned, no infinity, no zero; NaN is the highest code */
};

/* The value of a code with exponent field e and mantissa field m is 2^(e - bias) * 1.m, or
 * 2^(1 - bias) * 0.m where e is 0, but for SMALL_FNU, which has no zero to go down to. */
struct small {
    int exponent, mantissa; /* bits of the fields */
    int bias;
    enum small_specials specials;
};

/* X(name, enum shmview_dtype, unsigned integer with the bits, exponent, mantissa, bias, specials)
 */
#define SMALL_LIST(X)                                                                              \
    X(float16, SHMVIEW_FLOAT16, uint16_t, 5, 10, 15, SMALL_IEEE)                                   \
    X(bfloat16, SHMVIEW_BFLOAT16, uint16_t, 8, 7, 127, SMALL_IEEE)                                 \
    X(e3m4, SHMVIEW_FLOAT8_E3M4, uint8_t, 3, 4, 3, SMALL_IEEE)                                     \
    X(e4m3, SHMVIEW_FLOAT8_E4M3, uint8_t, 4, 3, 7, SMALL_IEEE)                                     \
    X(e4m3b11fnuz, SHMVIEW_FLOAT8_E4M3B11FNUZ, uint8_t, 4, 3, 11, SMALL_FNUZ)                      \
    X(e4m3fn, SHMVIEW_FLOAT8_E4M3FN, uint8_t, 4, 3, 7, SMALL_FN)                                   \
    X(e4m3fnuz, SHMVIEW_FLOAT8_E4M3FNUZ, uint8_t, 4, 3, 8, SMALL_FNUZ)                             \
    X(e5m2, SHMVIEW_FLOAT8_E5M2, uint8_t, 5, 2, 15, SMALL_IEEE)                                    \
    X(e5m2fnuz, SHMVIEW_FLOAT8_E5M2FNUZ, uint8_t, 5, 2, 16, SMALL_FNUZ)                            \
    X(e8m0fnu, SHMVIEW_FLOAT8_E8M0FNU, uint8_t, 8, 0, 127, SMALL_FNU)

static inline uint32_t small_sign(struct small k)
{
    return k.specials == SMALL_FNU ? 0 : 1u << (k.exponent + k.mantissa);
}

static inline uint32_t small_nan(struct small k)
{
    uint32_t all = (1u << (k.exponent + k.mantissa)) - 1;
    switch (k.specials) {
    case SMALL_IEEE: /* a quiet one */
        return (all & ~((1u << k.mantissa) - 1)) | 1u << (k.mantissa - 1);
    case SMALL_FNUZ:
        return all + 1;
    default:
        return all;
    }
}

/* The largest finite number. */
static inline uint32_t small_max(struct small k)
{
    uint32_t all = (1u << (k.exponent + k.mantissa)) - 1;
    switch (k.specials) {
    case SMALL_IEEE:
        return (all & ~((1u << k.mantissa) - 1)) - 1;
    case SMALL_FNUZ:
        return all;
    default:
        return all - 1;
    }
}

static inline float small_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Without a branch, so that a loop over many can be vectorised. */
static inline uint32_t small_select(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0 - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* Exact: every one of these numbers is a float. */
static inline float small_decode(struct small k, uint32_t code)
{
    const uint32_t float_nan = 0x7fc00000, float_infinity = 0x7f800000;
    uint32_t bits;
    if (k.exponent == 8 && k.specials == SMALL_IEEE)
        return small_float(code << 16);
    if (k.specials == SMALL_FNU) { /* 2^-127 is a subnormal float */
        bits = small_select(code == 0, 0x00400000, code << 23);
        return small_float(small_select(code == small_nan(k), float_nan, bits));
    }
    uint32_t sign = code & small_sign(k);
    uint32_t magnitude = code ^ sign;
    uint32_t m = magnitude & ((1u << k.mantissa) - 1);
    float subnormal = (float)(int32_t)m * small_float((uint32_t)(128 - k.bias - k.mantissa) << 23);
    uint32_t normal = (magnitude << (23 - k.mantissa)) + ((uint32_t)(127 - k.bias) << 23);
    memcpy(&bits, &subnormal, sizeof bits);
    bits = small_select(magnitude >> k.mantissa != 0, normal, bits);
    if (k.specials == SMALL_IEEE) {
        uint32_t infinity = small_max(k) + 1;
        bits = small_select(magnitude == infinity, float_infinity, bits);
        bits = small_select(magnitude > infinity, float_nan, bits);
    } else {
        bool is_nan = (k.specials == SMALL_FN ? magnitude : code) == small_nan(k);
        bits = small_select(is_nan, float_nan, bits);
    }
    return small_float(bits | sign << (31 - k.exponent - k.mantissa));
}

/* Rounds significand * 2^(exponent - 63), whose highest bit is set, and a little more where
 * there is a rest, to the nearest number, to even in the middle. False if that is too large,
 * if the kind has no such sign, or if exact is set and something was rounded. */
static inline bool small_round(struct small k, bool negative, int exponent, uint64_t significand,
                               bool rest, bool exact, uint32_t *ret)
{
    if (k.specials == SMALL_FNU) { /* ties go up: the one bit of the lower number is odd */
        int up = exponent < -k.bias ? -k.bias - exponent : significand >= (uint64_t)3 << 62;
        bool rounded = significand << 1 || rest || exponent < -k.bias;
        if (negative || (exact && rounded) || exponent + up > k.bias)
            return false;
        *ret = (uint32_t)(exponent + up + k.bias);
        return true;
    }
    int lowest = 1 - k.bias; /* below, the steps become no smaller */
    int e = exponent < lowest ? lowest : exponent;
    int drop = 63 - k.mantissa + (e - exponent); /* bits of the significand; more than 1 */
    uint64_t kept = drop < 64 ? significand >> drop : 0;
    uint64_t lost = drop < 64 ? significand << (64 - drop) : drop == 64 ? significand : 1;
    const uint64_t half = (uint64_t)1 << 63;
    if (exact && (lost || rest))
        return false;
    kept += lost > half || (lost == half && (rest || kept & 1));
    /* the leading bit of what is kept counts as one step of the exponent field */
    uint64_t code = ((uint64_t)(e - lowest) << k.mantissa) + kept;
    if (code > small_max(k))
        return false;
    bool has_sign = negative && (code || k.specials != SMALL_FNUZ);
    *ret = (uint32_t)code | (has_sign ? small_sign(k) : 0);
    return true;
}

/* 0, an infinity or NaN. */
static inline bool small_special(struct small k, bool negative, bool zero, bool infinite,
                                 uint32_t *ret)
{
    uint32_t code = zero ? 0 : infinite ? small_max(k) + 1 : small_nan(k);
    if ((zero && k.specials == SMALL_FNU) || (infinite && k.specials != SMALL_IEEE))
        return false;
    bool has_sign = negative && k.specials != SMALL_FNUZ;
    *ret = code | (has_sign ? small_sign(k) : 0);
    return true;
}

static inline bool small_encode(struct small k, double x, bool exact, uint32_t *ret)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bool negative = bits >> 63;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits << 12 >> 1;
    if (exponent == 0x7ff || bits << 1 == 0)
        return small_special(k, negative, exponent == 0, exponent && !m, ret);
    /* a subnormal double is rounded away as the larger 2^-1023 is */
    return small_round(k, negative, exponent - 1023, m | (uint64_t)1 << 63, false, exact, ret);
}

#endif
