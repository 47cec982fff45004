/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that derive a view from another one: the public side of common/views/view_ops.h.
 *
 * Each call does the same: describe the view, change the description, check it, and fill the
 * result. The result may be the view that was given, so *ret is written last. */
#include <string.h>

#include "client/views/handle.h"
#include "common/views/view_ops.h"

/* Ends each call: r is the result of the operation, *desc what it made. The new view belongs to the
 * phase of the given one. Reads that phase first, because ret may be view. Returns 0 or an
 * error. */
static int finish(const struct shmview_view *view, int r, struct view_desc *desc,
                  const struct view_fault *fault, struct shmview_view *ret)
{
    uint32_t layout = view->layout, generation = view->generation;
    if (r)
        return fail_view(NULL, fault);
    r = view_finish(view->segment, desc, NULL, ret);
    if (r)
        return r;
    ret->layout = layout;
    ret->generation = generation;
    return 0;
}

int shmview_view_is_contiguous(const struct shmview_view *view, char order)
{
    struct view_desc desc;
    view_describe(view, &desc);
    return view_is_contiguous(&desc, order);
}

int shmview_fill_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                         int64_t *ret_strides)
{
    struct view_fault fault;
    if ((order != 'C' && order != 'F') || itemsize == 0)
        return fail(SHMVIEW_ERR_INVALID, "order '%c', items of %u bytes", order, itemsize);
    if (view_strides(ndim, shape, itemsize, order, ret_strides, &fault))
        return fail_view(NULL, &fault);
    return 0;
}

int shmview_view_pointer(const struct shmview_view *view, const ptrdiff_t *index,
                         void **ret_pointer)
{
    struct view_desc desc;
    struct view_fault fault;
    int64_t at[SHMVIEW_MAX_NDIM];
    uint64_t offset;
    view_describe(view, &desc);
    for (uint32_t d = 0; d < view->ndim; d++)
        at[d] = index[d];
    if (view_locate(&desc, view->segment->data, view->segment->size, at, &offset, &fault))
        return fail_view(NULL, &fault);
    *ret_pointer = (unsigned char *)view->segment->data + offset;
    return 0;
}

int shmview_view_recast(const struct shmview_view *view, const char *format,
                        struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    const struct format *item = segment_format(view->segment, format, &fault);
    int r = item ? view_recast(&desc, item, &fault) : -1;
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_bytes(const struct shmview_view *view, struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    const struct format *byte = segment_format(view->segment, "B", &fault);
    int r = byte ? view_bytes(&desc, byte, &fault) : -1;
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_reshape(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                         struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r = view_reshape(&desc, ndim, shape, &fault);
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_slice(const struct shmview_view *view, uint32_t dimension, int64_t start,
                       int64_t stop, int64_t step, struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r = view_slice(&desc, dimension, start, stop, step, &fault);
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_index(const struct shmview_view *view, uint32_t dimension, int64_t i,
                       struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r = view_index(&desc, dimension, i, view->segment->data, view->segment->size, &fault);
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_transpose(const struct shmview_view *view, const uint32_t *axes,
                           struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r = view_transpose(&desc, axes, &fault);
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_broadcast(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                           struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r = view_broadcast(&desc, ndim, shape, &fault);
    return finish(view, r, &desc, &fault, ret_view);
}

int shmview_view_field(const struct shmview_view *view, const char *name,
                       struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    view_describe(view, &desc);
    int r;
    /* The field may need a new format in the pool, which a fork must not copy half made. */
    {
        NOT_FORKED;
        r = view_field(&desc, &view->segment->formats, name, &fault);
    }
    return finish(view, r, &desc, &fault, ret_view);
}
