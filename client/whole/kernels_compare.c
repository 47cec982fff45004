/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of rows by value. Each kernel compares a block without a branch, and looks for the
 * element only in a block that has a difference. */
#include <shmview/element.h>

#include "client/whole/kernels.h"

#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef int64_t int64_at ANYWHERE;
typedef uint64_t uint64_at ANYWHERE;
typedef float float32_at ANYWHERE;
typedef double float64_at ANYWHERE;

/* Whether an integer and a double differ in value. A double outside the range of the integer type
 * is replaced by 0 before the cast, because the cast would be undefined. (double)whole != x then
 * reports it. */
static inline bool int64_differs(int64_t i, double x)
{
    int64_t whole = (int64_t)(x >= -0x1p63 && x < 0x1p63 ? x : 0);
    return (double)whole != x || whole != i;
}

static inline bool uint64_differs(uint64_t u, double x)
{
    uint64_t whole = (uint64_t)(x >= 0 && x < 0x1p64 ? x : 0);
    return (double)whole != x || whole != u;
}

/* Defines a kernel. The first loop accumulates in bad, which is not 0 at its end if one pair of the
 * block differs; it has no exit, so the compiler can vectorise it. bad has the width of x and y for
 * the same reason. The second loop finds the pair. */
#define DIFFER(name, a_type, b_type, bad_type, is_bad, differs)                                    \
    static size_t name(const void *a, const void *b, size_t n)                                     \
    {                                                                                              \
        const a_type *p = a;                                                                       \
        const b_type *q = b;                                                                       \
        for (size_t at = 0; at < n; at += BLOCK) {                                                 \
            size_t end = n - at < BLOCK ? n : at + BLOCK;                                          \
            bad_type bad = 0;                                                                      \
            for (size_t i = at; i < end; i++) {                                                    \
                a_type x = p[i];                                                                   \
                b_type y = q[i];                                                                   \
                bad = is_bad;                                                                      \
            }                                                                                      \
            for (size_t i = at; bad != 0 && i < end; i++) {                                        \
                a_type x = p[i];                                                                   \
                b_type y = q[i];                                                                   \
                if (differs)                                                                       \
                    return i;                                                                      \
            }                                                                                      \
        }                                                                                          \
        return n;                                                                                  \
    }
DIFFER(differ_int64, int64_at, int64_at, uint64_t, bad | (uint64_t)(x ^ y), x != y)
DIFFER(differ_uint64, uint64_at, uint64_at, uint64_t, bad | (x ^ y), x != y)
DIFFER(differ_float32, float32_at, float32_at, uint32_t, bad | (x != y), x != y)
DIFFER(differ_float64, float64_at, float64_at, uint64_t, bad | (x != y), x != y)
/* a negative int64 differs even from the uint64 with the same bits */
DIFFER(differ_int64_uint64, int64_at, uint64_at, uint64_t,
       bad | ((uint64_t)x ^ y) | (uint64_t)x >> 63, x < 0 || (uint64_t)x != y)
DIFFER(differ_int64_float64, int64_at, float64_at, bool, bad | int64_differs(x, y),
       int64_differs(x, y))
DIFFER(differ_uint64_float64, uint64_at, float64_at, bool, bad | uint64_differs(x, y),
       uint64_differs(x, y))

kernel_differ *KERNEL_SET(kernel_to_compare)(uint32_t a, uint32_t b)
{
    static const struct {
        uint32_t a, b;
        kernel_differ *run;
    } all[] = {
        {SHMVIEW_INT64, SHMVIEW_INT64, differ_int64},
        {SHMVIEW_UINT64, SHMVIEW_UINT64, differ_uint64},
        {SHMVIEW_FLOAT32, SHMVIEW_FLOAT32, differ_float32},
        {SHMVIEW_FLOAT64, SHMVIEW_FLOAT64, differ_float64},
        {SHMVIEW_INT64, SHMVIEW_UINT64, differ_int64_uint64},
        {SHMVIEW_INT64, SHMVIEW_FLOAT64, differ_int64_float64},
        {SHMVIEW_UINT64, SHMVIEW_FLOAT64, differ_uint64_float64},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].a == a && all[i].b == b)
            return all[i].run;
    return NULL;
}
