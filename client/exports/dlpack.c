/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: views in the terms of DLPack, exported and imported.
 *
 * DLPack counts strides in elements, and has no structs, strings, other byte orders or stored
 * offsets. Views that need these are refused.
 *
 * An exported tensor keeps its segment mapped until the consumer calls the deleter, in whatever
 * thread. An imported tensor becomes a segment of foreign memory (shmview_wrap()), whose release
 * calls the exporter's deleter. The segment covers exactly the bytes that the tensor's elements
 * reach, because DLPack does not have the size of the memory, and all later checks of views need
 * one. */
#include "client/exports/dlpack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/segment/export.h"
#include "client/views/handle.h"
#include "common/base/util.h"

/* --- Types --------------------------------------------------------------- */

/* Types of shmview and their names in DLPack. */
static const struct type_pair {
    uint16_t dtype;
    uint8_t code, bits;
} types[] = {
    {SHMVIEW_INT8, DLPACK_INT, 8},
    {SHMVIEW_INT16, DLPACK_INT, 16},
    {SHMVIEW_INT32, DLPACK_INT, 32},
    {SHMVIEW_INT64, DLPACK_INT, 64},
    {SHMVIEW_UINT8, DLPACK_UINT, 8},
    {SHMVIEW_UINT16, DLPACK_UINT, 16},
    {SHMVIEW_UINT32, DLPACK_UINT, 32},
    {SHMVIEW_UINT64, DLPACK_UINT, 64},
    {SHMVIEW_FLOAT16, DLPACK_FLOAT, 16},
    {SHMVIEW_FLOAT32, DLPACK_FLOAT, 32},
    {SHMVIEW_FLOAT64, DLPACK_FLOAT, 64},
    {SHMVIEW_BFLOAT16, DLPACK_BFLOAT, 16},
    {SHMVIEW_COMPLEX64, DLPACK_COMPLEX, 64},
    {SHMVIEW_COMPLEX128, DLPACK_COMPLEX, 128},
    {SHMVIEW_BOOL, DLPACK_BOOL, 8},
    {SHMVIEW_FLOAT8_E3M4, DLPACK_FLOAT8_E3M4, 8},
    {SHMVIEW_FLOAT8_E4M3, DLPACK_FLOAT8_E4M3, 8},
    {SHMVIEW_FLOAT8_E4M3B11FNUZ, DLPACK_FLOAT8_E4M3B11FNUZ, 8},
    {SHMVIEW_FLOAT8_E4M3FN, DLPACK_FLOAT8_E4M3FN, 8},
    {SHMVIEW_FLOAT8_E4M3FNUZ, DLPACK_FLOAT8_E4M3FNUZ, 8},
    {SHMVIEW_FLOAT8_E5M2, DLPACK_FLOAT8_E5M2, 8},
    {SHMVIEW_FLOAT8_E5M2FNUZ, DLPACK_FLOAT8_E5M2FNUZ, 8},
    {SHMVIEW_FLOAT8_E8M0FNU, DLPACK_FLOAT8_E8M0FNU, 8},
};

/* Returns the DLPack type, or NULL. A type of the other byte order has none. */
static const struct type_pair *type_of_dtype(uint32_t dtype)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].dtype == dtype)
            return &types[i];
    return NULL;
}

/* Returns the type of elements, or NULL. */
static const struct dtype *dtype_of_type(struct dlpack_type type)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (types[i].code == type.code && types[i].bits == type.bits && type.lanes == 1)
            return dtype_of(types[i].dtype);
    return NULL;
}

/* --- Exporting ----------------------------------------------------------- */

/* An exported tensor and everything to which it points, in one allocation. The consumer owns it and
 * returns it by the deleter. It holds one count of its segment (client/segment/export.h). */
struct exported {
    union {
        struct DLManagedTensor old;
        struct DLManagedTensorVersioned versioned;
    };
    struct shmview_segment *segment;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int64_t strides[SHMVIEW_MAX_NDIM];
};

/* Frees a tensor and returns its count. Runs in any thread of the consumer. The last count of a
 * segment that was given to shmview_detach_later() detaches it, which must be outside
 * NOT_FORKED. */
static void exported_free(struct exported *e)
{
    struct shmview_segment *segment = e->segment;
    bool last;
    {
        NOT_FORKED;
        free(e);
        last = segment_drop(segment);
    }
    if (last)
        segment_close(segment);
}

static void delete_old(struct DLManagedTensor *self)
{
    exported_free(self->owner);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    exported_free(self->owner);
}

/* Converts strides from bytes to elements. Strides that are never applied (no elements, or a length
 * of 1) need not be whole elements. Returns 0 or an error. */
static int export_strides(const struct shmview_view *view, int64_t *ret)
{
    for (uint32_t d = 0; d < view->ndim; d++) {
        ret[d] = view->strides[d] / (ptrdiff_t)view->itemsize;
        if (view->strides[d] % (ptrdiff_t)view->itemsize && view->nbytes && view->shape[d] > 1)
            return fail(SHMVIEW_ERR_CONTIGUOUS,
                        "dimension %u: a stride of %td bytes is no number of elements of %u bytes",
                        d, view->strides[d], view->itemsize);
    }
    return 0;
}

/* Makes a tensor that has no deleter yet and does not hold the segment. The caller must pass *ret
 * to hold_for(). Returns 0 or an error. */
static int make_exported(const struct shmview_view *view, struct dlpack_tensor *ret_tensor,
                         struct exported **ret)
{
    const struct type_pair *type = type_of_dtype(view->dtype);
    if (!type)
        return fail(SHMVIEW_ERR_CONVERSION, "DLPack has no type for elements of format \"%.80s\"",
                    view->format);
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return fail(SHMVIEW_ERR_CONTIGUOUS, "the view has suboffsets, which DLPack does not have");
    if (view->flags & SHMVIEW_VIEW_UNALIGNED)
        return fail(SHMVIEW_ERR_MISALIGNED,
                    "elements of format \"%.80s\" are unaligned, but consumers of DLPack read them "
                    "by typed pointers: copy the view first",
                    view->format);
    CLEANUP_FREE struct exported *e = calloc(1, sizeof *e);
    if (!e)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int r = export_strides(view, e->strides);
    if (r)
        return r;
    for (uint32_t d = 0; d < view->ndim; d++)
        e->shape[d] = view->shape[d];
    e->segment = view->segment;
    *ret_tensor = (struct dlpack_tensor){
        .data = view->nbytes ? view->data : NULL, /* as DLPack requires */
        .device_type = DLPACK_CPU,
        .ndim = (int32_t)view->ndim,
        .type = {type->code, type->bits, 1},
        .shape = e->shape,
        .strides = e->strides,
    };
    *ret = STEAL(e);
    return 0;
}

/* Lets a complete tensor hold its segment. Returns 0, or frees the tensor and returns an error. */
static int hold_for(struct exported *e)
{
    NOT_FORKED;
    int r = segment_hold(e->segment);
    if (r)
        free(e);
    return r;
}

int shmview_dlpack_export(const struct shmview_view *view, struct DLManagedTensor **ret_tensor)
{
    struct exported *e;
    struct dlpack_tensor tensor;
    if (view->flags & SHMVIEW_VIEW_READ_ONLY)
        return fail(SHMVIEW_ERR_READ_ONLY,
                    "the view is read-only, which DLPack's old form cannot express");
    int r = make_exported(view, &tensor, &e);
    if (r)
        return r;
    e->old = (struct DLManagedTensor){.tensor = tensor, .owner = e, .deleter = delete_old};
    r = hold_for(e);
    if (r == 0)
        *ret_tensor = &e->old;
    return r;
}

int shmview_dlpack_export_versioned(const struct shmview_view *view,
                                    struct DLManagedTensorVersioned **ret_tensor)
{
    struct exported *e;
    struct dlpack_tensor tensor;
    int r = make_exported(view, &tensor, &e);
    if (r)
        return r;
    e->versioned = (struct DLManagedTensorVersioned){
        .major = DLPACK_MAJOR,
        .minor = DLPACK_MINOR,
        .owner = e,
        .deleter = delete_versioned,
        .flags = view->flags & SHMVIEW_VIEW_READ_ONLY ? DLPACK_READ_ONLY : 0,
        .tensor = tensor,
    };
    r = hold_for(e);
    if (r == 0)
        *ret_tensor = &e->versioned;
    return r;
}

/* --- Importing ----------------------------------------------------------- */

/* A tensor in the terms of shmview: the memory that its elements reach, and the view in that
 * memory. */
struct imported {
    const struct dtype *dtype;
    uint32_t ndim;
    bool is_empty;
    int64_t strides[SHMVIEW_MAX_NDIM]; /* bytes */
    unsigned char *lowest;
    uint64_t nbytes;
    uint64_t offset; /* of element [0, ..., 0] */
};

/* Returns the name of a device type, for an error text. */
static const char *device_name(int32_t type)
{
    static const char *const names[] = {
        [1] = "CPU",          [2] = "CUDA",          [3] = "pinned CUDA",   [4] = "OpenCL",
        [7] = "Vulkan",       [8] = "Metal",         [9] = "VPI",           [10] = "ROCm",
        [11] = "pinned ROCm", [12] = "an extension", [13] = "managed CUDA", [14] = "oneAPI",
        [15] = "WebGPU",      [16] = "Hexagon",      [17] = "MAIA",         [18] = "Trainium",
    };
    const char *name = type > 0 && (size_t)type < ARRAY_LEN(names) ? names[type] : NULL;
    return name ? name : "unknown";
}

/* The next four functions check a tensor and fill *ret step by step. A tensor comes from another
 * library and is not trusted to be well formed. Each returns 0 or an error. */
static int check_type(const struct dlpack_tensor *t, struct imported *ret)
{
    if (t->device_type != DLPACK_CPU)
        return fail(SHMVIEW_ERR_CONVERSION,
                    "the tensor is on device type %" PRId32 " (%s), number %" PRId32
                    ": only the CPU's memory has views",
                    t->device_type, device_name(t->device_type), t->device_id);
    ret->dtype = dtype_of_type(t->type);
    if (ret->dtype)
        return 0;
    return fail(SHMVIEW_ERR_CONVERSION, "no element type is like code %u, %u bits, %u lanes",
                t->type.code, t->type.bits, t->type.lanes);
}

static int check_shape(const struct dlpack_tensor *t, struct imported *ret)
{
    if (t->ndim < 0 || t->ndim > SHMVIEW_MAX_NDIM)
        return fail(SHMVIEW_ERR_INVALID, "ndim %" PRId32 ", not 0 to %d", t->ndim,
                    SHMVIEW_MAX_NDIM);
    if (t->ndim && !t->shape)
        return fail(SHMVIEW_ERR_INVALID, "shape is NULL where ndim is %" PRId32, t->ndim);
    ret->ndim = (uint32_t)t->ndim;
    for (uint32_t d = 0; d < ret->ndim; d++) {
        if (t->shape[d] < 0)
            return fail(SHMVIEW_ERR_INVALID, "shape[%u] is %" PRId64, d, t->shape[d]);
        ret->is_empty = ret->is_empty || t->shape[d] == 0;
    }
    if (!t->data && !ret->is_empty)
        return fail(SHMVIEW_ERR_INVALID, "data is NULL, and there are elements");
    return 0;
}

/* Strides may be NULL, which means C order. */
static int take_strides(const struct dlpack_tensor *t, struct imported *ret)
{
    int64_t itemsize = ret->dtype->itemsize;
    struct view_fault fault;
    if (!t->strides)
        return view_strides(ret->ndim, t->shape, ret->dtype->itemsize, 'C', ret->strides, &fault)
                   ? fail_view(NULL, &fault)
                   : 0;
    for (uint32_t d = 0; d < ret->ndim; d++)
        if (__builtin_mul_overflow(t->strides[d], itemsize, &ret->strides[d]))
            return fail(SHMVIEW_ERR_OVERFLOW,
                        "strides[%u] is %" PRId64 " elements of %" PRId64 " bytes, which overflows",
                        d, t->strides[d], itemsize);
    return 0;
}

/* Computes the bytes from the lowest to the highest byte of any element. Called only if there are
 * elements. All sums are checked, because a tensor is only numbers here. */
static int take_reach(const struct dlpack_tensor *t, struct imported *ret)
{
    int64_t low = 0, high = ret->dtype->itemsize, steps;
    for (uint32_t d = 0; d < ret->ndim; d++)
        if (__builtin_mul_overflow(t->shape[d] - 1, ret->strides[d], &steps) ||
            __builtin_add_overflow(steps < 0 ? low : high, steps, steps < 0 ? &low : &high))
            return fail(SHMVIEW_ERR_OVERFLOW,
                        "dimension %u: %" PRId64 " elements with strides of %" PRId64
                        " bytes overflow",
                        d, t->shape[d], ret->strides[d]);
    uintptr_t first, lowest, end;
    if (__builtin_add_overflow((uintptr_t)t->data, t->byte_offset, &first) ||
        __builtin_add_overflow(first, low, &lowest) || __builtin_add_overflow(first, high, &end) ||
        end - lowest > INT64_MAX)
        return fail(SHMVIEW_ERR_OVERFLOW,
                    "data %p, byte_offset %" PRIu64 ": elements from %" PRId64 " to %" PRId64
                    " bytes from there are outside of all memory",
                    t->data, t->byte_offset, low, high);
    if (first % ret->dtype->align)
        return fail(SHMVIEW_ERR_MISALIGNED,
                    "data %p, byte_offset %" PRIu64 ": no multiple of %u, the alignment of %s",
                    t->data, t->byte_offset, ret->dtype->align, ret->dtype->name);
    ret->lowest = (unsigned char *)t->data + t->byte_offset + low;
    ret->nbytes = end - lowest;
    ret->offset = first - lowest;
    return 0;
}

/* Makes a segment of the tensor's memory and a view of its elements. On success the segment owns
 * the tensor: release(arg) is called when it is detached. These are set last, so that on a failure
 * the caller still owns the tensor. Returns 0 or an error. */
static int import(const struct dlpack_tensor *t, bool read_only, void (*release)(void *), void *arg,
                  struct shmview_segment **ret_segment, struct shmview_view *ret_view)
{
    struct imported i = {.dtype = NULL};
    struct shmview_segment *s;
    int r = check_type(t, &i);
    if (r == 0)
        r = check_shape(t, &i);
    if (r == 0)
        r = take_strides(t, &i);
    if (r == 0 && !i.is_empty)
        r = take_reach(t, &i);
    if (r == 0)
        r = shmview_wrap(i.lowest, i.nbytes, read_only ? SHMVIEW_WRAP_READ_ONLY : 0, NULL, NULL,
                         &s);
    if (r)
        return r;
    struct shmview_view_spec spec = {
        .format = i.dtype->name,
        .offset = i.offset,
        .ndim = i.ndim,
        .shape = t->shape,
        .strides = i.strides,
    };
    r = shmview_view_make(s, &spec, ret_view);
    if (r) {
        segment_close(s);
        return r;
    }
    s->release = release;
    s->release_arg = arg;
    *ret_segment = s;
    return 0;
}

/* Release functions of the segments of imported tensors. */
static void call_old(void *arg)
{
    struct DLManagedTensor *tensor = arg;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

static void call_versioned(void *arg)
{
    struct DLManagedTensorVersioned *tensor = arg;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

int shmview_dlpack_import(struct DLManagedTensor *tensor, struct shmview_segment **ret_segment,
                          struct shmview_view *ret_view)
{
    if (!tensor)
        return fail(SHMVIEW_ERR_INVALID, "no tensor");
    return import(&tensor->tensor, false, call_old, tensor, ret_segment, ret_view);
}

int shmview_dlpack_import_versioned(struct DLManagedTensorVersioned *tensor,
                                    struct shmview_segment **ret_segment,
                                    struct shmview_view *ret_view)
{
    if (!tensor)
        return fail(SHMVIEW_ERR_INVALID, "no tensor");
    if (tensor->major != DLPACK_MAJOR)
        return fail(SHMVIEW_ERR_UNSUPPORTED, "DLPack %u.%u; this library knows version %d",
                    tensor->major, tensor->minor, DLPACK_MAJOR);
    return import(&tensor->tensor, tensor->flags & DLPACK_READ_ONLY, call_versioned, tensor,
                  ret_segment, ret_view);
}
