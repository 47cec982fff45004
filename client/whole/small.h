/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of one or two bytes: one codec for all, with a few parameters for each type.
 *
 * float16 is IEEE 754's binary16, bfloat16 the upper half of a binary32. The types of float8 and
 * their special values are those of the README of github.com/jax-ml/ml_dtypes, whose names DLPack
 * uses (github.com/dmlc/dlpack, DLDataTypeCode). e4m3fn and e5m2 are also in the OCP 8-bit Floating
 * Point Specification, e8m0fnu is in OCP Microscaling Formats.
 *
 * Everything is inline and takes the parameters by value. Where they are constants, the compiler
 * makes a codec for one type. Decoding has no branch on the code, so a loop over many can be
 * vectorised. */
#ifndef CLIENT_SMALL_H
#define CLIENT_SMALL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <shmview/element.h>

enum small_specials {
    SMALL_IEEE, /* the highest exponent has infinities and NaNs */
    SMALL_FN,   /* no infinity; NaN is the highest code of either sign */
    SMALL_FNUZ, /* no infinity; NaN has the code of negative zero */
    SMALL_FNU,  /* unsigned, no infinity, no zero; NaN is the highest code */
};

/* A type of small float. The value of a code with exponent field e and mantissa field m is 2^(e -
 * bias) * 1.m, or 2^(1 - bias) * 0.m if e is 0. The latter does not hold for SMALL_FNU, which has
 * neither zero nor subnormals. */
struct small {
    int exponent, mantissa; /* bits of the fields */
    int bias;
    enum small_specials specials;
};

/* Calls X(name, enum shmview_dtype, an unsigned integer of the same size, exponent, mantissa, bias,
 * specials) for each type. */
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

/* Returns the sign bit, or 0 if the type has no sign. */
static inline uint32_t small_sign(struct small k)
{
    return k.specials == SMALL_FNU ? 0 : 1u << (k.exponent + k.mantissa);
}

/* Returns the code of a NaN without a sign. */
static inline uint32_t small_nan(struct small k)
{
    uint32_t all = (1u << (k.exponent + k.mantissa)) - 1;
    switch (k.specials) {
    case SMALL_IEEE: /* a quiet NaN: the highest bit of the mantissa is set */
        return (all & ~((1u << k.mantissa) - 1)) | 1u << (k.mantissa - 1);
    case SMALL_FNUZ:
        return all + 1;
    default:
        return all;
    }
}

/* Returns the code of the largest finite number. If the type has an infinity, it is the next
 * code. */
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

/* Returns the float with these bits. */
static inline float small_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Returns one of two values without a branch, so that a loop over many can be vectorised. */
static inline uint32_t small_select(bool condition, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0 - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* Decodes a code to float32. This is exact, because each of these numbers is a float. Both the
 * normal and the subnormal value are computed, and the right one is selected. */
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

/* Rounds a number to the nearest one of the type, and to even in the middle. The number is
 * significand * 2^(exponent - 63), whose highest bit is set, and a little more if rest is set.
 * Returns false if the result is too large, if the type has no such sign, or if exact is set and
 * something was rounded. */
static inline bool small_round(struct small k, bool negative, int exponent, uint64_t significand,
                               bool rest, bool exact, uint32_t *ret)
{
    if (k.specials == SMALL_FNU) {
        /* the only bit of a number is the leading 1, which is odd: ties go up */
        int up = exponent < -k.bias ? -k.bias - exponent : significand >= (uint64_t)3 << 62;
        bool rounded = significand << 1 || rest || exponent < -k.bias;
        if (negative || (exact && rounded) || exponent + up > k.bias)
            return false;
        *ret = (uint32_t)(exponent + up + k.bias);
        return true;
    }
    int lowest = 1 - k.bias; /* the exponent of subnormals, below which steps become no smaller */
    int e = exponent < lowest ? lowest : exponent;
    int drop = 63 - k.mantissa + (e - exponent); /* bits of the significand; more than 1 */
    uint64_t kept = drop < 64 ? significand >> drop : 0;
    uint64_t lost = drop < 64 ? significand << (64 - drop) : drop == 64 ? significand : 1;
    const uint64_t half = (uint64_t)1 << 63;
    if (exact && (lost || rest))
        return false;
    kept += lost > half || (lost == half && (rest || kept & 1));
    /* the leading bit of kept adds one step to the exponent field, and so does a carry */
    uint64_t code = ((uint64_t)(e - lowest) << k.mantissa) + kept;
    if (code > small_max(k))
        return false;
    bool has_sign = negative && (code || k.specials != SMALL_FNUZ);
    *ret = (uint32_t)code | (has_sign ? small_sign(k) : 0);
    return true;
}

/* Encodes 0, an infinity or a NaN. Returns false if the type has no such number. A NaN loses its
 * sign if the type has only one NaN. */
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

/* Encodes a double. exact: refuses a number that would be rounded. Returns false for a number that
 * the type does not have: one that is too large, and specials as small_special() refuses them. */
static inline bool small_encode(struct small k, double x, bool exact, uint32_t *ret)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bool negative = bits >> 63;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits << 12 >> 1;
    if (exponent == 0x7ff || bits << 1 == 0)
        return small_special(k, negative, exponent == 0, exponent && !m, ret);
    /* a subnormal double is taken for a larger number, below 2^-1022, that rounds to the same
     * code */
    return small_round(k, negative, exponent - 1023, m | (uint64_t)1 << 63, false, exact, ret);
}

#endif
