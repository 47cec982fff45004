/* SPDX-License-Identifier: Apache-2.0 */
/* Elements and parts by index. An index into each dimension of a view without suboffsets is a
 * sum of products; everything else is a sub-view first. */
#include <string.h>

#include "view.h"

static int fail_bounds(struct view *view, Py_ssize_t i, uint32_t d)
{
    char text[120];
    PyOS_snprintf(text, sizeof text, "index %zd of dimension %u, which has length %zd", i, d,
                  view->v.shape[d]);
    raise_text(view->segment->state, SHMVIEW_ERR_BOUNDS, text);
    return -1;
}

/* --- One element --------------------------------------------------------- */

/* The place of element i of a direct view of one dimension, or NULL. */
static inline char *place_1d(struct view *view, Py_ssize_t i)
{
    Py_ssize_t at = i < 0 ? i + view->v.shape[0] : i;
    if (UNLIKELY(at < 0 || at >= view->v.shape[0])) {
        fail_bounds(view, i, 0);
        return NULL;
    }
    return (char *)view->v.data + at * view->v.strides[0];
}

/* The same for one index in each dimension, if key is that; *ret is NULL if it is not. Returns 0
 * or -1. */
static int place_nd(struct view *view, PyObject *key, char **ret)
{
    unsigned char *p = view->v.data;
    *ret = NULL;
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != (Py_ssize_t)view->v.ndim ||
        !view_is_direct(view))
        return 0;
    for (uint32_t d = 0; d < view->v.ndim; d++) {
        PyObject *item = PyTuple_GET_ITEM(key, (Py_ssize_t)d);
        if (!PyLong_CheckExact(item))
            return 0;
        Py_ssize_t i = PyLong_AsSsize_t(item);
        if (i == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        Py_ssize_t at = i < 0 ? i + view->v.shape[d] : i;
        if (at < 0 || at >= view->v.shape[d])
            return fail_bounds(view, i, d);
        p += at * view->v.strides[d];
    }
    *ret = (char *)p;
    return 0;
}

/* Of a view of no dimensions that is direct by now. */
static PyObject *load_single(struct view *view, const struct shmview_view *single)
{
    void *p;
    int r = shmview_view_pointer(single, NULL, &p);
    return r ? view_raise(view, r) : view->get(view, p);
}

/* --- Parts --------------------------------------------------------------- */

/* A dimension of a view without suboffsets cut to n elements: what shmview_view_slice() does
 * there, without its checks of what Python has adjusted already. */
static void cut(struct shmview_view *v, uint32_t d, Py_ssize_t start, Py_ssize_t n, Py_ssize_t step)
{
    ptrdiff_t stride;
    if (n > 0)
        v->data += start * v->strides[d];
    /* of one element or none a stride means nothing, and the product may be any */
    if (!__builtin_mul_overflow(v->strides[d], step, &stride))
        v->strides[d] = stride;
    v->nbytes = v->shape[d] ? v->nbytes / (uint64_t)v->shape[d] * (uint64_t)n : 0;
    v->shape[d] = n;
}

static int apply_slice(struct view *view, struct shmview_view *v, uint32_t d, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return -1;
    if (LIKELY(!(v->flags & SHMVIEW_VIEW_INDIRECT))) {
        Py_ssize_t n = PySlice_AdjustIndices(v->shape[d], &start, &stop, step);
        cut(v, d, start, n, step);
        return 0;
    }
    /* bounds that are left out have their farthest values; a farthest one that was given must
     * not look like it */
    if (start == PY_SSIZE_T_MIN)
        start++;
    if (stop == PY_SSIZE_T_MIN && step > 0)
        stop++;
    int r = shmview_view_slice(v, d, start, stop, step, v);
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

static int apply_index(struct view *view, struct shmview_view *v, uint32_t d, PyObject *item)
{
    PyObject *index = PyNumber_Index(item);
    if (!index)
        return -1;
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow)
        i = overflow < 0 ? INT64_MIN + 1 : INT64_MAX;
    int r = shmview_view_index(v, d, i, v);
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

static int count_ellipses(PyObject *const *items, Py_ssize_t n)
{
    int found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        found += items[i] == Py_Ellipsis;
    return found;
}

static int apply_items(struct view *view, PyObject *const *items, Py_ssize_t n,
                       struct shmview_view *v)
{
    uint32_t d = 0;
    bool single = v->ndim == n;
    int ellipses = count_ellipses(items, n);
    if (ellipses > 1 || n - ellipses > (Py_ssize_t)v->ndim) {
        PyErr_Format(PyExc_IndexError,
                     ellipses > 1 ? "more than one ellipsis"
                                  : "%zd indices, the view has %u dimensions",
                     n - ellipses, v->ndim);
        return -1;
    }
    uint32_t skipped = v->ndim - (uint32_t)(n - ellipses);
    for (Py_ssize_t i = 0; i < n; i++) {
        int r = 0;
        if (items[i] == Py_Ellipsis) {
            d += skipped;
            single = false;
        } else if (PySlice_Check(items[i])) {
            r = apply_slice(view, v, d++, items[i]);
            single = false;
        } else if (PyIndex_Check(items[i])) {
            r = apply_index(view, v, d, items[i]);
        } else {
            PyErr_Format(PyExc_TypeError,
                         "an index is an integer, a slice, ... or a field's name, "
                         "not %.100s",
                         Py_TYPE(items[i])->tp_name);
            r = -1;
        }
        if (r)
            return -1;
    }
    return single;
}

int view_locate(struct view *view, PyObject *key, struct shmview_view *ret)
{
    *ret = view->v;
    if (PyTuple_Check(key)) {
        /* a tuple is not changed, but a list in it or an __index__ may do anything else */
        return apply_items(view, &PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key), ret);
    }
    if (PyUnicode_Check(key)) {
        const char *name = PyUnicode_AsUTF8(key);
        int r = name ? shmview_view_field(&view->v, name, ret) : 0;
        if (r)
            raise_error(view->segment->state, r, "{s:O}", "field", key);
        return name && !r ? 0 : -1;
    }
    return apply_items(view, &key, 1, ret);
}

static PyObject *subscript_slowly(struct view *view, PyObject *key)
{
    struct shmview_view v;
    char *p;
    PyObject *found = NULL;
    if (place_nd(view, key, &p))
        return NULL;
    COUNT_ADD(view->n_exports, 1); /* whatever __index__ does, the view stays */
    if (p) {
        found = view->get(view, p);
    } else {
        int r = view_locate(view, key, &v);
        if (r >= 0)
            found = r ? load_single(view, &v) : view_new(view->segment, &v);
    }
    COUNT_ADD(view->n_exports, -1);
    return found;
}

PyObject *view_subscript(PyObject *op, PyObject *key)
{
    struct view *self = (struct view *)op;
    if (UNLIKELY(view_check(self)))
        return NULL;
    if (LIKELY(PyLong_CheckExact(key) && self->v.ndim == 1 && view_is_direct(self))) {
        Py_ssize_t i = PyLong_AsSsize_t(key);
        if (LIKELY(i != -1 || !PyErr_Occurred())) {
            char *p = place_1d(self, i);
            return LIKELY(p != NULL) ? self->get(self, p) : NULL;
        }
        PyErr_Clear();
    }
    if (PySlice_Check(key) && self->v.ndim && view_is_direct(self)) {
        struct view *part = (struct view *)view_new(self->segment, &self->v);
        if (part && apply_slice(part, &part->v, 0, key))
            Py_CLEAR(part);
        return (PyObject *)part;
    }
    return subscript_slowly(self, key);
}

/* --- As a sequence ------------------------------------------------------- */

Py_ssize_t view_length(PyObject *op)
{
    struct view *self = (struct view *)op;
    if (!self->segment)
        return view_complain(self);
    if (self->v.ndim)
        return self->v.shape[0];
    PyErr_SetString(PyExc_TypeError, "a view without dimensions has no length");
    return -1;
}

/* CPython has added the length to an i below 0. */
PyObject *view_item(PyObject *op, Py_ssize_t i)
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    if (self->v.ndim == 1 && view_is_direct(self)) {
        if (i < 0 || i >= self->v.shape[0]) {
            fail_bounds(self, i, 0);
            return NULL;
        }
        return self->get(self, (char *)self->v.data + i * self->v.strides[0]);
    }
    PyObject *key = PyLong_FromSsize_t(i < 0 ? PY_SSIZE_T_MAX : i);
    PyObject *found = key ? subscript_slowly(self, key) : NULL;
    Py_XDECREF(key);
    return found;
}

PyObject *view_iter(PyObject *op)
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    if (self->v.ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "a view without dimensions cannot be iterated");
        return NULL;
    }
    return PySeqIter_New(op);
}

/* --- As a list ----------------------------------------------------------- */

static PyObject *list_direct(struct view *view, uint32_t d, const unsigned char *p)
{
    if (d == view->v.ndim)
        return view->get(view, (const char *)p);
    Py_ssize_t n = view->v.shape[d];
    ptrdiff_t stride = view->v.strides[d];
    bool last = d + 1 == view->v.ndim;
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) { /* a step past the last may leave memory */
        const unsigned char *at = p + i * stride;
        PyObject *item = last ? view->get(view, (const char *)at) : list_direct(view, d + 1, at);
        if (UNLIKELY(!item))
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* Row by row: what a suboffset leads to is looked up for each element. */
static PyObject *list_indirect(struct view *view, const struct shmview_view *v)
{
    struct shmview_view row;
    if (v->ndim == 0)
        return load_single(view, v);
    PyObject *list = PyList_New(v->shape[0]);
    for (Py_ssize_t i = 0; list && i < v->shape[0]; i++) {
        int r = shmview_view_index(v, 0, i, &row);
        PyObject *item = r ? view_raise(view, r) : list_indirect(view, &row);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

PyObject *view_tolist(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1);
    PyObject *list =
        view_is_direct(self) ? list_direct(self, 0, self->v.data) : list_indirect(self, &self->v);
    COUNT_ADD(self->n_exports, -1);
    return list;
}
