/* SPDX-License-Identifier: Apache-2.0 */
/* Views with suboffsets need care: after a stored row offset, a byte distance counts from the row
 * and not from the view. To move the beginning along such a dimension, move() therefore changes the
 * suboffset before that dimension instead of the offset of the view.
 *
 * Each function works on a copy, and stores it only after all checks. */
#include "common/views/view_ops.h"

#include <inttypes.h>
#include <string.h>

#define DIM "dimension %u"

static bool is_empty(const struct view_desc *desc)
{
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] == 0)
            return true;
    return false;
}

static int check_dimension(const struct view_desc *desc, uint32_t d, struct view_fault *fault)
{
    if (d < desc->ndim)
        return 0;
    return view_fault_set(fault, SHMVIEW_ERR_INVALID, DIM ", the view has %u", d, desc->ndim);
}

/* Checks that the view is C-contiguous. `what` names the operation in the message. */
static int check_contiguous(const struct view_desc *desc, const char *what,
                            struct view_fault *fault)
{
    if (desc->indirect)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%s of a view with suboffsets", what);
    if (is_empty(desc))
        return 0;
    int64_t want = desc->item->itemsize;
    for (uint32_t d = desc->ndim; d-- > 0; want *= desc->shape[d])
        if (desc->shape[d] > 1 && desc->strides[d] != want)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  "%s needs a C-contiguous view: " DIM " has stride %" PRId64
                                  ", not %" PRId64,
                                  what, d, desc->strides[d], want);
    return 0;
}

/* Sets the strides of a C-contiguous view again, after its shape or item has changed. */
static int make_contiguous(struct view_desc *desc, struct view_fault *fault)
{
    struct view_desc d = *desc;
    if (view_fill_strides(&d, fault))
        return -1;
    *desc = d;
    return 0;
}

/* Moves the first element of dimension d by so many bytes. */
static int move(struct view_desc *desc, uint32_t d, int64_t bytes, struct view_fault *fault)
{
    while (desc->indirect && d > 0 && desc->suboffsets[d - 1] < 0)
        d--;
    if (!desc->indirect || d == 0) {
        desc->offset += (uint64_t)bytes;
        return 0;
    }
    int64_t *suboffset = &desc->suboffsets[d - 1];
    if (__builtin_add_overflow(*suboffset, bytes, &bytes) || bytes < 0)
        return view_fault_set(
            fault, SHMVIEW_ERR_INVALID,
            DIM ": its suboffset would be less than 0, which PEP 3118 cannot express", d - 1);
    *suboffset = bytes;
    return 0;
}

/* --- Formats ------------------------------------------------------------- */

static int fault_size(const struct view_desc *desc, int64_t bytes, const struct format *item,
                      struct view_fault *fault)
{
    if (desc->ndim == 0)
        return view_fault_set(fault, SHMVIEW_ERR_ILL_SIZED,
                              "one element of %" PRId64 " bytes is no %s of %u bytes", bytes,
                              format_name(item), item->itemsize);
    return view_fault_set(fault, SHMVIEW_ERR_ILL_SIZED,
                          DIM ": %" PRId64 " bytes do not divide into %s of %u bytes",
                          desc->ndim - 1, bytes, format_name(item), item->itemsize);
}

int view_recast(struct view_desc *desc, const struct format *item, struct view_fault *fault)
{
    struct view_desc to = *desc;
    if (check_contiguous(desc, "a cast", fault))
        return -1;
    int64_t bytes = desc->item->itemsize;
    if (desc->ndim)
        bytes *= desc->shape[desc->ndim - 1];
    if (desc->ndim ? bytes % item->itemsize != 0 : bytes != item->itemsize)
        return fault_size(desc, bytes, item, fault);
    if (desc->offset % item->align)
        return view_fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                              "byte %" PRIu64 " is not a multiple of %u, the alignment of %.64s%s",
                              desc->offset, item->align, format_name(item), VIEW_ALIGNMENT_HINT);
    to.item = item;
    if (desc->ndim)
        to.shape[desc->ndim - 1] = bytes / item->itemsize;
    if (make_contiguous(&to, fault))
        return -1;
    *desc = to;
    return 0;
}

int view_bytes(struct view_desc *desc, const struct format *byte, struct view_fault *fault)
{
    int64_t n = desc->item->itemsize;
    if (check_contiguous(desc, "a view of bytes", fault))
        return -1;
    for (uint32_t d = 0; d < desc->ndim; d++)
        n *= desc->shape[d];
    desc->item = byte;
    desc->ndim = 1;
    desc->shape[0] = n;
    desc->strides[0] = 1;
    return 0;
}

int view_field(struct view_desc *desc, struct formats *pool, const char *name,
               struct view_fault *fault)
{
    int i = format_find(desc->item, name);
    if (i < 0)
        return view_fault_set(fault, SHMVIEW_ERR_NOT_FOUND, "%.80s has no field %.64s",
                              desc->item->text, name ? name : "that is the only one");
    const struct format_node *node = &desc->item->nodes[i];
    if (node->ndim + desc->ndim > SHMVIEW_MAX_NDIM)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "%u dimensions and %u of the field, the limit is %d", desc->ndim,
                              node->ndim, SHMVIEW_MAX_NDIM);
    struct view_desc to = *desc;
    to.item = formats_get_node(pool, desc->item, (uint32_t)i);
    if (!to.item)
        return view_fault_set(fault, SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int64_t step = node->bytes;
    for (uint32_t k = node->ndim; k-- > 0;) {
        to.shape[desc->ndim + k] = node->shape[k];
        to.strides[desc->ndim + k] = step;
        to.suboffsets[desc->ndim + k] = -1;
        step *= node->shape[k];
    }
    to.ndim += node->ndim;
    if (!is_empty(desc) && move(&to, desc->ndim, node->offset, fault))
        return -1;
    *desc = to;
    return 0;
}

/* --- Parts --------------------------------------------------------------- */

/* Resolves a bound as Python does: a negative bound counts from the end, and the result is limited
 * to [least, most]. */
static int64_t bound(int64_t given, int64_t omitted, int64_t n, int64_t least, int64_t most)
{
    if (given == INT64_MIN)
        return omitted;
    if (given < 0)
        given += n;
    return given < least ? least : given > most ? most : given;
}

int view_slice(struct view_desc *desc, uint32_t dimension, int64_t start, int64_t stop,
               int64_t step, struct view_fault *fault)
{
    struct view_desc to = *desc;
    if (check_dimension(desc, dimension, fault))
        return -1;
    if (step == 0)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, DIM ": a step of 0", dimension);
    if (step == INT64_MIN)
        step = 1;
    int64_t n = desc->shape[dimension], count = 0;
    if (step > 0) {
        start = bound(start, 0, n, 0, n);
        stop = bound(stop, n, n, 0, n);
        count = start < stop ? (stop - start - 1) / step + 1 : 0;
    } else {
        start = bound(start, n - 1, n, -1, n - 1);
        stop = bound(stop, -1, n, -1, n - 1);
        count = start > stop ? (start - stop - 1) / -step + 1 : 0;
    }
    to.shape[dimension] = count;
    /* an empty view is not moved: its strides are not checked, so the result could be anywhere */
    if (!is_empty(&to)) {
        if (count > 1)
            to.strides[dimension] *= step;
        if (move(&to, dimension, start * desc->strides[dimension], fault))
            return -1;
    }
    *desc = to;
    return 0;
}

/* Removes a dimension. */
static void drop(struct view_desc *desc, uint32_t dimension)
{
    size_t n = (desc->ndim - 1 - dimension) * sizeof *desc->shape;
    memmove(&desc->shape[dimension], &desc->shape[dimension + 1], n);
    memmove(&desc->strides[dimension], &desc->strides[dimension + 1], n);
    memmove(&desc->suboffsets[dimension], &desc->suboffsets[dimension + 1], n);
    desc->ndim--;
    if (!desc->indirect)
        return;
    desc->indirect = false;
    for (uint32_t d = 0; d < desc->ndim; d++)
        desc->indirect = desc->indirect || desc->suboffsets[d] >= 0;
}

/* Makes the view of row i, whose offset is stored: the first dimension has a suboffset. */
static int enter_row(struct view_desc *desc, int64_t i, const unsigned char *base, uint64_t size,
                     struct view_fault *fault)
{
    /* locate the first byte of the row as an element, so that only view_locate() follows offsets */
    static const struct format byte = {.itemsize = 1, .align = 1, .text = "B"};
    struct view_desc row = *desc;
    uint64_t at;
    row.item = &byte;
    row.ndim = 1;
    if (view_locate(&row, base, size, &i, &at, fault))
        return -1;
    row = *desc;
    row.offset = at;
    drop(&row, 0);
    if (view_check(&row, size, NULL, fault))
        return -1;
    *desc = row;
    return 0;
}

int view_index(struct view_desc *desc, uint32_t dimension, int64_t i, const unsigned char *base,
               uint64_t size, struct view_fault *fault)
{
    struct view_desc to = *desc;
    if (check_dimension(desc, dimension, fault))
        return -1;
    int64_t n = desc->shape[dimension], k = i < 0 ? i + n : i;
    if (k < 0 || k >= n)
        return view_fault_set(fault, SHMVIEW_ERR_BOUNDS,
                              "index %" PRId64 " of " DIM ", which has length %" PRId64, i,
                              dimension, n);
    if (desc->indirect && desc->suboffsets[dimension] >= 0) {
        if (dimension)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  DIM " has a suboffset: all before it must be indexed first",
                                  dimension);
        if (!is_empty(desc))
            return enter_row(desc, k, base, size, fault);
        to.offset = 0; /* the view is empty; 0 is aligned for every type */
    } else if (!is_empty(desc) && move(&to, dimension, k * desc->strides[dimension], fault)) {
        return -1;
    }
    drop(&to, dimension);
    *desc = to;
    return 0;
}

/* --- Order and repetition ------------------------------------------------ */

int view_transpose(struct view_desc *desc, const uint32_t *axes, struct view_fault *fault)
{
    struct view_desc to = *desc;
    uint32_t seen = 0;
    if (desc->indirect)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "a view with suboffsets cannot be transposed");
    for (uint32_t d = 0; d < desc->ndim; d++) {
        uint32_t from = axes ? axes[d] : desc->ndim - 1 - d;
        if (from >= desc->ndim || seen & 1u << from)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  DIM ": axis %u is not one of the view's %u, or occurs twice", d,
                                  from, desc->ndim);
        seen |= 1u << from;
        to.shape[d] = desc->shape[from];
        to.strides[d] = desc->strides[from];
    }
    *desc = to;
    return 0;
}

int view_broadcast(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                   struct view_fault *fault)
{
    struct view_desc to = *desc;
    if (ndim > SHMVIEW_MAX_NDIM || ndim < desc->ndim)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "%u dimensions cannot become %u, the limit is %d", desc->ndim, ndim,
                              SHMVIEW_MAX_NDIM);
    uint32_t added = ndim - desc->ndim;
    to.ndim = ndim;
    to.read_only = true;
    for (uint32_t d = 0; d < ndim; d++) {
        int64_t n = d < added ? 1 : desc->shape[d - added];
        if (shape[d] != n && (n != 1 || shape[d] < 0))
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  DIM ": length %" PRId64 " cannot become %" PRId64, d, n,
                                  shape[d]);
        to.shape[d] = shape[d];
        to.strides[d] = d < added || shape[d] != n ? 0 : desc->strides[d - added];
        to.suboffsets[d] = d < added ? -1 : desc->suboffsets[d - added];
    }
    if (view_check(&to, INT64_MAX, NULL, fault)) /* the number of bytes may overflow */
        return -1;
    *desc = to;
    return 0;
}
