/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as bytes: copy, fill, reverse and compare without knowing their type.
 *
 * The common item sizes have loops of their own, because the compiler turns a memcpy() of a
 * constant size into one load and one store. Other sizes call memcpy() for each element. */
#include <string.h>

#include "client/whole/kernels.h"

/* Types of the size of an element. They may alias anything, and need no alignment, because an
 * element of 8 bytes may be a struct of single bytes. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef uint8_t bytes1 ANYWHERE;
typedef uint16_t bytes2 ANYWHERE;
typedef uint32_t bytes4 ANYWHERE;
typedef uint64_t bytes8 ANYWHERE;
typedef uint64_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

/* Expands to RUN(type) for the type of itemsize bytes, or to OTHERWISE if there is none. */
#define WITH_TYPE(itemsize, RUN, OTHERWISE)                                                        \
    switch (itemsize) {                                                                            \
    case 1:                                                                                        \
        RUN(bytes1);                                                                               \
        break;                                                                                     \
    case 2:                                                                                        \
        RUN(bytes2);                                                                               \
        break;                                                                                     \
    case 4:                                                                                        \
        RUN(bytes4);                                                                               \
        break;                                                                                     \
    case 8:                                                                                        \
        RUN(bytes8);                                                                               \
        break;                                                                                     \
    case 16:                                                                                       \
        RUN(bytes16);                                                                              \
        break;                                                                                     \
    default:                                                                                       \
        OTHERWISE;                                                                                 \
    }

/* --- Copying ------------------------------------------------------------- */

/* Rows of fewer bytes are copied by a loop, because it costs less than the call of memcpy(). */
#define MEMCPY_BYTES 64

static void copy_rows(const struct plane *p, size_t row_bytes)
{
    for (ptrdiff_t i = 0; i < p->n[0]; i++)
        memcpy(p->to + i * p->to_strides[0], p->from + i * p->from_strides[0], row_bytes);
}

static void copy_any(const struct plane *p, uint32_t itemsize)
{
    for (ptrdiff_t i = 0; i < p->n[0]; i++)
        for (ptrdiff_t j = 0; j < p->n[1]; j++)
            memcpy(p->to + i * p->to_strides[0] + j * p->to_strides[1],
                   p->from + i * p->from_strides[0] + j * p->from_strides[1], itemsize);
}

void plane_copy(const struct plane *p, uint32_t itemsize)
{
    const ptrdiff_t to_step = p->to_strides[1], from_step = p->from_strides[1];
    const ptrdiff_t size = (ptrdiff_t)itemsize, n = p->n[1];
    bool is_contiguous = to_step == size && from_step == size;
    if (is_contiguous && p->n[1] * size >= MEMCPY_BYTES) {
        copy_rows(p, (size_t)(p->n[1] * size));
        return;
    }
#define COPY(type)                                                                                 \
    for (ptrdiff_t i = 0; i < p->n[0]; i++) {                                                      \
        unsigned char *q = p->to + i * p->to_strides[0];                                           \
        const unsigned char *r = p->from + i * p->from_strides[0];                                 \
        _Pragma("GCC unroll 4") for (ptrdiff_t j = 0; j < n; j++) * (type *)(q + j * to_step) =    \
            *(const type *)(r + j * from_step);                                                    \
    }
    WITH_TYPE(itemsize, COPY, copy_any(p, itemsize))
}

void bytes_gather(void *to, const unsigned char *from, ptrdiff_t stride, size_t n,
                  uint32_t itemsize)
{
    const struct plane p = {
        .n = {1, (ptrdiff_t)n},
        .to = to,
        .to_strides = {0, (ptrdiff_t)itemsize},
        .from = from,
        .from_strides = {0, stride},
    };
    plane_copy(&p, itemsize);
}

void bytes_scatter(unsigned char *to, ptrdiff_t stride, const void *from, size_t n,
                   uint32_t itemsize)
{
    const struct plane p = {
        .n = {1, (ptrdiff_t)n},
        .to = to,
        .to_strides = {0, stride},
        .from = from,
        .from_strides = {0, (ptrdiff_t)itemsize},
    };
    plane_copy(&p, itemsize);
}

/* --- Filling ------------------------------------------------------------- */

#define PATTERN_BYTES 4096

/* Fills with elements of a size without a type. If they have no gaps, repeats the element in a
 * pattern first, and then copies many elements by one memcpy(). */
static void fill_any(const struct plane *p, uint32_t itemsize)
{
    unsigned char pattern[PATTERN_BYTES];
    bool is_contiguous = p->to_strides[1] == (ptrdiff_t)itemsize;
    ptrdiff_t at_once = is_contiguous ? PATTERN_BYTES / (ptrdiff_t)itemsize : 1;
    if (itemsize > PATTERN_BYTES)
        at_once = 1;
    for (ptrdiff_t k = 0; at_once > 1 && k < at_once; k++)
        memcpy(pattern + k * (ptrdiff_t)itemsize, p->from, itemsize);
    const unsigned char *from = at_once > 1 ? pattern : p->from;
    for (ptrdiff_t i = 0; i < p->n[0]; i++)
        for (ptrdiff_t j = 0; j < p->n[1]; j += at_once) {
            ptrdiff_t n = p->n[1] - j < at_once ? p->n[1] - j : at_once;
            memcpy(p->to + i * p->to_strides[0] + j * p->to_strides[1], from, (size_t)n * itemsize);
        }
}

void plane_fill(const struct plane *p, uint32_t itemsize)
{
    const ptrdiff_t step = p->to_strides[1], n = p->n[1];
    if (itemsize == 1 && step == 1) {
        for (ptrdiff_t i = 0; i < p->n[0]; i++)
            memset(p->to + i * p->to_strides[0], *p->from, (size_t)n);
        return;
    }
#define FILL(type)                                                                                 \
    {                                                                                              \
        const type value = *(const type *)p->from;                                                 \
        for (ptrdiff_t i = 0; i < p->n[0]; i++) {                                                  \
            unsigned char *q = p->to + i * p->to_strides[0];                                       \
            if (step == (ptrdiff_t)sizeof(type))                                                   \
                for (ptrdiff_t j = 0; j < n; j++)                                                  \
                    ((type *)q)[j] = value;                                                        \
            else                                                                                   \
                for (ptrdiff_t j = 0; j < n; j++)                                                  \
                    *(type *)(q + j * step) = value;                                               \
        }                                                                                          \
    }
    WITH_TYPE(itemsize, FILL, fill_any(p, itemsize))
}

/* --- Byte order ---------------------------------------------------------- */

/* Reverses units of 16 bytes (a long double) as two halves that change places. */
static void swap16(unsigned char *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t half[2];
        memcpy(half, from + 16 * i, 16);
        const uint64_t swapped[2] = {__builtin_bswap64(half[1]), __builtin_bswap64(half[0])};
        memcpy(to + 16 * i, swapped, 16);
    }
}

void bytes_swap(void *to, const void *from, size_t n, uint32_t unit)
{
#define SWAP(type, swap)                                                                           \
    for (size_t i = 0; i < n; i++)                                                                 \
        ((type *)to)[i] = swap(((const type *)from)[i]);                                           \
    break
    switch (unit) {
    case 2:
        SWAP(bytes2, __builtin_bswap16);
    case 4:
        SWAP(bytes4, __builtin_bswap32);
    case 8:
        SWAP(bytes8, __builtin_bswap64);
    default:
        swap16(to, from, n);
    }
}

/* --- Comparing ----------------------------------------------------------- */

static size_t differ_any(const unsigned char *a, ptrdiff_t a_stride, const unsigned char *b,
                         ptrdiff_t b_stride, size_t n, uint32_t itemsize)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + (ptrdiff_t)i * a_stride, b + (ptrdiff_t)i * b_stride, itemsize) != 0)
            return i;
    return n;
}

size_t bytes_differ(const unsigned char *a, ptrdiff_t a_stride, const unsigned char *b,
                    ptrdiff_t b_stride, size_t n, uint32_t itemsize)
{
    const ptrdiff_t size = (ptrdiff_t)itemsize;
    /* Rows without gaps are compared by one memcmp(), which is faster than the loop. If they
     * differ, the loop finds the element. */
    if (a_stride == size && b_stride == size && memcmp(a, b, n * itemsize) == 0)
        return n;
#define DIFFER(type)                                                                               \
    for (size_t i = 0; i < n; i++)                                                                 \
        if (memcmp(a + (ptrdiff_t)i * a_stride, b + (ptrdiff_t)i * b_stride, sizeof(type)) != 0)   \
            return i;
    WITH_TYPE(itemsize, DIFFER, return differ_any(a, a_stride, b, b_stride, n, itemsize))
    return n;
}
