/* SPDX-License-Identifier: Apache-2.0 */
/* A description touches the bytes from offset + sum of (shape-1)*stride over the
 * negative strides, up to offset + the same sum over the positive ones + itemsize.
 * That is checked one dimension at a time, so that the text can name the first
 * dimension that leaves the segment, and the byte at which it does. */
#include "common/view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/util.h"

__attribute__((format(printf, 3, 4))) static int
fault_set(struct view_fault *fault, enum shmview_error error, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fault->error = error;
    vsnprintf(fault->text, sizeof fault->text, format, ap);
    va_end(ap);
    return -1;
}

int view_parse_format(struct view_desc *desc, const char *format, struct view_fault *fault)
{
    size_t at;
    const char *why;
    desc->dtype = dtype_parse(format, &at, &why);
    if (desc->dtype)
        return 0;
    return fault_set(fault, SHMVIEW_ERR_FORMAT, "format \"%.32s\": character %zu: %s", format, at,
                     why);
}

static int check_shape(const struct view_desc *desc, struct view_fault *fault)
{
    if (desc->ndim > SHMVIEW_MAX_NDIM)
        return fault_set(fault, SHMVIEW_ERR_INVALID, "%u dimensions, the limit is %d", desc->ndim,
                         SHMVIEW_MAX_NDIM);
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] < 0)
            return fault_set(fault, SHMVIEW_ERR_INVALID, "dimension %u: length %" PRId64 " < 0", d,
                             desc->shape[d]);
    return 0;
}

int view_fill_strides(struct view_desc *desc, struct view_fault *fault)
{
    if (check_shape(desc, fault))
        return -1;
    int64_t step = desc->dtype->itemsize;
    for (uint32_t d = desc->ndim; d-- > 0;) {
        desc->strides[d] = step;
        int64_t n = desc->shape[d] ? desc->shape[d] : 1;
        if (__builtin_mul_overflow(step, n, &step))
            return fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                             "dimension %u: %" PRId64 " elements of %" PRId64
                             " bytes overflow 2^63",
                             d, n, desc->strides[d]);
    }
    return 0;
}

static int count_bytes(const struct view_desc *desc, int64_t *ret_nbytes, struct view_fault *fault)
{
    int64_t n = desc->dtype->itemsize;
    bool empty = false;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        empty = empty || desc->shape[d] == 0;
        if (desc->shape[d] && __builtin_mul_overflow(n, desc->shape[d], &n))
            return fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                             "dimension %u: the size of the view overflows 2^63 bytes", d);
    }
    *ret_nbytes = empty ? 0 : n;
    return 0;
}

static int check_alignment(const struct view_desc *desc, struct view_fault *fault)
{
    uint32_t align = desc->dtype->itemsize;
    if (desc->offset % align)
        return fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                         "byte %" PRIu64 " is no multiple of %u, the alignment of %s", desc->offset,
                         align, desc->dtype->name);
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] > 1 && desc->strides[d] % (int64_t)align)
            return fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                             "dimension %u: stride %" PRId64 " puts element 1 at byte %" PRId64
                             ", no multiple of %u, the alignment of %s",
                             d, desc->strides[d],
                             (int64_t)(desc->offset + (uint64_t)desc->strides[d]), align,
                             desc->dtype->name);
    return 0;
}

/* lo and hi are the first and last byte touched so far; both stay in the segment. */
static int check_dimension(const struct view_desc *desc, uint32_t d, int64_t size, int64_t *lo,
                           int64_t *hi, struct view_fault *fault)
{
    int64_t reach;
    if (__builtin_mul_overflow(desc->shape[d] - 1, desc->strides[d], &reach))
        return fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                         "dimension %u: %" PRId64 " steps of %" PRId64 " bytes overflow 2^63", d,
                         desc->shape[d] - 1, desc->strides[d]);
    if (reach < 0) {
        if (reach < -*lo)
            return fault_set(fault, SHMVIEW_ERR_BOUNDS,
                             "dimension %u starts at byte %" PRId64 ", before byte 0", d,
                             *lo + reach);
        *lo += reach;
    } else {
        if (reach > size - 1 - *hi)
            return fault_set(fault, SHMVIEW_ERR_BOUNDS,
                             "dimension %u ends at byte %" PRIu64 ", the segment has %" PRId64
                             " bytes",
                             d, (uint64_t)*hi + (uint64_t)reach + 1, size);
        *hi += reach;
    }
    return 0;
}

static int check_bounds(const struct view_desc *desc, uint64_t size, bool empty,
                        struct view_fault *fault)
{
    uint64_t itemsize = desc->dtype->itemsize;
    if (desc->offset > size || (!empty && size - desc->offset < itemsize))
        return fault_set(fault, SHMVIEW_ERR_BOUNDS,
                         "the first element, %" PRIu64 " bytes at byte %" PRIu64
                         ", lies outside the segment's %" PRIu64 " bytes",
                         itemsize, desc->offset, size);
    if (empty)
        return 0;
    int64_t lo = (int64_t)desc->offset;
    int64_t hi = (int64_t)(desc->offset + itemsize - 1);
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (check_dimension(desc, d, (int64_t)size, &lo, &hi, fault))
            return -1;
    return 0;
}

int view_check(const struct view_desc *desc, uint64_t size, uint64_t *ret_nbytes,
               struct view_fault *fault)
{
    int64_t nbytes = 0;
    if (size > INT64_MAX)
        return fault_set(fault, SHMVIEW_ERR_OVERFLOW, "a segment of %" PRIu64 " bytes", size);
    if (check_shape(desc, fault) || count_bytes(desc, &nbytes, fault) ||
        check_alignment(desc, fault) || check_bounds(desc, size, nbytes == 0, fault))
        return -1;
    if (ret_nbytes)
        *ret_nbytes = (uint64_t)nbytes;
    return 0;
}

int view_cast(struct view_desc *desc, uint64_t offset, uint64_t nbytes, uint64_t size,
              struct view_fault *fault)
{
    uint64_t itemsize = desc->dtype->itemsize;
    if (offset > size || (nbytes != UINT64_MAX && nbytes > size - offset))
        return fault_set(fault, SHMVIEW_ERR_BOUNDS,
                         "%" PRIu64 " bytes at byte %" PRIu64 " lie outside the segment's %" PRIu64
                         " bytes",
                         nbytes == UINT64_MAX ? 0 : nbytes, offset, size);
    if (nbytes == UINT64_MAX)
        nbytes = size - offset;
    if (nbytes % itemsize)
        return fault_set(fault, SHMVIEW_ERR_ILL_SIZED,
                         "%" PRIu64 " bytes at byte %" PRIu64 " do not divide into %s of %" PRIu64
                         " bytes: the last whole one ends at byte %" PRIu64,
                         nbytes, offset, desc->dtype->name, itemsize,
                         offset + nbytes - nbytes % itemsize);
    desc->offset = offset;
    desc->ndim = 1;
    desc->shape[0] = (int64_t)(nbytes / itemsize);
    desc->strides[0] = (int64_t)itemsize;
    return check_alignment(desc, fault);
}
