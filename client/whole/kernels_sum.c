/* SPDX-License-Identifier: Apache-2.0 */
/* Least, greatest and sum of rows, in one pass. */
#include <math.h>

#include <shmview/element.h>

#include "client/whole/kernels.h"

#define ANYWHERE __attribute__((aligned(1), may_alias))

/* --- Floats -------------------------------------------------------------- */

/* The number of accumulators for floats; element i goes to accumulator i % LANES. The compiler must
 * not change the order of additions of floats, so a loop with one accumulator would not be
 * vectorised. */
#define LANES 8

/* Adds the sum of a block, by Neumaier's form of Kahan's summation: `rest` collects what each
 * addition loses, so that the error does not grow with the number of blocks. A sum that is not
 * finite has no rest, because infinity minus infinity is NaN. */
static void add_total(struct sum *sum, double x)
{
    double t = sum->total + x;
    if (isfinite(t))
        sum->rest += fabs(sum->total) >= fabs(x) ? (sum->total - t) + x : (x - t) + sum->total;
    sum->total = t;
}

#define SUM_FLOAT(name, type)                                                                      \
    typedef type name##_at ANYWHERE;                                                               \
    static void name##_block(struct sum *sum, const name##_at *p, size_t n)                        \
    {                                                                                              \
        type min[LANES], max[LANES];                                                               \
        double total[LANES];                                                                       \
        uint32_t n_nan[LANES];                                                                     \
        for (int k = 0; k < LANES; k++) {                                                          \
            min[k] = (type)INFINITY;                                                               \
            max[k] = -(type)INFINITY;                                                              \
            total[k] = n_nan[k] = 0;                                                               \
        }                                                                                          \
        size_t i = 0;                                                                              \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                ADD_FLOAT(type, p[i + (size_t)k], k)                                               \
        for (int k = 0; i < n; i++, k++)                                                           \
            ADD_FLOAT(type, p[i], k)                                                               \
        for (int k = 0; k < LANES; k++) {                                                          \
            sum->min = (double)min[k] < sum->min ? (double)min[k] : sum->min;                      \
            sum->max = (double)max[k] > sum->max ? (double)max[k] : sum->max;                      \
            sum->n_nan += n_nan[k];                                                                \
        }                                                                                          \
        for (int half = LANES / 2; half; half /= 2)                                                \
            for (int k = 0; k < half; k++)                                                         \
                total[k] += total[k + half];                                                       \
        add_total(sum, total[0]);                                                                  \
    }                                                                                              \
    static void name(struct sum *sum, const void *from, size_t n)                                  \
    {                                                                                              \
        const name##_at *p = from;                                                                 \
        for (size_t at = 0; at < n; at += BLOCK)                                                   \
            name##_block(sum, p + at, n - at < BLOCK ? n - at : BLOCK);                            \
    }
#define ADD_FLOAT(type, element, k)                                                                \
    {                                                                                              \
        type x = (element);                                                                        \
        min[k] = x < min[k] ? x : min[k];                                                          \
        max[k] = x > max[k] ? x : max[k];                                                          \
        n_nan[k] += x != x;                                                                        \
        total[k] += (double)(x == x ? x : 0);                                                      \
    }
SUM_FLOAT(sum_float32, float)
SUM_FLOAT(sum_float64, double)

/* --- Integers ------------------------------------------------------------ */

/* Sums integers exactly. total_type holds any sum of SUM_MOST elements: that of uint16 is below
 * 2^31. */
#define SUM_INTEGER(name, type, total_type)                                                        \
    typedef type name##_at ANYWHERE;                                                               \
    static void name(struct sum *sum, const void *from, size_t n)                                  \
    {                                                                                              \
        const name##_at *p = from;                                                                 \
        type min = p[0], max = p[0];                                                               \
        total_type total = 0;                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x = p[i];                                                                         \
            min = x < min ? x : min;                                                               \
            max = x > max ? x : max;                                                               \
            total += x;                                                                            \
        }                                                                                          \
        sum->min_whole = min < sum->min_whole ? (int128)min : sum->min_whole;                      \
        sum->max_whole = max > sum->max_whole ? (int128)max : sum->max_whole;                      \
        sum->whole += total;                                                                       \
    }
SUM_INTEGER(sum_int8, int8_t, int32_t)
SUM_INTEGER(sum_int16, int16_t, int32_t)
SUM_INTEGER(sum_int32, int32_t, int64_t)
SUM_INTEGER(sum_uint8, uint8_t, uint32_t)
SUM_INTEGER(sum_uint16, uint16_t, uint32_t)
SUM_INTEGER(sum_uint32, uint32_t, uint64_t)

/* Sums 64-bit integers exactly. Adding int128 would not be vectorised, so the low and the high
 * halves are summed in 64 bits each. bias, 2^63, makes a signed number unsigned; it is subtracted
 * at the end. */
#define SUM_WIDE(name, type, bias)                                                                 \
    typedef type name##_at ANYWHERE;                                                               \
    static void name(struct sum *sum, const void *from, size_t n)                                  \
    {                                                                                              \
        const name##_at *p = from;                                                                 \
        type min = p[0], max = p[0];                                                               \
        uint64_t low = 0, high = 0;                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x = p[i];                                                                         \
            uint64_t u = (uint64_t)x + (bias);                                                     \
            min = x < min ? x : min;                                                               \
            max = x > max ? x : max;                                                               \
            low += u & UINT32_MAX;                                                                 \
            high += u >> 32;                                                                       \
        }                                                                                          \
        sum->min_whole = min < sum->min_whole ? (int128)min : sum->min_whole;                      \
        sum->max_whole = max > sum->max_whole ? (int128)max : sum->max_whole;                      \
        sum->whole += low;                                                                         \
        sum->whole += (int128)high << 32;                                                          \
        sum->whole -= (int128)n * (bias);                                                          \
    }
SUM_WIDE(sum_int64, int64_t, (uint64_t)1 << 63)
SUM_WIDE(sum_uint64, uint64_t, 0)

kernel_sum *KERNEL_SET(kernel_to_sum)(uint32_t dtype)
{
    static kernel_sum *const all[] = {
        [SHMVIEW_INT8] = sum_int8,       [SHMVIEW_INT16] = sum_int16,
        [SHMVIEW_INT32] = sum_int32,     [SHMVIEW_INT64] = sum_int64,
        [SHMVIEW_UINT8] = sum_uint8,     [SHMVIEW_UINT16] = sum_uint16,
        [SHMVIEW_UINT32] = sum_uint32,   [SHMVIEW_UINT64] = sum_uint64,
        [SHMVIEW_FLOAT32] = sum_float32, [SHMVIEW_FLOAT64] = sum_float64,
    };
    return dtype < sizeof all / sizeof all[0] ? all[dtype] : NULL;
}
