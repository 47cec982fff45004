/* SPDX-License-Identifier: Apache-2.0 */
/* Exports views as tensors of DLPack.
 *
 * A consumer may keep a tensor longer than any object of Python, and may call its deleter on any
 * thread, even after the end of the interpreter. Therefore a tensor keeps the memory of the segment
 * through libshmview, and its deleter needs neither the GIL nor an interpreter. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

/* The part of the ABI of github.com/dmlc/dlpack that is needed here. The module defines it itself
 * because the header is rarely installed. */
struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct DLManagedTensor {
    struct tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *);
};
struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    struct tensor tensor;
};
#define FLAG_IS_COPIED 2u
#define DEVICE_CPU     1

static const char plain[] = "dltensor", versioned[] = "dltensor_versioned";

/* Destructors of the capsules. A consumer that takes the tensor renames the capsule, and calls the
 * deleter later. If the name is unchanged, no consumer has taken the tensor, and it ends here. */
static void plain_end(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, plain))
        return;
    struct DLManagedTensor *t = PyCapsule_GetPointer(capsule, plain);
    t->deleter(t);
}
static void versioned_end(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, versioned))
        return;
    struct DLManagedTensorVersioned *t = PyCapsule_GetPointer(capsule, versioned);
    t->deleter(t);
}

static PyObject *export_plain(struct view *view, const struct shmview_view *v)
{
    struct DLManagedTensor *t;
    int r = shmview_dlpack_export(v, &t);
    if (r)
        return view_raise_as_buffer_error(view, r);
    PyObject *capsule = PyCapsule_New(t, plain, plain_end);
    if (!capsule)
        t->deleter(t);
    return capsule;
}

static PyObject *export_versioned(struct view *view, const struct shmview_view *v, bool copied)
{
    struct DLManagedTensorVersioned *t;
    int r = shmview_dlpack_export_versioned(v, &t);
    if (r)
        return view_raise_as_buffer_error(view, r);
    if (copied)
        t->flags |= FLAG_IS_COPIED;
    PyObject *capsule = PyCapsule_New(t, versioned, versioned_end);
    if (!capsule)
        t->deleter(t);
    return capsule;
}

int view_copy(struct view *view, struct shmview_segment **ret_segment, struct shmview_view *ret)
{
    const struct shmview_view *v = &view->v;
    struct shmview_segment *segment;
    int64_t shape[SHMVIEW_MAX_NDIM];
    /* DLPack requires an alignment of 256 bytes; aligned_alloc() needs a multiple of it */
    size_t bytes = ((size_t)v->nbytes + 255) / 256 * 256;
    void *memory = aligned_alloc(256, bytes ? bytes : 256);
    if (!memory) {
        PyErr_NoMemory();
        return -1;
    }
    int r = shmview_wrap(memory, v->nbytes, 0, free, memory, &segment);
    if (r) {
        free(memory);
        view_raise(view, r);
        return -1;
    }
    for (uint32_t d = 0; d < v->ndim; d++)
        shape[d] = v->shape[d];
    struct shmview_view_spec spec = {.format = v->format, .ndim = v->ndim, .shape = shape};
    r = shmview_view_make(segment, &spec, ret);
    if (r == 0) {
        Py_BEGIN_ALLOW_THREADS
        r = shmview_copy(ret, v);
        Py_END_ALLOW_THREADS
    }
    if (r) {
        view_raise(view, r);
        shmview_detach(segment);
        return -1;
    }
    *ret_segment = segment;
    return 0;
}

/* Exports a copy of the elements, which the tensor owns. Returns a capsule or NULL with an
 * exception. */
static PyObject *export_copy(struct view *view, bool is_versioned)
{
    struct shmview_segment *segment;
    struct shmview_view copy;
    if (view_copy(view, &segment, &copy))
        return NULL;
    PyObject *capsule =
        is_versioned ? export_versioned(view, &copy, true) : export_plain(view, &copy);
    shmview_detach_later(segment); /* the last tensor detaches it, which frees the memory */
    return capsule;
}

/* Refuses negative strides, because consumers other than numpy do not support them: torch 1.13 ends
 * the process. Returns 0, or -1 with BufferError. */
static int check_strides(const struct shmview_view *v)
{
    for (uint32_t d = 0; d < v->ndim; d++) {
        if (v->strides[d] >= 0 || v->shape[d] < 2)
            continue;
        PyErr_Format(PyExc_BufferError,
                     "dimension %u has a stride of %zd bytes, and no consumer of DLPack but numpy "
                     "supports negative strides: use numpy.asarray(view), or copy=True",
                     (unsigned)d, (Py_ssize_t)v->strides[d]);
        return -1;
    }
    return 0;
}

/* Checks dl_device: None, or (device type, device id), which must be the CPU. Returns 0, or -1 with
 * an exception. */
static int check_device(PyObject *device)
{
    int type, id;
    if (device == Py_None)
        return 0;
    if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "dl_device: a tuple of two integers, or None");
        return -1;
    }
    if (type == DEVICE_CPU && id == 0)
        return 0;
    PyErr_Format(PyExc_BufferError, "the memory is the CPU's (1, 0), not that of device (%d, %d)",
                 type, id);
    return -1;
}

/* Whether the consumer supports the versioned form. Returns 1, 0, or -1 with an exception. */
static int knows_versioned(PyObject *max_version)
{
    unsigned major, minor;
    if (max_version == Py_None)
        return 0;
    if (!PyTuple_Check(max_version) || !PyArg_ParseTuple(max_version, "II", &major, &minor)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "max_version: a tuple of two integers, or None");
        return -1;
    }
    return major >= 1;
}

/* Exports the elements as the arguments of __dlpack__() require. The caller prevents the release of
 * the view. Returns a capsule or NULL with an exception. */
static PyObject *export_as(struct view *view, PyObject *max_version, PyObject *device,
                           PyObject *copy)
{
    int is_versioned = knows_versioned(max_version);
    if (is_versioned < 0 || check_device(device))
        return NULL;
    int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (copied < 0 || (!copied && check_strides(&view->v)))
        return NULL;
    return copied         ? export_copy(view, is_versioned)
           : is_versioned ? export_versioned(view, &view->v, false)
                          : export_plain(view, &view->v);
}

PyObject *view_dlpack(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"stream", "max_version", "dl_device", "copy", NULL};
    struct view *self = (struct view *)op;
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", keywords, &stream,
                                     &max_version, &device, &copy) ||
        view_check(self))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "stream: the memory is the CPU's, which has none");
        return NULL;
    }
    COUNT_ADD(self->n_exports, 1); /* conversions of the arguments must not release the view */
    PyObject *capsule = export_as(self, max_version, device, copy);
    COUNT_ADD(self->n_exports, -1);
    return capsule;
}

PyObject *view_dlpack_device(PyObject *Py_UNUSED(op), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("(ii)", DEVICE_CPU, 0);
}
