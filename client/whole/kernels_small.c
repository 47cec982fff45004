/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that decode and encode floats of one or two bytes. Each type of small.h gets a loop of its
 * own, in which the parameters of its codec are constants. */
#include "client/whole/kernels.h"
#include "client/whole/small.h"

typedef uint8_t uint8_t_at __attribute__((aligned(1), may_alias));
typedef uint16_t uint16_t_at __attribute__((aligned(1), may_alias));
typedef float float_at __attribute__((aligned(1), may_alias));
typedef double double_at __attribute__((aligned(1), may_alias));

#define DECODE(name, dtype, type, exponent, mantissa, bias, specials)                              \
    static size_t decode_##name(void *restrict to, const void *restrict from, size_t n)            \
    {                                                                                              \
        const struct small kind = {exponent, mantissa, bias, specials};                            \
        float_at *q = to;                                                                          \
        const type##_at *p = from;                                                                 \
        for (size_t i = 0; i < n; i++)                                                             \
            q[i] = small_decode(kind, p[i]);                                                       \
        return n;                                                                                  \
    }
SMALL_LIST(DECODE)

/* Encodes until a value does not fit. There are two loops for each type: one rounds, the other
 * refuses to. */
#define ENCODE_AS(name, type, exponent, mantissa, bias, specials, exact)                           \
    static size_t name(void *restrict to, const void *restrict from, size_t n)                     \
    {                                                                                              \
        const struct small kind = {exponent, mantissa, bias, specials};                            \
        type##_at *q = to;                                                                         \
        const double_at *p = from;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint32_t code;                                                                         \
            if (!small_encode(kind, p[i], exact, &code))                                           \
                return i;                                                                          \
            q[i] = (type)code;                                                                     \
        }                                                                                          \
        return n;                                                                                  \
    }
#define ENCODE(name, dtype, type, exponent, mantissa, bias, specials)                              \
    ENCODE_AS(encode_##name, type, exponent, mantissa, bias, specials, false)                      \
    ENCODE_AS(encode_exact_##name, type, exponent, mantissa, bias, specials, true)
SMALL_LIST(ENCODE)

kernel_code *kernel_to_decode(uint32_t from)
{
    switch (from) {
#define CASE(name, dtype, ...)                                                                     \
    case dtype:                                                                                    \
        return decode_##name;
        SMALL_LIST(CASE)
#undef CASE
    default:
        return NULL;
    }
}

kernel_code *kernel_to_encode(uint32_t to, bool exact)
{
    switch (to) {
#define CASE(name, dtype, ...)                                                                     \
    case dtype:                                                                                    \
        return exact ? encode_exact_##name : encode_##name;
        SMALL_LIST(CASE)
#undef CASE
    default:
        return NULL;
    }
}
