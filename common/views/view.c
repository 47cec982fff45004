/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte of a view is offset + the sum of (shape - 1) * stride over all negative strides.
 * The last one is offset + the same sum over all positive strides + itemsize - 1. These sums are
 * computed one dimension at a time, so that the error can name the first dimension that leaves the
 * segment, and the byte at which it does. All arithmetic checks for overflow, because the numbers
 * may come from any client. */
#include "common/views/view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

void view_fault_fill(struct view_fault *fault, enum shmview_error error, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fault->error = error;
    vsnprintf(fault->text, sizeof fault->text, format, ap);
    va_end(ap);
}

int view_parse_format(struct view_desc *desc, struct formats *pool, const char *format,
                      struct view_fault *fault)
{
    struct format_fault why;
    const struct format *item = formats_get(pool, format, &why);
    if (!item && !why.why[0])
        return view_fault_set(fault, SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (!item)
        return view_fault_set(fault, SHMVIEW_ERR_FORMAT, "format \"%.32s\": character %zu: %s",
                              format, why.at, why.why);
    desc->item = item;
    return 0;
}

/* --- Shape and strides --------------------------------------------------- */

static int check_shape(uint32_t ndim, const int64_t *shape, struct view_fault *fault)
{
    if (ndim > SHMVIEW_MAX_NDIM)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%u dimensions, the limit is %d", ndim,
                              SHMVIEW_MAX_NDIM);
    for (uint32_t d = 0; d < ndim; d++)
        if (shape[d] < 0)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  "dimension %u: length %" PRId64 " < 0", d, shape[d]);
    return 0;
}

int view_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                 int64_t *ret_strides, struct view_fault *fault)
{
    int64_t strides[SHMVIEW_MAX_NDIM], step = itemsize;
    if (check_shape(ndim, shape, fault))
        return -1;
    for (uint32_t i = 0; i < ndim; i++) {
        uint32_t d = order == 'F' ? i : ndim - 1 - i;
        int64_t n = shape[d] ? shape[d] : 1;
        strides[d] = step;
        if (__builtin_mul_overflow(step, n, &step))
            return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                                  "dimension %u: %" PRId64 " elements of %" PRId64
                                  " bytes overflow 2^63",
                                  d, n, strides[d]);
    }
    memcpy(ret_strides, strides, ndim * sizeof *strides);
    return 0;
}

int view_fill_strides(struct view_desc *desc, struct view_fault *fault)
{
    return view_strides(desc->ndim, desc->shape, desc->item->itemsize, 'C', desc->strides, fault);
}

/* Whether each stride is the size of the dimensions within it. Dimensions of length 1 have no
 * steps, so their strides do not matter. An empty view is contiguous. */
static bool is_contiguous_in(const struct view_desc *desc, bool fortran)
{
    int64_t want = desc->item->itemsize;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] == 0)
            return true;
    for (uint32_t i = 0; i < desc->ndim; i++) {
        uint32_t d = fortran ? i : desc->ndim - 1 - i;
        if (desc->shape[d] > 1 && desc->strides[d] != want)
            return false;
        want *= desc->shape[d]; /* no overflow: the description was checked */
    }
    return true;
}

bool view_is_contiguous(const struct view_desc *desc, char order)
{
    if (desc->indirect)
        return false;
    return ((order == 'C' || order == 'A') && is_contiguous_in(desc, false)) ||
           ((order == 'F' || order == 'A') && is_contiguous_in(desc, true));
}

int view_resolve(struct view_desc *desc, struct formats *pool, const char *format, bool has_strides,
                 struct view_fault *fault)
{
    if (desc->indirect && !has_strides)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "suboffsets without strides");
    if (view_parse_format(desc, pool, format, fault) ||
        (!has_strides && view_fill_strides(desc, fault)))
        return -1;
    bool any = false;
    for (uint32_t d = 0; desc->indirect && d < desc->ndim; d++) {
        any = any || desc->suboffsets[d] >= 0;
        if (desc->suboffsets[d] < 0)
            desc->suboffsets[d] = -1;
    }
    desc->indirect = any;
    return 0;
}

/* --- Checking ------------------------------------------------------------ */

/* Whether dimension d, or a later one, has a suboffset. If so, dimension d steps over stored
 * offsets of 8 bytes; otherwise over elements. */
static bool steps_over_stored(const struct view_desc *desc, uint32_t d)
{
    for (; desc->indirect && d < desc->ndim; d++)
        if (desc->suboffsets[d] >= 0)
            return true;
    return false;
}

/* Computes the number of bytes of all elements. An empty view fails, too, if the product of its
 * other lengths overflows. */
static int count_bytes(const struct view_desc *desc, int64_t *ret_nbytes, struct view_fault *fault)
{
    int64_t n = desc->item->itemsize;
    bool empty = false;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        empty = empty || desc->shape[d] == 0;
        if (desc->shape[d] && __builtin_mul_overflow(n, desc->shape[d], &n))
            return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                                  "dimension %u: the size of the view overflows 2^63 bytes", d);
    }
    *ret_nbytes = empty ? 0 : n;
    return 0;
}

/* Checks offset and strides. A program that reads elements by the pointers of element.h relies on
 * it, because an unaligned access is undefined in C, and not atomic. */
static int check_alignment(const struct view_desc *desc, struct view_fault *fault)
{
    bool stored = steps_over_stored(desc, 0);
    uint32_t align = stored ? VIEW_STORED_BYTES : desc->item->align;
    if (desc->offset % align)
        return view_fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                              "byte %" PRIu64 " is not a multiple of %u, the alignment of %.64s%s",
                              desc->offset, align,
                              stored ? "a stored offset" : format_name(desc->item),
                              stored ? "" : VIEW_ALIGNMENT_HINT);
    for (uint32_t d = 0; d < desc->ndim; d++) {
        stored = steps_over_stored(desc, d);
        align = stored ? VIEW_STORED_BYTES : desc->item->align;
        if (desc->shape[d] > 1 && desc->strides[d] % (int64_t)align)
            return view_fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                                  "dimension %u: stride %" PRId64 " puts element 1 at byte %" PRId64
                                  ", no multiple of %u, the alignment of %.64s%s",
                                  d, desc->strides[d],
                                  (int64_t)(desc->offset + (uint64_t)desc->strides[d]), align,
                                  stored ? "a stored offset" : format_name(desc->item),
                                  stored ? "" : VIEW_ALIGNMENT_HINT);
    }
    return 0;
}

/* Computes the distance from the first to the last entry of dimension d. */
static int reach_of(const struct view_desc *desc, uint32_t d, int64_t *ret,
                    struct view_fault *fault)
{
    if (!__builtin_mul_overflow(desc->shape[d] - 1, desc->strides[d], ret))
        return 0;
    return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                          "dimension %u: %" PRId64 " steps of %" PRId64 " bytes overflow 2^63", d,
                          desc->shape[d] - 1, desc->strides[d]);
}

/* Extends the bytes from *lo to *hi, which are within the segment, by those of dimension d. */
static int check_dimension(const struct view_desc *desc, uint32_t d, int64_t size, int64_t *lo,
                           int64_t *hi, struct view_fault *fault)
{
    int64_t reach;
    if (reach_of(desc, d, &reach, fault))
        return -1;
    if (reach < 0) {
        if (reach < -*lo)
            return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                                  "dimension %u starts at byte %" PRId64 ", before byte 0", d,
                                  *lo + reach);
        *lo += reach;
    } else {
        if (reach > size - 1 - *hi)
            return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                                  "dimension %u ends at byte %" PRIu64 ", the segment has %" PRId64
                                  " bytes",
                                  d, (uint64_t)*hi + (uint64_t)reach + 1, size);
        *hi += reach;
    }
    return 0;
}

/* Checks the dimensions after a stored offset. The rows can begin at any byte, so only their length
 * is checked: a row longer than the segment never fits. */
static int check_rows(const struct view_desc *desc, uint32_t d, int64_t size,
                      struct view_fault *fault)
{
    while (d < desc->ndim) {
        int64_t span = steps_over_stored(desc, d) ? VIEW_STORED_BYTES : desc->item->itemsize;
        do {
            int64_t reach;
            if (reach_of(desc, d, &reach, fault))
                return -1;
            /* unsigned, because -(-2^63) overflows */
            uint64_t far = reach < 0 ? -(uint64_t)reach : (uint64_t)reach;
            if (span > size || far > (uint64_t)(size - span))
                return view_fault_set(
                    fault, SHMVIEW_ERR_BOUNDS,
                    "dimension %u: a row of more than the segment's %" PRId64 " bytes", d, size);
            span += (int64_t)far;
        } while (desc->suboffsets[d++] < 0 && d < desc->ndim);
    }
    return 0;
}

/* Checks that all bytes are within the segment. Of an empty view only the offset must be. */
static int check_bounds(const struct view_desc *desc, uint64_t size, bool empty,
                        struct view_fault *fault)
{
    bool stored = steps_over_stored(desc, 0);
    uint64_t unit = stored ? VIEW_STORED_BYTES : desc->item->itemsize;
    if (desc->offset > size || (!empty && size - desc->offset < unit))
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "the first %s, %" PRIu64 " bytes at byte %" PRIu64
                              ", lies outside the segment's %" PRIu64 " bytes",
                              stored ? "stored offset" : "element", unit, desc->offset, size);
    if (empty)
        return 0;
    int64_t lo = (int64_t)desc->offset;
    int64_t hi = (int64_t)(desc->offset + unit - 1);
    for (uint32_t d = 0; d < desc->ndim; d++) {
        if (check_dimension(desc, d, (int64_t)size, &lo, &hi, fault))
            return -1;
        if (desc->indirect && desc->suboffsets[d] >= 0)
            return check_rows(desc, d + 1, (int64_t)size, fault);
    }
    return 0;
}

int view_check(const struct view_desc *desc, uint64_t size, uint64_t *ret_nbytes,
               struct view_fault *fault)
{
    int64_t nbytes = 0;
    if (size > INT64_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW, "a segment of %" PRIu64 " bytes", size);
    if (check_shape(desc->ndim, desc->shape, fault) || count_bytes(desc, &nbytes, fault) ||
        check_alignment(desc, fault) || check_bounds(desc, size, nbytes == 0, fault))
        return -1;
    if (ret_nbytes)
        *ret_nbytes = (uint64_t)nbytes;
    return 0;
}

void view_settle(struct view_desc *desc, uintptr_t base)
{
    const struct format *aligned = desc->item->aligned;
    if (!aligned || desc->indirect)
        return;
    /* each by itself, as other checks demand of a view that is made from this one */
    if (base % aligned->align || desc->offset % aligned->align)
        return;
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] > 1 && desc->strides[d] % (int64_t)aligned->align)
            return;
    desc->item = aligned;
}

/* --- Finding ------------------------------------------------------------- */

/* Reads the stored offset at byte `at`, and adds the suboffset. The result may be any byte, because
 * later dimensions may step back; view_locate() checks the final one. Another process may write the
 * offset at any time, so it is loaded once, and only that value is checked and used. */
static int follow(const unsigned char *base, uint64_t size, int64_t at, uint32_t d,
                  int64_t suboffset, int64_t *ret, struct view_fault *fault)
{
    if (at < 0 || (uint64_t)at > size || size - (uint64_t)at < VIEW_STORED_BYTES ||
        at % VIEW_STORED_BYTES)
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "dimension %u: the stored offset at byte %" PRId64
                              " lies outside the segment's %" PRIu64 " bytes, or is misaligned",
                              d, at, size);
    uint64_t stored = atomic_load_explicit((const _Atomic uint64_t *)(const void *)(base + at),
                                           memory_order_relaxed);
    if (stored > INT64_MAX || __builtin_add_overflow((int64_t)stored, suboffset, ret))
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "dimension %u: the offset stored at byte %" PRId64 " is %" PRIu64
                              ", the segment has %" PRIu64 " bytes",
                              d, at, stored, size);
    return 0;
}

int view_locate(const struct view_desc *desc, const unsigned char *base, uint64_t size,
                const int64_t *index, uint64_t *ret_offset, struct view_fault *fault)
{
    int64_t at = (int64_t)desc->offset, step;
    for (uint32_t d = 0; d < desc->ndim; d++) {
        if (index[d] < 0 || index[d] >= desc->shape[d])
            return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                                  "index %" PRId64 " of dimension %u, which has length %" PRId64,
                                  index[d], d, desc->shape[d]);
        /* a sum beyond 63 bits cannot come back, because a row is not longer than the segment */
        if (__builtin_mul_overflow(index[d], desc->strides[d], &step) ||
            __builtin_add_overflow(at, step, &at))
            return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                                  "dimension %u leads further than 2^63 bytes", d);
        if (desc->indirect && desc->suboffsets[d] >= 0 &&
            follow(base, size, at, d, desc->suboffsets[d], &at, fault))
            return -1;
    }
    uint64_t itemsize = desc->item->itemsize;
    if (at < 0 || (uint64_t)at > size || size - (uint64_t)at < itemsize)
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "the element would lie at byte %" PRId64 ", the segment has %" PRIu64
                              " bytes",
                              at, size);
    if (at % desc->item->align)
        return view_fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                              "the element would lie at byte %" PRId64
                              ", no multiple of %u, the alignment of %s",
                              at, desc->item->align, format_name(desc->item));
    *ret_offset = (uint64_t)at;
    return 0;
}

/* --- Casting ------------------------------------------------------------- */

int view_cast(struct view_desc *desc, uint64_t offset, uint64_t nbytes, uint64_t size,
              struct view_fault *fault)
{
    uint64_t itemsize = desc->item->itemsize;
    if (offset > size || (nbytes != UINT64_MAX && nbytes > size - offset))
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "%" PRIu64 " bytes at byte %" PRIu64
                              " lie outside the segment's %" PRIu64 " bytes",
                              nbytes == UINT64_MAX ? 0 : nbytes, offset, size);
    if (nbytes == UINT64_MAX)
        nbytes = size - offset;
    if (nbytes % itemsize)
        return view_fault_set(
            fault, SHMVIEW_ERR_ILL_SIZED,
            "%" PRIu64 " bytes at byte %" PRIu64 " do not divide into %s of %" PRIu64
            " bytes: the last whole one ends at byte %" PRIu64,
            nbytes, offset, format_name(desc->item), itemsize, offset + nbytes - nbytes % itemsize);
    desc->offset = offset;
    desc->ndim = 1;
    desc->indirect = false;
    desc->shape[0] = (int64_t)(nbytes / itemsize);
    desc->strides[0] = (int64_t)itemsize;
    return check_alignment(desc, fault);
}
