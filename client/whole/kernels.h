/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over rows of elements.
 *
 * The compiler vectorises these loops wherever elements lie side by side. For this the files are
 * compiled with -O3, whatever the rest is compiled with, and each loop handles one pair of types
 * and has no branch on single elements.
 *
 * Unless a comment differs, elements are side by side and in native byte order, and no two rows
 * overlap. No element needs to be aligned. Kernels allocate nothing and never block. */
#ifndef CLIENT_KERNELS_H
#define CLIENT_KERNELS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* On x86-64 the kernels that gain by it are compiled twice, for any processor and for those with
 * AVX2 (client/CMakeLists.txt). Both give the same results bit by bit. kernels.c chooses. */
#ifdef KERNELS_AVX2
#define KERNEL_SET(name) name##_avx2
#else
#define KERNEL_SET(name) name##_plain
#endif

#define BLOCK 512 /* elements in a buffer, for functions with a limit */

/* --- kernels_bytes.c: elements as bytes ---------------------------------- */

/* Two innermost dimensions of a walk: n[0] rows of n[1] elements each. Strides are in bytes. */
struct plane {
    ptrdiff_t n[2];
    unsigned char *to;
    ptrdiff_t to_strides[2];
    const unsigned char *from; /* has the same shape */
    ptrdiff_t from_strides[2];
};

/* Copies all elements of the plane. The source and the destination must not overlap. */
void plane_copy(const struct plane *p, uint32_t itemsize);
/* Sets all elements to the one at from; from_strides are ignored. */
void plane_fill(const struct plane *p, uint32_t itemsize);

/* Copy a row with any stride to one without gaps, and back. */
void bytes_gather(void *to, const unsigned char *from, ptrdiff_t stride, size_t n,
                  uint32_t itemsize);
void bytes_scatter(unsigned char *to, ptrdiff_t stride, const void *from, size_t n,
                   uint32_t itemsize);
/* Reverses the bytes of each of n units, which have 2, 4, 8 or 16 bytes. to may be equal to
 * from. */
void bytes_swap(void *to, const void *from, size_t n, uint32_t unit);
/* Compares two rows with any strides byte by byte. Returns the number of the first element that
 * differs, or n. */
size_t bytes_differ(const unsigned char *a, ptrdiff_t a_stride, const unsigned char *b,
                    ptrdiff_t b_stride, size_t n, uint32_t itemsize);

/* --- kernels_convert.c: integers (a char, an address), float32, float64, bool -------------- */

/* Converts elements by the rules of shmview/view.h until n are done or one has no value in the new
 * type. Steps are in bytes. Returns the number of converted elements; nothing after them is
 * written. */
typedef size_t kernel_convert(void *restrict to, ptrdiff_t to_step, const void *restrict from,
                              ptrdiff_t from_step, size_t n);

struct kernel_conversion {
    kernel_convert *run;
    bool is_total; /* run() always returns n */
};

/* Returns the kernel for two types. run is NULL if one of the types is not in the list above. */
struct kernel_conversion kernel_to_convert(uint32_t to, uint32_t from);
struct kernel_conversion kernel_to_convert_plain(uint32_t to, uint32_t from);
struct kernel_conversion kernel_to_convert_avx2(uint32_t to, uint32_t from); /* few pairs */

/* --- kernels_small.c: floats of one or two bytes ------------------------- */

/* Like kernel_convert, for elements that are side by side. */
typedef size_t kernel_code(void *restrict to, const void *restrict from, size_t n);

/* Return the kernel that decodes a small float to float32, which never fails, and the one that
 * encodes float64 as a small float. Return NULL for other types. exact: the source was an integer,
 * so a value that would be rounded is refused. */
kernel_code *kernel_to_decode(uint32_t from);
kernel_code *kernel_to_encode(uint32_t to, bool exact);

/* --- kernels_compare.c: int64, uint64, float32, float64 ------------------ */

/* Compares the values of two rows. Returns the number of the first element that differs, or n.
 * kernel_to_compare() returns NULL for types without a kernel. Mixed types have a kernel in one
 * order only: if the result is NULL, try the types the other way round. */
typedef size_t kernel_differ(const void *a, const void *b, size_t n);
kernel_differ *kernel_to_compare(uint32_t a, uint32_t b);
kernel_differ *kernel_to_compare_plain(uint32_t a, uint32_t b);
kernel_differ *kernel_to_compare_avx2(uint32_t a, uint32_t b);

/* --- kernels_sum.c ------------------------------------------------------- */

__extension__ typedef __int128 int128;

#define SUM_MOST 32768 /* elements in one call, so that sums of integers do not overflow */

/* Figures of the elements so far. The sum of floats is wrong by at most 70 * 2^-53 times the sum of
 * their magnitudes, however many there are: each of them takes part in at most 66 rounded additions
 * within its block, and the sum of the blocks is compensated. The sum depends on the order in
 * memory. */
struct sum {
    /* of floats, except NaN; +inf and -inf before the first */
    double min, max;
    double total, rest; /* the sum is total + rest, or total if that is not finite */
    uint64_t n_nan;
    /* of integers */
    int128 min_whole, max_whole;
    int128 whole;
};
/* The figures before the first element. */
#define SUM_OF_NOTHING                                                                             \
    {                                                                                              \
        .min = (double)INFINITY, .max = -(double)INFINITY, .min_whole = UINT64_MAX,                \
        .max_whole = INT64_MIN                                                                     \
    }

/* Adds n elements, at most SUM_MOST. kernel_to_sum() returns NULL for types other than int8 to
 * float64. */
typedef void kernel_sum(struct sum *sum, const void *from, size_t n);
kernel_sum *kernel_to_sum(uint32_t dtype);
kernel_sum *kernel_to_sum_plain(uint32_t dtype);
kernel_sum *kernel_to_sum_avx2(uint32_t dtype);

#pragma GCC visibility pop

#endif
