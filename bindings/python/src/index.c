/* SPDX-License-Identifier: Apache-2.0 */
/* Elements and parts of a view by index, iteration, and tolist().
 *
 * The common case is an integer for each dimension of a view without suboffsets. It costs one
 * multiplication for each dimension and makes no object but the result. Every other key is applied
 * step by step to a copy of the description: a slice shortens a dimension, an integer removes it.
 * If no dimension is left, the result is an element, otherwise a new View. */
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

/* Returns the address of element i of a direct view of one dimension, or NULL with an exception. */
static inline char *place_1d(struct view *view, Py_ssize_t i)
{
    Py_ssize_t at = i < 0 ? i + view->v.shape[0] : i;
    if (UNLIKELY(at < 0 || at >= view->v.shape[0])) {
        fail_bounds(view, i, 0);
        return NULL;
    }
    return (char *)view->v.data + at * view->v.strides[0];
}

/* Like place_1d(), for a tuple with one integer for each dimension. Sets *ret to NULL if key is
 * something else or the view is not direct. Returns 0, or -1 with an exception. */
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

/* Returns the element of a view without dimensions, or NULL with an exception. */
static PyObject *load_single(struct view *view, const struct shmview_view *single)
{
    void *p;
    int r = shmview_view_pointer(single, NULL, &p);
    return r ? view_raise(view, r) : view->get(view, p);
}

/* --- Parts --------------------------------------------------------------- */

/* Shortens dimension d of a direct, aligned view to n elements. The part is aligned as well. Does
 * what shmview_view_slice() does, without its checks, because PySlice_AdjustIndices() has brought
 * the bounds into range. */
static void cut(struct shmview_view *v, uint32_t d, Py_ssize_t start, Py_ssize_t n, Py_ssize_t step)
{
    ptrdiff_t stride;
    if (n > 0)
        v->data += start * v->strides[d];
    /* With one element or none the stride has no meaning, and the product may overflow. */
    if (!__builtin_mul_overflow(v->strides[d], step, &stride))
        v->strides[d] = stride;
    v->nbytes = v->shape[d] ? v->nbytes / (uint64_t)v->shape[d] * (uint64_t)n : 0;
    v->shape[d] = n;
}

/* Applies a slice to dimension d of v. Returns 0, or -1 with an exception. */
static int apply_slice(struct view *view, struct shmview_view *v, uint32_t d, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return -1;
    if (UNLIKELY(!view->segment)) /* __index__() of a bound has ended the frame of the view */
        return view_complain(view);
    if (LIKELY(!(v->flags & SHMVIEW_VIEW_BY_VALUE))) {
        Py_ssize_t n = PySlice_AdjustIndices(v->shape[d], &start, &stop, step);
        cut(v, d, start, n, step);
        return 0;
    }
    /* PySlice_Unpack() gives an omitted bound the least or greatest value, and PY_SSIZE_T_MIN is
     * SHMVIEW_OMIT. A bound of that value that must not count as omitted is moved by one, which
     * selects the same elements. */
    if (start == PY_SSIZE_T_MIN)
        start++;
    if (stop == PY_SSIZE_T_MIN && step > 0)
        stop++;
    int r = shmview_view_slice(v, d, start, stop, step, v);
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

/* Applies an integer to dimension d of v, which removes the dimension. Numbers beyond 64 bits
 * become the nearest one, so that libshmview reports them as out of bounds. Returns 0, or -1 with
 * an exception. */
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

/* Applies the n items of a key to v. d is the dimension that the next item belongs to; an integer
 * removes its dimension, so d does not grow. Returns 1 if the result is one element, 0 if it is a
 * view, or -1 with an exception. */
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
        /* The items need no reference: __index__() may run any code, but cannot change a tuple,
         * which the caller keeps. */
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

/* v[key] for every key. Returns a new reference, or NULL with an exception. */
static PyObject *subscript_slowly(struct view *view, PyObject *key)
{
    struct shmview_view v;
    char *p;
    PyObject *found = NULL;
    if (place_nd(view, key, &p))
        return NULL;
    COUNT_ADD(view->n_exports, 1); /* __index__() must not release the view */
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

/* sq_item. CPython has already added the length to a negative i, so one that is still negative is
 * out of bounds. subscript_slowly() would count it from the end again, so it becomes a large i. */
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

/* Returns nested lists of a direct view, from dimension d on; p is the first element. */
static PyObject *list_direct(struct view *view, uint32_t d, const unsigned char *p)
{
    if (d == view->v.ndim)
        return view->get(view, (const char *)p);
    Py_ssize_t n = view->v.shape[d];
    ptrdiff_t stride = view->v.strides[d];
    bool last = d + 1 == view->v.ndim;
    PyObject *list = PyList_New(n);
    /* The address is computed from i. Adding the stride each time would compute one address beyond
     * the last element, which may overflow. */
    for (Py_ssize_t i = 0; list && i < n; i++) {
        const unsigned char *at = p + i * stride;
        PyObject *item = last ? view->get(view, (const char *)at) : list_direct(view, d + 1, at);
        if (UNLIKELY(!item))
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* Like list_direct(), for a view with suboffsets. The stored offset of each row is looked up and
 * checked, because other processes may change it. */
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
