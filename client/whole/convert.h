/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of numbers of one type to those of another, by the rules of shmview/view.h: how, for
 * each pair of types. */
#ifndef CLIENT_CONVERT_H
#define CLIENT_CONVERT_H

#include "client/whole/kernels.h"
#include "client/whole/number.h"

#pragma GCC visibility push(hidden)

#define BLOCK_BYTES (BLOCK * 16)

/* One after the other: what is NULL is left out. None at all: number by number. */
struct conversion {
    uint32_t to, from; /* without SHMVIEW_SWAPPED */
    kernel_code *decode;
    kernel_convert *convert;
    ptrdiff_t to_step, from_step; /* of convert, where elements are side by side */
    kernel_code *encode;
    unsigned units; /* numbers of an element: 2 where complex ones are converted by kernels */
    bool is_total;  /* every element is a value of the new type */
};

/* Both are types of numbers, SHMVIEW_SWAPPED is ignored. Never fails. */
struct conversion conversion_of(uint32_t to, uint32_t from);

/* Whether there is but one step, so that no buffers are needed. */
static inline bool conversion_is_single(const struct conversion *c)
{
    return !!c->decode + !!c->convert + !!c->encode == 1;
}

/* Converts n elements, BLOCK of them at most unless it is single, up to the first that is no value
 * of the new type. Rows are side by side, in the machine's byte order, and do not overlap. Returns
 * how many; behind them only half of a complex number may be written. */
size_t conversion_run(const struct conversion *c, void *to, const void *from, size_t n);

/* Bytes that are reversed as a whole in an element of the other byte order. */
uint32_t swap_unit(uint32_t dtype);

#pragma GCC visibility pop

#endif
