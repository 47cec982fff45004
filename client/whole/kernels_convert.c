/* SPDX-License-Identifier: Apache-2.0 */
/* The 121 loops that convert between eleven types, made from one pattern for each pair of classes
 * of types.
 *
 * A loop that stopped at the first element without a value could not be vectorised. So a kernel
 * converts a group of elements into a buffer, and accumulates in one word whether any of them might
 * be wrong. It stores the group if none is; otherwise it goes through the group one by one and
 * stops at the element. Conditions guard the casts of floats. They compile without branches only
 * with -fno-trapping-math, which the build sets for this file. */
#include <float.h>
#ifdef KERNELS_AVX2
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

#include <shmview/element.h>

#include "client/whole/kernels.h"

/* Calls K(from type, its class, to type, its class) for each pair. Classes: S signed, U unsigned, F
 * float, B bool. */
#define EACH_TO(K, from, class)                                                                    \
    K(from, class, int8, S)                                                                        \
    K(from, class, int16, S)                                                                       \
    K(from, class, int32, S)                                                                       \
    K(from, class, int64, S)                                                                       \
    K(from, class, uint8, U)                                                                       \
    K(from, class, uint16, U)                                                                      \
    K(from, class, uint32, U)                                                                      \
    K(from, class, uint64, U)                                                                      \
    K(from, class, float32, F)                                                                     \
    K(from, class, float64, F)                                                                     \
    K(from, class, truth, B)
#define EACH_PAIR(K)                                                                               \
    EACH_TO(K, int8, S)                                                                            \
    EACH_TO(K, int16, S)                                                                           \
    EACH_TO(K, int32, S)                                                                           \
    EACH_TO(K, int64, S)                                                                           \
    EACH_TO(K, uint8, U)                                                                           \
    EACH_TO(K, uint16, U)                                                                          \
    EACH_TO(K, uint32, U)                                                                          \
    EACH_TO(K, uint64, U)                                                                          \
    EACH_TO(K, float32, F)                                                                         \
    EACH_TO(K, float64, F)                                                                         \
    EACH_TO(K, truth, B)

/* For each element type: its C type, an unsigned type of the same width that accumulates error
 * bits, and a variant of the C type that need not be aligned. */
#define TYPE(name, type, word)                                                                     \
    typedef type name##_value;                                                                     \
    typedef word name##_word;                                                                      \
    typedef type name##_at __attribute__((aligned(1), may_alias))
TYPE(int8, int8_t, uint8_t);
TYPE(int16, int16_t, uint16_t);
TYPE(int32, int32_t, uint32_t);
TYPE(int64, int64_t, uint64_t);
TYPE(uint8, uint8_t, uint8_t);
TYPE(uint16, uint16_t, uint16_t);
TYPE(uint32, uint32_t, uint32_t);
TYPE(uint64, uint64_t, uint64_t);
TYPE(float32, float, uint32_t);
TYPE(float64, double, uint64_t);
TYPE(truth, uint8_t, uint8_t);

#define BITS(type)     (8 * (int)sizeof(type##_value))
#define MANTISSA(type) (sizeof(type##_value) == sizeof(float) ? FLT_MANT_DIG : DBL_MANT_DIG)
#define FITS(from, to) (sizeof(from##_value) <= sizeof(to##_value))
#define WORD(from, x)  ((from##_word)(x))

/* The set for AVX2 does not use all helpers. */
#define HELPER __attribute__((unused)) static inline

/* The number of elements in a group. Measured: the fastest one for each compiler. */
#ifdef __clang__
#define GROUP 16
#else
#define GROUP 64
#endif

/* Defines one kernel. Its arguments are expressions:
 *
 *     value    the element x, converted to the new type (it becomes y)
 *     total    a constant: every x has a value in the new type
 *     wrong    whether this x has none; used if total is false
 *     note     bits of one element that are or-ed to those of its group, in `all`, of type word
 *     suspect  whether `all` shows that an element of the group may be wrong */
#define KERNEL(from, to, value, total, word, note, suspect, wrong)                                 \
    enum {                                                                                         \
        from##_to_##to##_is_total = (total)                                                        \
    };                                                                                             \
    static size_t from##_to_##to(void *restrict ret, ptrdiff_t to_step,                            \
                                 const void *restrict source, ptrdiff_t from_step, size_t n)       \
    {                                                                                              \
        to##_at *q = ret;                                                                          \
        const from##_at *p = source;                                                               \
        const bool is_plain =                                                                      \
            to_step == (ptrdiff_t)sizeof *q && from_step == (ptrdiff_t)sizeof *p;                  \
        size_t at = 0;                                                                             \
        for (; (total) && is_plain && at < n; at++) {                                              \
            from##_value x = p[at];                                                                \
            to##_value y = (to##_value)(value);                                                    \
            q[at] = y;                                                                             \
        }                                                                                          \
        while (at < n) {                                                                           \
            size_t end = n;                                                                        \
            if (!(total) && is_plain && n >= GROUP) {                                              \
                to##_value group[GROUP];                                                           \
                word all = 0;                                                                      \
                at = at < n - GROUP ? at : n - GROUP; /* the last group may convert some again */  \
                end = at + GROUP;                                                                  \
                for (size_t i = 0; i < GROUP; i++) {                                               \
                    from##_value x = p[at + i];                                                    \
                    to##_value y = (to##_value)(value);                                            \
                    group[i] = y;                                                                  \
                    all = (word)(all | (note));                                                    \
                }                                                                                  \
                if (!(suspect)) {                                                                  \
                    for (size_t i = 0; i < GROUP; i++)                                             \
                        q[at + i] = group[i];                                                      \
                    at = end;                                                                      \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            const unsigned char *r = (const unsigned char *)source + (ptrdiff_t)at * from_step;    \
            unsigned char *w = (unsigned char *)ret + (ptrdiff_t)at * to_step;                     \
            for (; at < end; at++, r += from_step, w += to_step) {                                 \
                from##_value x = *(const from##_at *)r;                                            \
                to##_value y = (to##_value)(value);                                                \
                if (!(total) && (wrong))                                                           \
                    return at;                                                                     \
                *(to##_at *)w = y;                                                                 \
            }                                                                                      \
        }                                                                                          \
        return n;                                                                                  \
    }

/* --- From integers ------------------------------------------------------- */

/* Whether an element of the group does not fit into so many bits. */
#define ABOVE(from, bits) (WORD(from, all >> ((bits) < BITS(from) ? (bits) : 0)) != 0)
/* A signed number fits into so many bits if the number plus 2^(bits - 1) fits as an unsigned
 * one. */
#define RAISED(from, bits) WORD(from, WORD(from, x) + (WORD(from, 1) << (((bits)-1) % BITS(from))))
/* Whether the value is another one after the way there and back. */
#define CHANGED(from) (from##_value) y != x

#define PAIR_SS(from, to)                                                                          \
    KERNEL(from, to, x, FITS(from, to), from##_word, RAISED(from, BITS(to)),                       \
           ABOVE(from, BITS(to)), CHANGED(from))
#define PAIR_UU(from, to)                                                                          \
    KERNEL(from, to, x, FITS(from, to), from##_word, x, ABOVE(from, BITS(to)), CHANGED(from))
#define PAIR_US(from, to)                                                                          \
    KERNEL(from, to, x, BITS(from) < BITS(to), from##_word, x, ABOVE(from, BITS(to) - 1),          \
           y < 0 || CHANGED(from))
/* The highest bit of a negative number is set, so the sign is checked like a bit that does not
 * fit. */
#define PAIR_SU(from, to)                                                                          \
    KERNEL(from, to, x, false, from##_word, WORD(from, x),                                         \
           ABOVE(from, BITS(to) < BITS(from) ? BITS(to) : BITS(from) - 1), x < 0 || CHANGED(from))

/* Whether a float with so many bits of mantissa would round a. An integer is exactly representable
 * if its highest and its lowest set bit are fewer than `bits` places apart. a | -a has the lowest
 * set bit and all bits above it. */
HELPER bool is_rounded(uint64_t a, int bits)
{
    return (a >> bits & (a | (0 - a))) != 0;
}
#define PAIR_SF(from, to)                                                                          \
    KERNEL(from, to, x, BITS(from) <= MANTISSA(to), from##_word, RAISED(from, MANTISSA(to) + 1),   \
           ABOVE(from, MANTISSA(to) + 1),                                                          \
           is_rounded(x < 0 ? 0 - (uint64_t)x : (uint64_t)x, MANTISSA(to)))
#define PAIR_UF(from, to)                                                                          \
    KERNEL(from, to, x, BITS(from) <= MANTISSA(to), from##_word, x, ABOVE(from, MANTISSA(to)),     \
           is_rounded(x, MANTISSA(to)))

/* --- From floats --------------------------------------------------------- */

#define FLOAT_HELPERS(name)                                                                        \
    /* Returns 0 instead of NaN and of values outside the range, whose cast would be undefined. */ \
    HELPER name##_value name##_inside(name##_value x, name##_value low, name##_value high)         \
    {                                                                                              \
        x = x >= low ? x : 0;                                                                      \
        return x < high ? x : 0;                                                                   \
    }                                                                                              \
    /* Returns 0 for +0 and -0, and another value for every other number. */                       \
    HELPER name##_word name##_bits(name##_value x)                                                 \
    {                                                                                              \
        name##_word bits;                                                                          \
        memcpy(&bits, &x, sizeof bits);                                                            \
        return bits << 1;                                                                          \
    }
FLOAT_HELPERS(float32)
FLOAT_HELPERS(float64)

/* The limits -2^(bits - 1) and 2^(bits - 1) are exact as floats; INT64_MAX would not be. */
#define HIGH(from, to) (from##_value)((uint64_t)1 << (BITS(to) - 1))
#define PAIR_FS(from, to)                                                                          \
    KERNEL(from, to, from##_inside(x, -HIGH(from, to), HIGH(from, to)), false, from##_word,        \
           from##_bits((from##_value)y - x), all != 0, CHANGED(from))
#define PAIR_FU(from, to)                                                                          \
    KERNEL(from, to, from##_inside(x, 0, 2 * HIGH(from, to)), false, from##_word,                  \
           from##_bits((from##_value)y - x), all != 0, CHANGED(from))
/* A finite number that is too large becomes infinite, which is wrong. An infinite result is suspect
 * only, because the element may have been infinite before. */
#define PAIR_FF(from, to)                                                                          \
    KERNEL(from, to, x, FITS(from, to), uint32_t, fabsf((float)y) > FLT_MAX ? UINT32_MAX : 0,      \
           all != 0, isinf(y) && !isinf(x))

/* --- bool: any byte but 0 is true ---------------------------------------- */

#define PAIR_SB(from, to) KERNEL(from, to, x != 0, true, from##_word, 0, all != 0, y > 1)
#define PAIR_UB(from, to) PAIR_SB(from, to)
#define PAIR_FB(from, to) PAIR_SB(from, to)
#define PAIR_BB(from, to) PAIR_SB(from, to)
#define PAIR_BS(from, to) PAIR_SB(from, to)
#define PAIR_BU(from, to) PAIR_SB(from, to)
#define PAIR_BF(from, to) PAIR_SB(from, to)

/* --- All of them --------------------------------------------------------- */

#ifdef KERNELS_AVX2
PAIR_FF(float64, float32)

/* The compiler's loops for the next two pairs are slower than these, which keep a group in
 * registers. */
enum {
    LANES = 8,
    REGISTERS = 4,
    STEP = LANES * REGISTERS,
};

/* The plain kernel converts the rest, and finds the element that has no value. */
static size_t convert_rest(uint32_t to, void *ret, ptrdiff_t to_step, uint32_t from,
                           const void *source, ptrdiff_t from_step, size_t at, size_t n)
{
    unsigned char *w = (unsigned char *)ret + (ptrdiff_t)at * to_step;
    const unsigned char *r = (const unsigned char *)source + (ptrdiff_t)at * from_step;
    return at + kernel_to_convert_plain(to, from).run(w, to_step, r, from_step, n - at);
}

/* An integer from -2^24 on and below 2^24 has a float; of the others the plain kernel looks at each
 * bit. */
static size_t int32_to_float32(void *restrict ret, ptrdiff_t to_step, const void *restrict source,
                               ptrdiff_t from_step, size_t n)
{
    const __m256i raise = _mm256_set1_epi32(1 << 24), above = _mm256_set1_epi32(-(1 << 25));
    float32_at *q = ret;
    const int32_at *p = source;
    size_t at = 0;
    if (to_step == (ptrdiff_t)sizeof *q && from_step == (ptrdiff_t)sizeof *p)
        for (; n - at >= STEP; at += STEP) {
            __m256i x[REGISTERS], all = _mm256_setzero_si256();
            for (int i = 0; i < REGISTERS; i++) {
                x[i] = _mm256_loadu_si256((const __m256i_u *)(p + at + i * LANES));
                all = _mm256_or_si256(all, _mm256_add_epi32(x[i], raise));
            }
            if (!_mm256_testz_si256(all, above))
                break;
            for (int i = 0; i < REGISTERS; i++)
                _mm256_storeu_ps((float *)(q + at + i * LANES), _mm256_cvtepi32_ps(x[i]));
        }
    return convert_rest(SHMVIEW_FLOAT32, ret, to_step, SHMVIEW_INT32, source, from_step, at, n);
}

/* No guard is needed before the cast: the instruction makes INT32_MIN of NaN and of what is out of
 * range, and of these none is equal to -2^31. */
static size_t float32_to_int32(void *restrict ret, ptrdiff_t to_step, const void *restrict source,
                               ptrdiff_t from_step, size_t n)
{
    int32_at *q = ret;
    const float32_at *p = source;
    size_t at = 0;
    if (to_step == (ptrdiff_t)sizeof *q && from_step == (ptrdiff_t)sizeof *p)
        for (; n - at >= STEP; at += STEP) {
            __m256i y[REGISTERS];
            __m256 same = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
            for (int i = 0; i < REGISTERS; i++) {
                __m256 x = _mm256_loadu_ps((const float *)(p + at + i * LANES));
                y[i] = _mm256_cvttps_epi32(x);
                same = _mm256_and_ps(same, _mm256_cmp_ps(_mm256_cvtepi32_ps(y[i]), x, _CMP_EQ_OQ));
            }
            if (_mm256_movemask_ps(same) != (1 << LANES) - 1)
                break;
            for (int i = 0; i < REGISTERS; i++)
                _mm256_storeu_si256((__m256i_u *)(q + at + i * LANES), y[i]);
        }
    return convert_rest(SHMVIEW_INT32, ret, to_step, SHMVIEW_FLOAT32, source, from_step, at, n);
}

struct kernel_conversion kernel_to_convert_avx2(uint32_t to, uint32_t from)
{
    if (to == SHMVIEW_FLOAT32 && from == SHMVIEW_FLOAT64)
        return (struct kernel_conversion){float64_to_float32, float64_to_float32_is_total};
    if (to == SHMVIEW_FLOAT32 && from == SHMVIEW_INT32)
        return (struct kernel_conversion){int32_to_float32, false};
    if (to == SHMVIEW_INT32 && from == SHMVIEW_FLOAT32)
        return (struct kernel_conversion){float32_to_int32, false};
    return (struct kernel_conversion){0};
}

#else
#define DEFINE(from, from_class, to, to_class) PAIR_##from_class##to_class(from, to)
EACH_PAIR(DEFINE)

/* Rows and columns of the table of kernels, without gaps. */
enum place {
    place_int8,
    place_int16,
    place_int32,
    place_int64,
    place_uint8,
    place_uint16,
    place_uint32,
    place_uint64,
    place_float32,
    place_float64,
    place_truth,
    N_PLACES,
};

/* Returns the place of a type, or N_PLACES. A char is converted as a uint8, an address as an
 * unsigned integer. Entries are one more than the place, because a type that is not listed reads as
 * 0. */
static enum place place_of(uint32_t dtype)
{
    static const uint8_t places[] = {
        [SHMVIEW_INT8] = place_int8 + 1,
        [SHMVIEW_INT16] = place_int16 + 1,
        [SHMVIEW_INT32] = place_int32 + 1,
        [SHMVIEW_INT64] = place_int64 + 1,
        [SHMVIEW_UINT8] = place_uint8 + 1,
        [SHMVIEW_UINT16] = place_uint16 + 1,
        [SHMVIEW_UINT32] = place_uint32 + 1,
        [SHMVIEW_UINT64] = place_uint64 + 1,
        [SHMVIEW_FLOAT32] = place_float32 + 1,
        [SHMVIEW_FLOAT64] = place_float64 + 1,
        [SHMVIEW_BOOL] = place_truth + 1,
        [SHMVIEW_CHAR] = place_uint8 + 1,
        [SHMVIEW_POINTER] = (sizeof(void *) == 8 ? place_uint64 : place_uint32) + 1,
    };
    return dtype < sizeof places && places[dtype] ? places[dtype] - 1 : N_PLACES;
}

struct kernel_conversion kernel_to_convert_plain(uint32_t to, uint32_t from)
{
#define ROW(from, from_class, to, to_class)                                                        \
    [place_##from][place_##to] = {from##_to_##to, from##_to_##to##_is_total},
    static const struct kernel_conversion table[N_PLACES][N_PLACES] = {EACH_PAIR(ROW)};
    enum place column = place_of(to), row = place_of(from);
    if (column == N_PLACES || row == N_PLACES)
        return (struct kernel_conversion){0};
    return table[row][column];
}
#endif
