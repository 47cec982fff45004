/* SPDX-License-Identifier: Apache-2.0 */
/* Sets elements: one, several from a buffer or a sequence, or all to the same value.
 *
 * An assignment from a buffer is one call of libshmview, which converts each element exactly or
 * refuses it. From a sequence each item is converted by itself. In both cases the elements before a
 * refused one are already set: making the assignment atomic would need a copy of all of them. */
#include <string.h>

#include "view.h"

/* From this size on a copy releases the GIL. Releasing it for less costs more than it helps. */
#define LARGE_BYTES 65536

/* Copies the elements of `from` to `to`, and repeats them by numpy's rule if the shapes differ.
 * view is for errors. Returns 0, or -1 with an exception. */
static int copy_view(struct view *view, const struct shmview_view *to,
                     const struct shmview_view *from)
{
    struct shmview_view wide;
    int r;
    if (from->ndim != to->ndim ||
        memcmp(from->shape, to->shape, to->ndim * sizeof to->shape[0]) != 0) {
        int64_t shape[SHMVIEW_MAX_NDIM];
        for (uint32_t d = 0; d < to->ndim; d++)
            shape[d] = to->shape[d];
        r = shmview_view_broadcast(from, to->ndim, shape, &wide);
        if (r) {
            view_raise(view, r);
            return -1;
        }
        from = &wide;
    }
    if (to->nbytes < LARGE_BYTES) {
        r = shmview_copy(to, from);
    } else {
        Py_BEGIN_ALLOW_THREADS
        r = shmview_copy(to, from);
        Py_END_ALLOW_THREADS
    }
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

/* Treats the elements of a bytes object, whose format is 'B', as characters if the target has
 * elements of format 'c', because the bytes are meant as text there and not as numbers. Returns 0,
 * or -1 with an exception. */
static int adapt_text(struct view *view, const struct shmview_view *to, struct shmview_view *from)
{
    if (to->dtype != SHMVIEW_CHAR || from->dtype != SHMVIEW_UINT8 ||
        !shmview_view_is_contiguous(from, 'C'))
        return 0;
    int r = shmview_view_recast(from, "c", from);
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

static int assign(struct view *view, const struct shmview_view *to, PyObject *value);

/* Sets structs from structs of another format, field by field as numpy does, by way of tuples.
 * Returns 0, or -1 with an exception. */
static int assign_structs(struct view *view, const struct shmview_view *to, PyObject *value)
{
    PyObject *list = PyObject_CallMethod(value, "tolist", NULL);
    int r = list ? assign(view, to, list) : -1;
    Py_XDECREF(list);
    return r;
}

/* Returns the type of the elements of a buffer if its format is one letter for a number in the byte
 * order of the machine; otherwise SHMVIEW_STRUCT. */
static uint32_t type_of_buffer(const Py_buffer *b)
{
    static const uint32_t is_signed[] = {
        [1] = SHMVIEW_INT8, [2] = SHMVIEW_INT16, [4] = SHMVIEW_INT32, [8] = SHMVIEW_INT64};
    static const uint32_t is_unsigned[] = {
        [1] = SHMVIEW_UINT8, [2] = SHMVIEW_UINT16, [4] = SHMVIEW_UINT32, [8] = SHMVIEW_UINT64};
    const char *letter = b->format ? b->format : "B";
    letter += *letter == (PY_LITTLE_ENDIAN ? '<' : '>') || *letter == '=' || *letter == '@';
    if (letter[0] == '\0' || letter[1] != '\0' || b->itemsize < 1 || b->itemsize > 8 ||
        (b->itemsize & (b->itemsize - 1)))
        return SHMVIEW_STRUCT;
    if (strchr("bhilqn", *letter))
        return is_signed[b->itemsize];
    if (strchr("BHILQN", *letter))
        return is_unsigned[b->itemsize];
    if (*letter == 'f' || *letter == 'd')
        return *letter == 'f' ? SHMVIEW_FLOAT32 : SHMVIEW_FLOAT64;
    return SHMVIEW_STRUCT;
}

/* Whether the bytes of the buffer can be copied to the part as they are: equal numbers, equal
 * shapes, and no gaps on either side. */
static bool is_plain_copy(const struct shmview_view *to, const Py_buffer *b)
{
    if (to->dtype != type_of_buffer(b) || b->itemsize != (Py_ssize_t)to->itemsize ||
        b->ndim != (int)to->ndim || !b->shape || b->suboffsets)
        return false;
    for (int d = 0; d < b->ndim; d++)
        if (b->shape[d] != (Py_ssize_t)to->shape[d])
            return false;
    return shmview_view_is_contiguous(to, 'C') && PyBuffer_IsContiguous(b, 'C');
}

/* Whether the value is a View of another attachment. If both have the same segment, its bytes may
 * have two addresses, and only shmview_copy() sees an overlap then. */
static bool is_of_other_attachment(const struct state *state, const struct shmview_view *to,
                                   PyObject *value)
{
    return Py_IS_TYPE(value, state->view_type) &&
           ((const struct view *)value)->v.segment != to->segment;
}

/* Copies a buffer that needs neither a view nor a conversion, which is the usual one and costs a
 * third less so. Returns 0; 1 if the buffer is another one; or -1 with an exception. */
static int assign_plain(const struct state *state, const struct shmview_view *to, PyObject *value)
{
    Py_buffer b;
    if (to->dtype == SHMVIEW_STRUCT || to->nbytes >= LARGE_BYTES ||
        (to->flags & SHMVIEW_VIEW_INDIRECT) || is_of_other_attachment(state, to, value))
        return 1;
    if (PyObject_GetBuffer(value, &b, PyBUF_FULL_RO))
        return -1;
    bool is_plain = is_plain_copy(to, &b);
    if (is_plain)
        memmove(to->data, b.buf, (size_t)b.len);
    PyBuffer_Release(&b);
    return !is_plain;
}

static int assign_buffer(struct view *view, const struct shmview_view *to, PyObject *value)
{
    struct foreign foreign;
    int plain = assign_plain(view->segment->state, to, value);
    if (plain <= 0)
        return plain;
    bool has_list = to->dtype == SHMVIEW_STRUCT && PyObject_HasAttrString(value, "tolist");
    int r = foreign_open(view->segment->state, value, &foreign);
    if (has_list && (r || strcmp(foreign.v.format, to->format) != 0)) {
        PyErr_Clear();
        if (!r)
            foreign_close(&foreign);
        return assign_structs(view, to, value);
    }
    if (r)
        return -1;
    r = adapt_text(view, to, &foreign.v);
    if (r == 0)
        r = copy_view(view, to, &foreign.v);
    foreign_close(&foreign);
    return r;
}

/* Sets every element of a part to one value. Converts the value once, into a private element, so
 * that a value that is refused changes nothing. */
static int assign_scalar(struct view *view, const struct shmview_view *to, PyObject *value)
{
    char small[64], *item = small;
    if (to->itemsize > sizeof small && !(item = PyMem_Malloc(to->itemsize)))
        return PyErr_NoMemory() ? 0 : -1;
    memset(item, 0, to->itemsize);
    int r = view->set(view, item, value);
    if (r == 0) {
        int failed = shmview_fill(to, item);
        if (failed) {
            view_raise(view, failed);
            r = -1;
        }
    }
    if (item != small)
        PyMem_Free(item);
    return r;
}

static int assign_single(struct view *view, const struct shmview_view *to, PyObject *value)
{
    void *p;
    int r = shmview_view_pointer(to, NULL, &p);
    if (r) {
        view_raise(view, r);
        return -1;
    }
    return view->set(view, p, value);
}

/* Sets the entries of the first dimension from the items of a sequence or an iterator. An item is a
 * value, a buffer, or, for more dimensions, a sequence again. The tuple keeps the number of items
 * while conversions run Python code. */
static int assign_sequence(struct view *view, const struct shmview_view *to, PyObject *value)
{
    struct shmview_view row;
    PyObject *tuple = PySequence_Tuple(value);
    if (!tuple)
        return -1;
    int r = 0;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (n != to->shape[0]) {
        PyErr_Format(PyExc_ValueError, "%zd values for %zd elements", n, to->shape[0]);
        r = -1;
    }
    bool direct = to->ndim == 1 && !(to->flags & SHMVIEW_VIEW_INDIRECT);
    for (Py_ssize_t i = 0; r == 0 && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        if (direct) {
            r = view->set(view, (char *)to->data + i * to->strides[0], item);
            continue;
        }
        int failed = shmview_view_index(to, 0, i, &row);
        if (failed) {
            view_raise(view, failed);
            r = -1;
        } else if (row.ndim == 0) {
            r = assign_single(view, &row, item);
        } else if (PyObject_CheckBuffer(item)) {
            r = assign_buffer(view, &row, item);
        } else {
            r = assign_sequence(view, &row, item);
        }
    }
    Py_DECREF(tuple);
    return r;
}

static bool is_text(uint32_t dtype)
{
    return dtype == SHMVIEW_CHAR || dtype == SHMVIEW_BYTES || dtype == SHMVIEW_PASCAL;
}

/* Sets a part of any shape, and decides by the type of the value how. A bytes object is one value
 * for elements of text, except that several bytes for elements of format 'c' are one each. A tuple
 * is one value for structs. */
static int assign(struct view *view, const struct shmview_view *to, PyObject *value)
{
    bool text = is_text(to->dtype) && (PyBytes_Check(value) || PyByteArray_Check(value));
    if (text && !(to->dtype == SHMVIEW_CHAR && PyObject_Length(value) != 1))
        return assign_scalar(view, to, value);
    if (PyObject_CheckBuffer(value))
        return assign_buffer(view, to, value);
    bool tuple = to->dtype == SHMVIEW_STRUCT && PyTuple_Check(value);
    if (!tuple && (PySequence_Check(value) || PyIter_Check(value)) && !PyUnicode_Check(value))
        return assign_sequence(view, to, value);
    return assign_scalar(view, to, value);
}

/* v[key] = value for every key and value. Returns 0, or -1 with an exception. */
static int assign_slowly(struct view *view, PyObject *key, PyObject *value)
{
    struct shmview_view v;
    COUNT_ADD(view->n_exports, 1); /* methods of key and value must not release the view */
    int r = view_locate(view, key, &v);
    if (r == 1)
        r = assign_single(view, &v, value);
    else if (r == 0 && v.dtype == view->v.dtype && v.item == view->v.item)
        r = assign(view, &v, value);
    else if (r == 0) { /* a field: its elements have another type, and so other functions */
        struct view *field = (struct view *)view_new(view->segment, &v);
        if (field) {
            COUNT_ADD(field->n_exports, 1); /* the end of a frame releases each view of it */
            r = assign(field, &field->v, value);
            COUNT_ADD(field->n_exports, -1);
        } else {
            r = -1;
        }
        Py_XDECREF((PyObject *)field);
    }
    COUNT_ADD(view->n_exports, -1);
    return r;
}

int view_ass_subscript(PyObject *op, PyObject *key, PyObject *value)
{
    struct view *self = (struct view *)op;
    if (UNLIKELY(!value)) {
        PyErr_SetString(PyExc_TypeError, "elements of a view cannot be deleted");
        return -1;
    }
    if (UNLIKELY(view_check_writable(self)))
        return -1;
    if (LIKELY(PyLong_CheckExact(key) && self->v.ndim == 1 && view_is_direct(self))) {
        Py_ssize_t i = PyLong_AsSsize_t(key), at = i < 0 ? i + self->v.shape[0] : i;
        /* -1 may also stand for a number beyond 64 bits, which is out of bounds */
        if (LIKELY(at >= 0 && at < self->v.shape[0] && (i != -1 || !PyErr_Occurred()))) {
            COUNT_ADD(self->n_exports, 1);
            int r = self->set(self, (char *)self->v.data + at * self->v.strides[0], value);
            COUNT_ADD(self->n_exports, -1);
            return r;
        }
        PyErr_Clear();
    }
    return assign_slowly(self, key, value);
}

PyObject *view_fill(PyObject *op, PyObject *value)
{
    struct view *self = (struct view *)op;
    if (view_check_writable(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1);
    int r = assign_scalar(self, &self->v, value);
    COUNT_ADD(self->n_exports, -1);
    if (r)
        return NULL;
    Py_RETURN_NONE;
}
