/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over rows of elements. These files are compiled with -O3, so that they are
 * vectorised wherever the elements lie side by side.
 *
 * Elements need not be aligned. Where a comment does not say otherwise they are side by side
 * and in the machine's byte order, and no two rows overlap. */
#ifndef CLIENT_KERNELS_H
#define CLIENT_KERNELS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define BLOCK 512 /* elements, where there is a limit */

/* --- kernels_bytes.c: elements as bytes ---------------------------------- */

/* n[0] rows of n[1] elements each, steps in bytes. */
struct plane {
    ptrdiff_t n[2];
    unsigned char *to;
    ptrdiff_t to_strides[2];
    const unsigned char *from; /* of the same shape */
    ptrdiff_t from_strides[2];
};

void plane_copy(const struct plane *p, uint32_t itemsize);
/* from is one element; its strides are not looked at. */
void plane_fill(const struct plane *p, uint32_t itemsize);

/* A row of any stride to one without gaps, and back. */
void bytes_gather(void *to, const unsigned char *from, ptrdiff_t stride, size_t n,
                  uint32_t itemsize);
void bytes_scatter(unsigned char *to, ptrdiff_t stride, const void *from, size_t n,
                   uint32_t itemsize);
/* Reverses each of n units of 2, 4, 8 or 16 bytes. to may be from. */
void bytes_swap(void *to, const void *from, size_t n, uint32_t unit);
/* The first element that differs, of two rows of any strides; n if none does. */
size_t bytes_differ(const unsigned char *a, ptrdiff_t a_stride, const unsigned char *b,
                    ptrdiff_t b_stride, size_t n, uint32_t itemsize);

/* --- kernels_convert.c: integers (a char, an address), float32, float64, bool -------------- */

/* Converts n elements by the rules of shmview/view.h, up to the first that is no value of the new
 * type; steps are in bytes. Returns how many; nothing is written behind them. */
typedef size_t kernel_convert(void *restrict to, ptrdiff_t to_step, const void *restrict from,
                              ptrdiff_t from_step, size_t n);

struct kernel_conversion {
    kernel_convert *run;
    bool is_total; /* every element is a value of the new type */
};

/* .run is NULL where one of the types is not of the list above. */
struct kernel_conversion kernel_to_convert(uint32_t to, uint32_t from);

/* --- kernels_small.c: floats of one or two bytes ------------------------- */

/* The same, of elements that are side by side. */
typedef size_t kernel_code(void *restrict to, const void *restrict from, size_t n);

/* To float32, which never fails; from float64. NULL for other types. exact: the numbers are
 * integers, which are not rounded. */
kernel_code *kernel_to_decode(uint32_t from);
kernel_code *kernel_to_encode(uint32_t to, bool exact);

/* --- kernels_compare.c: int64, uint64, float32, float64 ------------------ */

/* The first element that differs in value, n if none does. NULL where a kernel for the types
 * the other way round has to be asked for, and for other types. */
typedef size_t kernel_differ(const void *a, const void *b, size_t n);
kernel_differ *kernel_to_compare(uint32_t a, uint32_t b);

/* --- kernels_sum.c ------------------------------------------------------- */

__extension__ typedef __int128 int128;

#define SUM_MOST 32768 /* elements at once */

/* What is known of the elements so far. The sum of floats is off by at most 70 * 2^-53 times the
 * sum of their magnitudes, however many there are; it depends on their order in memory. */
struct sum {
    /* of floats; what is NaN is only counted. +inf and -inf before the first other one */
    double min, max;
    double total, rest; /* the sum is both together, if total is finite */
    uint64_t n_nan;
    /* of integers */
    int128 min_whole, max_whole;
    int128 whole;
};
#define SUM_OF_NOTHING                                                                             \
    {                                                                                              \
        .min = (double)INFINITY, .max = -(double)INFINITY, .min_whole = UINT64_MAX,                \
        .max_whole = INT64_MIN                                                                     \
    }

/* Adds n elements, of which there are SUM_MOST at most. NULL for other types than int8 to
 * float64. */
typedef void kernel_sum(struct sum *sum, const void *from, size_t n);
kernel_sum *kernel_to_sum(uint32_t dtype);

#pragma GCC visibility pop

#endif
