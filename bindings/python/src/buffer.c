/* SPDX-License-Identifier: Apache-2.0 */
/* Views as buffers of PEP 3118, and by numpy's array protocol. */
#include <stddef.h>
#include <string.h>

#include "view.h"

/* With suboffsets the buffer has a table of its own, which libshmview makes. */
static int get_indirect(struct view *view, Py_buffer *buffer, int flags)
{
    struct shmview_buffer *table = PyMem_Calloc(1, sizeof *table);
    if (!table) {
        PyErr_NoMemory();
        return -1;
    }
    int r = shmview_buffer_get(&view->v, (unsigned)flags, table);
    if (r) {
        PyMem_Free(table);
        view_raise_as_buffer_error(view, r);
        return -1;
    }
    buffer->buf = table->buf;
    buffer->len = (Py_ssize_t)table->len;
    buffer->itemsize = (Py_ssize_t)table->itemsize;
    buffer->readonly = table->readonly;
    buffer->ndim = (int)table->ndim;
    buffer->format = (char *)(uintptr_t)table->format;
    buffer->shape = (Py_ssize_t *)(uintptr_t)table->shape;
    buffer->strides = (Py_ssize_t *)(uintptr_t)table->strides;
    buffer->suboffsets = (Py_ssize_t *)(uintptr_t)table->suboffsets;
    buffer->internal = table;
    return 0;
}

static bool asks(int flags, int wish)
{
    return (flags & wish) == wish;
}

/* One dimension, as most have, needs no call. */
static bool is_c_contiguous(const struct shmview_view *v)
{
    return LIKELY(v->ndim == 1 && v->strides[0] == (ptrdiff_t)v->itemsize) ||
           shmview_view_is_contiguous(v, 'C');
}

/* What the consumer wants and the view has not, or NULL. */
static const char *what_is_missing(const struct view *view, int flags)
{
    const struct shmview_view *v = &view->v;
    if (asks(flags, PyBUF_WRITABLE) && v->flags & SHMVIEW_VIEW_READ_ONLY)
        return "the view is read-only";
    if (asks(flags, PyBUF_C_CONTIGUOUS) && !is_c_contiguous(v))
        return "the view is not C-contiguous";
    if (asks(flags, PyBUF_F_CONTIGUOUS) && !shmview_view_is_contiguous(v, 'F'))
        return "the view is not Fortran-contiguous";
    if (asks(flags, PyBUF_ANY_CONTIGUOUS) && !shmview_view_is_contiguous(v, 'A'))
        return "the view is not contiguous";
    if (!asks(flags, PyBUF_STRIDES) && !is_c_contiguous(v))
        return "the view needs strides";
    if (!asks(flags, PyBUF_ND) && asks(flags, PyBUF_FORMAT))
        return "a format without a shape: there are only bytes then";
    return NULL;
}

static int get_direct(struct view *view, Py_buffer *buffer, int flags)
{
    struct shmview_view *v = &view->v;
    const char *missing = what_is_missing(view, flags);
    if (UNLIKELY(missing)) {
        PyErr_SetString(PyExc_BufferError, missing);
        return -1;
    }
    bool nd = asks(flags, PyBUF_ND);
    buffer->buf = v->data;
    buffer->len = (Py_ssize_t)v->nbytes;
    buffer->itemsize = (Py_ssize_t)v->itemsize;
    buffer->readonly = (v->flags & SHMVIEW_VIEW_READ_ONLY) != 0;
    buffer->ndim = nd ? (int)v->ndim : 1;
    buffer->format = asks(flags, PyBUF_FORMAT) ? (char *)(uintptr_t)v->format : NULL;
    buffer->shape = nd && v->ndim ? v->shape : NULL;
    buffer->strides = asks(flags, PyBUF_STRIDES) && v->ndim ? v->strides : NULL;
    buffer->suboffsets = NULL;
    buffer->internal = NULL;
    return 0;
}

/* --- Who has a buffer ---------------------------------------------------- */

/* The owner of a buffer in the eyes of its consumer: it counts it, and goes with it.
 *
 * The type View itself has no bf_releasebuffer, for numpy.frombuffer() puts a memoryview of its
 * own between an array and what has one, which costs as much as the rest. It gives its buffer
 * back and keeps the view, which counts as an address that is known. */
struct lease {
    PyObject_HEAD struct view *view;
    void *table; /* of a buffer with suboffsets, or NULL */
};

static void lease_dealloc(PyObject *op)
{
    struct lease *self = (struct lease *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->table) {
        shmview_buffer_release(self->table);
        PyMem_Free(self->table);
    }
    COUNT_ADD(self->view->n_exports, -1);
    Py_DECREF((PyObject *)self->view);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *lease_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<buffer of %R>", (PyObject *)((struct lease *)op)->view);
}

static PyMemberDef lease_members[] = {
    {"view", T_OBJECT, offsetof(struct lease, view), READONLY, "The View."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot lease_slots[] = {
    {Py_tp_doc, "What a memoryview of a View has as obj."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, lease_dealloc},
    {Py_tp_repr, lease_repr},
    {Py_tp_members, lease_members},
    {0, NULL},
};
PyType_Spec lease_spec = {
    .name = "shmview._core.Lease",
    .basicsize = sizeof(struct lease),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = lease_slots,
};

int view_getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct view *self = (struct view *)op;
    struct lease *lease = NULL;
    buffer->obj = NULL;
    if (view_check(self))
        return -1;
    if (asks(flags, PyBUF_ND)) {
        lease = PyObject_New(struct lease, self->segment->state->lease_type);
        if (!lease)
            return -1;
        lease->view = (struct view *)Py_NewRef(op);
        lease->table = NULL;
        COUNT_ADD(self->n_exports, 1);
    }
    int r =
        view_is_direct(self) ? get_direct(self, buffer, flags) : get_indirect(self, buffer, flags);
    if (r) {
        Py_XDECREF((PyObject *)lease);
        return -1;
    }
    if (lease) {
        lease->table = buffer->internal;
        buffer->obj = (PyObject *)lease;
    } else {
        self->address_is_known = true;
        buffer->obj = Py_NewRef(op);
    }
    return 0;
}

/* --- numpy's array protocol ---------------------------------------------- */

/* The typestr of a type that is one number, or NULL. */
static const char *typestr(const struct shmview_view *v, char text[16])
{
    if (v->dtype == SHMVIEW_STRUCT || (v->dtype & ~(uint32_t)SHMVIEW_SWAPPED) >= SHMVIEW_PASCAL)
        return NULL;
    const char kind = "VSbiufc"[shmview_dtype_kind(v->dtype)];
    bool little = PY_LITTLE_ENDIAN != ((v->dtype & SHMVIEW_SWAPPED) != 0);
    PyOS_snprintf(text, 16, "%c%c%u",
                  v->itemsize == 1 || kind == 'S' ? '|'
                  : little                        ? '<'
                                                  : '>',
                  kind, v->itemsize);
    return text;
}

PyObject *view_get_array_interface(PyObject *op, void *Py_UNUSED(closure))
{
    struct view *self = (struct view *)op;
    char text[16];
    if (view_check(self)) {
        /* an AttributeError would say that there is no such protocol */
        return NULL;
    }
    const struct shmview_view *v = &self->v;
    if (!view_is_direct(self) || v->itemsize > 999999 || !typestr(v, text)) {
        PyErr_Format(PyExc_AttributeError, "format '%s'%s has no __array_interface__", v->format,
                     view_is_direct(self) ? "" : " with suboffsets");
        return NULL;
    }
    /* who takes the address keeps this object, but no buffer of it */
    self->address_is_known = true;
    return Py_BuildValue("{s:i,s:s,s:N,s:N,s:(NN)}", "version", 3, "typestr", text, "shape",
                         view_tuple(v->shape, v->ndim), "strides", view_tuple(v->strides, v->ndim),
                         "data", PyLong_FromVoidPtr(v->data),
                         PyBool_FromLong(v->flags & SHMVIEW_VIEW_READ_ONLY));
}
