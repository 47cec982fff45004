/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of rows of numbers from one type to another, by the rules of shmview/view.h, "One
 * element".
 *
 * The 26 types of numbers have more than 600 pairs, too many for a loop each. Instead a conversion
 * is a chain of at most three kernels: small floats are decoded to float32, a kernel converts
 * between the common types, and small floats are encoded from float64. Pairs without such a chain
 * (with long double, or complex with real numbers) are converted number by number. */
#ifndef CLIENT_CONVERT_H
#define CLIENT_CONVERT_H

#include "client/whole/kernels.h"
#include "client/whole/number.h"

#pragma GCC visibility push(hidden)

/* Room for BLOCK numbers of any type, of which none has more than 16 bytes. */
#define BLOCK_BYTES (BLOCK * 16)

/* The steps of a conversion, in this order. A step that is NULL is left out. If all three are NULL,
 * conversion_run() converts number by number. */
struct conversion {
    uint32_t to, from; /* without SHMVIEW_SWAPPED */
    kernel_code *decode;
    kernel_convert *convert;
    ptrdiff_t to_step, from_step; /* of convert, in bytes, for elements that are side by side */
    kernel_code *encode;
    unsigned units; /* numbers in an element for the kernels: 2 for complex, else 1 */
    bool is_total;  /* conversion_run() cannot fail */
};

/* Plans the conversion between two types of numbers. Ignores SHMVIEW_SWAPPED: the caller reverses
 * the bytes. Never fails. */
struct conversion conversion_of(uint32_t to, uint32_t from);

/* Whether the conversion has exactly one step. Then it needs no buffer between steps, and n is not
 * limited to BLOCK. */
static inline bool conversion_is_single(const struct conversion *c)
{
    return !!c->decode + !!c->convert + !!c->encode == 1;
}

/* Converts elements until n are done or one has no value in the new type. n is at most BLOCK,
 * unless the conversion has a single step. Both rows are side by side, in native byte order, and do
 * not overlap. Returns the number of converted elements. After these, to may have been changed only
 * in the first half of one complex number. */
size_t conversion_run(const struct conversion *c, void *to, const void *from, size_t n);

/* Returns the size in bytes of one byte-swapped unit: half a complex number, or the whole of any
 * other. */
uint32_t swap_unit(uint32_t dtype);

#pragma GCC visibility pop

#endif
