/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes a view in C order without a copy.
 *
 * Old dimensions of length 1 are ignored, because they have no steps. From the front, old and new
 * dimensions are taken in groups with the same number of elements. The old dimensions of a group
 * must be evenly spaced, as if they were one dimension. The new dimensions of the group then divide
 * it. If they are not evenly spaced, the new shape would need a copy. */
#include <inttypes.h>
#include <string.h>

#include "common/views/view_ops.h"

/* Copies the shape to ret, computes a length of -1, and checks the number of elements. Returns 0 or
 * -1 with *fault. */
static int complete_shape(const struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                          int64_t *ret, struct view_fault *fault)
{
    int64_t n = 1, given = 1;
    int left_out = -1;
    for (uint32_t d = 0; d < desc->ndim; d++)
        n *= desc->shape[d]; /* the description was checked: no overflow */
    for (uint32_t d = 0; d < ndim; d++) {
        ret[d] = shape[d];
        if (shape[d] == -1 && left_out < 0)
            left_out = (int)d;
        else if (shape[d] < 0)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID, "dimension %u: length %" PRId64, d,
                                  shape[d]);
        else if (__builtin_mul_overflow(given, shape[d], &given))
            return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW,
                                  "dimension %u: more than 2^63 elements", d);
    }
    if (left_out >= 0 ? given == 0 || n % given != 0 : given != n)
        return view_fault_set(fault, SHMVIEW_ERR_ILL_SIZED,
                              "%" PRId64 " elements do not divide into %" PRId64, n, given);
    if (left_out >= 0)
        ret[left_out] = n / given;
    return 0;
}

/* n * stride. Unsigned, so that an overflow is not undefined; callers use the result only if there
 * is none. */
static int64_t steps(int64_t n, int64_t stride)
{
    return (int64_t)((uint64_t)n * (uint64_t)stride);
}

/* The dimensions of a view whose lengths are not 1. */
struct extents {
    uint32_t n;
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM];
};

static struct extents extents_of(const struct view_desc *desc)
{
    struct extents e = {0};
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] != 1) {
            e.shape[e.n] = desc->shape[d];
            e.strides[e.n++] = desc->strides[d];
        }
    return e;
}

/* Sets the strides of the new dimensions [first, end), which divide the old dimensions [from, to).
 * Returns 0, or -1 if the old ones are not evenly spaced. */
static int divide_group(const struct extents *old, uint32_t from, uint32_t to,
                        struct view_desc *desc, uint32_t first, uint32_t end,
                        struct view_fault *fault)
{
    for (uint32_t d = from; d + 1 < to; d++)
        if (old->strides[d] != steps(old->shape[d + 1], old->strides[d + 1]))
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  "this shape would need a copy: dimension %u, of lengths other "
                                  "than 1, has stride %" PRId64 ", not %" PRId64,
                                  d, old->strides[d],
                                  steps(old->shape[d + 1], old->strides[d + 1]));
    int64_t step = old->strides[to - 1];
    for (uint32_t d = end; d-- > first;) {
        desc->strides[d] = step;
        step = steps(desc->shape[d], step);
    }
    return 0;
}

/* Sets the strides of all new dimensions, group by group. Neither shape has a length of 0, and both
 * have the same number of elements, so the groups end together. */
static int set_strides(const struct extents *old, struct view_desc *desc, struct view_fault *fault)
{
    uint32_t from = 0, first = 0;
    while (from < old->n && first < desc->ndim) {
        int64_t n = old->shape[from], m = desc->shape[first];
        uint32_t to = from + 1, end = first + 1;
        while (n != m)
            if (n < m)
                n *= old->shape[to++];
            else
                m *= desc->shape[end++];
        if (divide_group(old, from, to, desc, first, end, fault))
            return -1;
        from = to;
        first = end;
    }
    for (; first < desc->ndim; first++) /* lengths of 1 at the end */
        desc->strides[first] = desc->item->itemsize;
    return 0;
}

int view_reshape(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                 struct view_fault *fault)
{
    struct view_desc to = *desc;
    if (desc->indirect)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "a view with suboffsets cannot be reshaped");
    if (ndim > SHMVIEW_MAX_NDIM)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%u dimensions, the limit is %d", ndim,
                              SHMVIEW_MAX_NDIM);
    if (complete_shape(desc, ndim, shape, to.shape, fault))
        return -1;
    to.ndim = ndim;
    struct extents old = extents_of(desc);
    bool empty = false;
    for (uint32_t d = 0; d < ndim; d++)
        empty = empty || to.shape[d] == 0;
    if (empty ? view_fill_strides(&to, fault) : set_strides(&old, &to, fault))
        return -1;
    *desc = to;
    return 0;
}
