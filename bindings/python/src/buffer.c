/* SPDX-License-Identifier: Apache-2.0 */
/* Exports views as buffers of PEP 3118, and by numpy's array protocol.
 *
 * The shape and strides of a buffer point into the view, because a view does not change. A view
 * with suboffsets needs a table of addresses, which libshmview makes for each buffer. */
#include <stddef.h>
#include <string.h>

#include "view.h"

/* The format of the element, as Python, numpy and struct write it on this platform. They call a
 * 64-bit integer of C a long, and compare formats as texts. An unaligned long needs the canonical
 * format, whose mark says so. */
static char *exported_format(const struct shmview_view *v)
{
    const char *format = v->flags & SHMVIEW_VIEW_UNALIGNED                 ? v->format
                         : v->dtype == SHMVIEW_INT64 && sizeof(long) == 8  ? "l"
                         : v->dtype == SHMVIEW_UINT64 && sizeof(long) == 8 ? "L"
                                                                           : v->format;
    return (char *)(uintptr_t)format;
}

/* Fills *buffer for a view with suboffsets. buffer->internal is the table, which the lease owns.
 * Returns 0, or -1 with an exception. */
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
    buffer->format = table->format ? exported_format(&view->v) : NULL;
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

/* Like shmview_view_is_contiguous(), but without a call for one dimension, which most views have.
 */
static bool is_c_contiguous(const struct shmview_view *v)
{
    return LIKELY(v->ndim == 1 && v->strides[0] == (ptrdiff_t)v->itemsize) ||
           shmview_view_is_contiguous(v, 'C');
}

/* Returns the first request in flags that the view cannot satisfy, as an error text; or NULL. */
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
        return "PyBUF_FORMAT needs PyBUF_ND: without a shape a buffer has only bytes";
    return NULL;
}

/* Fills *buffer for a direct view. Returns 0, or -1 with an exception. */
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
    buffer->format = asks(flags, PyBUF_FORMAT) ? exported_format(v) : NULL;
    buffer->shape = nd && v->ndim ? v->shape : NULL;
    buffer->strides = asks(flags, PyBUF_STRIDES) && v->ndim ? v->strides : NULL;
    buffer->suboffsets = NULL;
    buffer->internal = NULL;
    return 0;
}

/* --- Leases -------------------------------------------------------------- */

/* Py_buffer.obj of the buffers of a view. A lease counts one buffer in n_exports, and ends with it.
 *
 * The type View could count buffers in bf_releasebuffer instead. But numpy.frombuffer() puts a
 * memoryview between its array and an object with that slot, which costs as much as the rest of the
 * call. numpy.frombuffer() itself asks for plain bytes, releases the buffer, and keeps only the
 * view. So such a request gets no lease, and sets address_is_known. */
struct lease {
    PyObject_HEAD struct view *view; /* owned */
    void *table;                     /* owned; of a buffer with suboffsets, else NULL */
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
    PyObject *view = view_brief((PyObject *)((struct lease *)op)->view, NULL);
    PyObject *text = view ? PyUnicode_FromFormat("<buffer of %U>", view) : NULL;
    Py_XDECREF(view);
    return text;
}

static PyMemberDef lease_members[] = {
    {"view", T_OBJECT, offsetof(struct lease, view), READONLY, "The View."},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot lease_slots[] = {
    {Py_tp_doc, "The attribute obj of a memoryview of a View."},
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

/* Fills *buffer for a consumer. A lease counts it, except for a request of plain bytes. The lease
 * is made first: after it, a failure only has to drop it. */
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

/* Writes numpy's typestr of a number or a string to text. Returns it, or NULL if the type has
 * none. */
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
        /* The error must not be an AttributeError: numpy would take it for a type without this
         * protocol, and try others. */
        return NULL;
    }
    const struct shmview_view *v = &self->v;
    if (!view_is_direct(self) || v->itemsize > 999999 || !typestr(v, text)) {
        PyErr_Format(PyExc_AttributeError, "format '%s'%s has no __array_interface__", v->format,
                     view_is_direct(self) ? "" : " with suboffsets");
        return NULL;
    }
    /* The consumer keeps this object, but has no buffer that would be counted. */
    self->address_is_known = true;
    return Py_BuildValue("{s:i,s:s,s:N,s:N,s:(NN)}", "version", 3, "typestr", text, "shape",
                         view_tuple(v->shape, v->ndim), "strides", view_tuple(v->strides, v->ndim),
                         "data", PyLong_FromVoidPtr(v->data),
                         PyBool_FromLong(v->flags & SHMVIEW_VIEW_READ_ONLY));
}
