/* SPDX-License-Identifier: Apache-2.0 */
/* Opens buffers of other objects as views of libshmview, which can then copy from them and compare
 * with them. Most buffers are used in place. A buffer with suboffsets has addresses in memory that
 * libshmview does not know, and a buffer of a native format may be misaligned; these are copied
 * first. */
#include <string.h>

#include "view.h"

void foreign_close(struct foreign *foreign)
{
    if (foreign->segment)
        shmview_detach(foreign->segment);
    if (foreign->buffer.obj)
        PyBuffer_Release(&foreign->buffer);
    PyMem_Free(foreign->copy);
}

/* Computes the first byte of a strided buffer, which is before b->buf if a stride is negative, and
 * the number of bytes from there to the end of the last element. */
static void reach(const Py_buffer *b, char **ret_first, size_t *ret_bytes)
{
    ptrdiff_t before = 0, behind = b->itemsize;
    for (int d = 0; b->strides && d < b->ndim; d++) {
        ptrdiff_t steps = b->shape[d] ? (b->shape[d] - 1) * b->strides[d] : 0;
        if (steps < 0)
            before -= steps;
        else
            behind += steps;
    }
    *ret_first = (char *)b->buf - before;
    *ret_bytes = b->strides ? (size_t)(before + behind) : (size_t)b->len;
    if (b->len == 0)
        *ret_bytes = 0;
}

/* Returns the text of the format of a buffer. For a struct of numpy it is made from the dtype,
 * because the format that numpy exports counts on an alignment that PEP 3118 does not define.
 * *ret_owner keeps the text, and may be NULL. */
static const char *format_of(struct state *state, const Py_buffer *b, PyObject **ret_owner)
{
    *ret_owner = NULL;
    if (!b->format || !strchr(b->format, 'T') || !b->obj)
        return b->format ? b->format : "B";
    PyObject *dtype = PyObject_GetAttrString(b->obj, "dtype");
    *ret_owner = dtype ? format_text(state, dtype) : NULL;
    Py_XDECREF(dtype);
    const char *text = *ret_owner ? PyUnicode_AsUTF8(*ret_owner) : NULL;
    if (text)
        return text;
    PyErr_Clear(); /* not numpy's, or a dtype without a format: the size of the element decides */
    return b->format;
}

/* Makes a segment and a view of the memory of a buffer whose element is `format`. Returns like
 * foreign_wrap(). */
static int wrap_as(struct state *state, const Py_buffer *b, const char *format, unsigned flags,
                   void (*release)(void *), void *arg, struct shmview_segment **ret_segment,
                   struct shmview_view *ret_view)
{
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM];
    size_t bytes;
    char *first;
    if (b->ndim > SHMVIEW_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "a buffer of %d dimensions, the limit is %d", b->ndim,
                     SHMVIEW_MAX_NDIM);
        return -1;
    }
    for (int d = 0; d < b->ndim; d++) {
        shape[d] = b->shape ? b->shape[d] : b->len / (b->itemsize ? b->itemsize : 1);
        strides[d] = b->strides ? b->strides[d] : 0;
    }
    struct shmview_view_spec spec = {
        .format = format,
        .ndim = (uint32_t)b->ndim,
        .shape = shape,
        .strides = b->strides ? strides : NULL,
    };
    reach(b, &first, &bytes);
    if (bytes)
        spec.offset = (uint64_t)((char *)b->buf - first);
    int r = shmview_wrap(bytes ? first : NULL, bytes, flags, release, arg, ret_segment);
    if (r == 0)
        r = shmview_view_make(*ret_segment, &spec, ret_view);
    if (r) {
        raise_error(state, r, "{s:s}", "format", spec.format);
        return -1;
    }
    if (ret_view->itemsize == (uint64_t)b->itemsize)
        return 0;
    PyErr_Format(PyExc_ValueError, "a buffer of format '%s' has elements of %zd bytes, not %u",
                 spec.format, b->itemsize, ret_view->itemsize);
    return -1;
}

int foreign_wrap(struct state *state, const Py_buffer *b, unsigned flags, void (*release)(void *),
                 void *arg, struct shmview_segment **ret_segment, struct shmview_view *ret_view)
{
    PyObject *owner;
    const char *format = format_of(state, b, &owner);
    int r = wrap_as(state, b, format, flags, release, arg, ret_segment, ret_view);
    Py_XDECREF(owner);
    return r;
}

/* Makes f->segment and f->v from f->copy, or else from f->buffer. Returns 0, or -1 with an
 * exception; Misaligned means that take_copy() may help. */
static int wrap(struct state *state, struct foreign *f)
{
    Py_buffer b = f->buffer;
    if (f->copy) {
        b.buf = f->copy;
        b.strides = NULL;
    }
    return foreign_wrap(state, &b, SHMVIEW_WRAP_READ_ONLY, NULL, NULL, &f->segment, &f->v);
}

/* Copies the elements of the buffer to f->copy in C order. Returns 0, or -1 with an exception. */
static int take_copy(struct foreign *f)
{
    f->copy = PyMem_Malloc(f->buffer.len ? (size_t)f->buffer.len : 1);
    if (!f->copy) {
        PyErr_NoMemory();
        return -1;
    }
    return PyBuffer_ToContiguous(f->copy, &f->buffer, f->buffer.len, 'C');
}

int foreign_open(struct state *state, PyObject *object, struct foreign *ret)
{
    memset(ret, 0, sizeof *ret);
    if (Py_IS_TYPE(object, state->view_type)) {
        struct view *view = (struct view *)object;
        if (view_check(view))
            return -1;
        if (PyObject_GetBuffer(object, &ret->buffer, PyBUF_FULL_RO))
            return -1; /* the buffer only prevents the view from being released */
        ret->v = view->v;
        return 0;
    }
    if (PyObject_GetBuffer(object, &ret->buffer, PyBUF_FULL_RO))
        return -1;
    int r = ret->buffer.suboffsets ? take_copy(ret) : 0;
    if (r == 0)
        r = wrap(state, ret);
    if (r && !ret->copy && PyErr_ExceptionMatches(state->misaligned)) {
        PyErr_Clear();
        if (ret->segment)
            shmview_detach(ret->segment);
        ret->segment = NULL;
        r = take_copy(ret);
        if (r == 0)
            r = wrap(state, ret);
    }
    if (r == 0)
        return 0;
    foreign_close(ret);
    return -1;
}

/* --- Comparing ----------------------------------------------------------- */

/* Compares the elements of the view with those of a buffer. The caller prevents the release of the
 * view. */
static PyObject *compare(struct view *self, PyObject *other, int how)
{
    struct foreign foreign;
    if (foreign_open(self->segment->state, other, &foreign)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
            return NULL;
        PyErr_Clear(); /* libshmview does not know the format, but the other object may compare */
        Py_RETURN_NOTIMPLEMENTED;
    }
    int equal;
    Py_BEGIN_ALLOW_THREADS
    equal = shmview_equal(&self->v, &foreign.v, NULL);
    Py_END_ALLOW_THREADS
    PyObject *said = NULL;
    if (equal == -SHMVIEW_ERR_CONVERSION)
        equal = 0; /* no common type, for example a struct and a number */
    if (equal < 0)
        view_raise(self, equal);
    else
        said = PyBool_FromLong((how == Py_EQ) == (equal == 1));
    foreign_close(&foreign);
    return said;
}

/* == and !=. Values are compared, not bytes, so that 1 equals 1.0. A released view equals itself,
 * as a memoryview does; another comparison with it raises ValueError. */
PyObject *view_richcompare(PyObject *op, PyObject *other, int how)
{
    struct view *self = (struct view *)op;
    if ((how != Py_EQ && how != Py_NE) || !PyObject_CheckBuffer(other))
        Py_RETURN_NOTIMPLEMENTED;
    if (op == other && !self->segment)
        return PyBool_FromLong(how == Py_EQ);
    if (view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1); /* the other object's buffer must not release the view */
    PyObject *said = compare(self, other, how);
    COUNT_ADD(self->n_exports, -1);
    return said;
}

/* --- As bytes ------------------------------------------------------------ */

PyObject *view_tobytes(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"order", NULL};
    struct view *self = (struct view *)op;
    const char *order = "C";
    Py_buffer buffer;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:tobytes", keywords, &order))
        return NULL;
    if (!order)
        order = "C";
    if (order[0] == '\0' || order[1] != '\0' || !strchr("CFA", order[0])) {
        PyErr_Format(PyExc_ValueError, "order is 'C', 'F' or 'A', not '%s'", order);
        return NULL;
    }
    if (view_check(self) || PyObject_GetBuffer(op, &buffer, PyBUF_FULL_RO))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, buffer.len);
    if (bytes && PyBuffer_ToContiguous(PyBytes_AS_STRING(bytes), &buffer, buffer.len, order[0]))
        Py_CLEAR(bytes);
    PyBuffer_Release(&buffer);
    return bytes;
}

PyObject *view_bytes(PyObject *op, PyObject *Py_UNUSED(unused))
{
    PyObject *none = PyTuple_New(0);
    PyObject *bytes = none ? view_tobytes(op, none, NULL) : NULL;
    Py_XDECREF(none);
    return bytes;
}

PyObject *view_hex(PyObject *op, PyObject *args, PyObject *kwargs)
{
    PyObject *bytes = view_bytes(op, NULL);
    PyObject *hex = bytes ? PyObject_GetAttrString(bytes, "hex") : NULL;
    PyObject *text = hex ? PyObject_Call(hex, args, kwargs) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(hex);
    return text;
}
