/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of View that return another view of the same elements, and summary(). No element is
 * copied: libshmview derives a new description and checks it. The new View has its own reference
 * to the segment, so it stays valid after the release of the old one. */
#include <string.h>

#include "view.h"

/* Converts the result of a call that derives v from the view: returns a new View, or NULL with an
 * exception for the error r. */
static PyObject *made(struct view *view, int r, const struct shmview_view *v)
{
    return r ? view_raise(view, r) : view_new(view->segment, v);
}

/* Does the rest of view_cast(), which prevents the release of the view. */
static PyObject *cast(struct view *self, PyObject *format_arg, PyObject *shape_arg)
{
    struct shmview_view v;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int n = 0;
    if (shape_arg != Py_None && (n = parse_numbers("shape", shape_arg, shape)) < 0)
        return NULL;
    PyObject *text = format_text(self->segment->state, format_arg);
    if (!text)
        return NULL;
    const char *format = PyUnicode_AsUTF8(text);
    int r = format ? shmview_view_recast(&self->v, format, &v) : 0;
    if (r == 0 && format && shape_arg != Py_None)
        r = shmview_view_reshape(&v, (uint32_t)n, shape, &v);
    PyObject *view = NULL;
    if (format)
        view = r ? raise_error(self->segment->state, r, "{s:O}", "format", text)
                 : view_new(self->segment, &v);
    Py_DECREF(text);
    return view;
}

PyObject *view_cast(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"format", "shape", NULL};
    struct view *self = (struct view *)op;
    PyObject *format, *shape = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:cast", keywords, &format, &shape) ||
        view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1); /* conversions of the arguments must not release the view */
    PyObject *view = cast(self, format, shape);
    COUNT_ADD(self->n_exports, -1);
    return view;
}

/* Converts the numbers of f(a, b, c) or f((a, b, c)), which mean the same. Returns how many there
 * are, or -1 with an exception. */
static int parse_variadic(const char *what, PyObject *args, int64_t *ret)
{
    if (PyTuple_GET_SIZE(args) == 1)
        args = PyTuple_GET_ITEM(args, 0);
    return parse_numbers(what, args, ret);
}

PyObject *view_reshape(PyObject *op, PyObject *args)
{
    struct view *self = (struct view *)op;
    struct shmview_view v;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int n = parse_variadic("shape", args, shape);
    if (n < 0 || view_check(self))
        return NULL;
    return made(self, shmview_view_reshape(&self->v, (uint32_t)n, shape, &v), &v);
}

PyObject *view_broadcast(PyObject *op, PyObject *args)
{
    struct view *self = (struct view *)op;
    struct shmview_view v;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int n = parse_variadic("shape", args, shape);
    if (n < 0 || view_check(self))
        return NULL;
    return made(self, shmview_view_broadcast(&self->v, (uint32_t)n, shape, &v), &v);
}

static PyObject *reversed(struct view *self)
{
    struct shmview_view v;
    return view_check(self) ? NULL : made(self, shmview_view_transpose(&self->v, NULL, &v), &v);
}

PyObject *view_get_T(PyObject *op, void *Py_UNUSED(closure))
{
    return reversed((struct view *)op);
}

PyObject *view_transpose(PyObject *op, PyObject *args)
{
    struct view *self = (struct view *)op;
    struct shmview_view v;
    int64_t axes[SHMVIEW_MAX_NDIM];
    uint32_t told[SHMVIEW_MAX_NDIM];
    if (PyTuple_GET_SIZE(args) == 0)
        return reversed(self);
    int n = parse_variadic("axes", args, axes);
    if (n < 0 || view_check(self))
        return NULL;
    if (n != (int)self->v.ndim) {
        PyErr_Format(PyExc_ValueError, "%d axes, the view has %u dimensions", n, self->v.ndim);
        return NULL;
    }
    /* A negative axis counts from the end. One out of range is passed on as an axis that cannot
     * exist, so that libshmview reports it. */
    for (int d = 0; d < n; d++)
        told[d] = (uint32_t)(axes[d] < -n || axes[d] >= n ? SHMVIEW_MAX_NDIM
                             : axes[d] < 0                ? axes[d] + n
                                                          : axes[d]);
    return made(self, shmview_view_transpose(&self->v, told, &v), &v);
}

PyObject *view_field(PyObject *op, PyObject *name)
{
    struct view *self = (struct view *)op;
    struct shmview_view v;
    const char *text = name == Py_None ? NULL : PyUnicode_AsUTF8(name);
    if ((!text && name != Py_None) || view_check(self))
        return NULL;
    int r = shmview_view_field(&self->v, text, &v);
    if (r)
        return raise_error(self->segment->state, r, "{s:O}", "field", name);
    return view_new(self->segment, &v);
}

PyObject *view_toreadonly(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    struct shmview_view v = self->v;
    v.flags |= SHMVIEW_VIEW_READ_ONLY;
    return view_new(self->segment, &v);
}

PyObject *view_summary(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    struct shmview_summary s;
    int r;
    if (view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1);
    Py_BEGIN_ALLOW_THREADS
    r = shmview_summarize(&self->v, &s);
    Py_END_ALLOW_THREADS
    COUNT_ADD(self->n_exports, -1);
    if (r)
        return view_raise(self, r);
    uint32_t dtype = self->v.dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    bool exact = dtype >= SHMVIEW_INT8 && dtype <= SHMVIEW_INT64 && s.n > 0;
    PyObject *least = exact ? PyLong_FromLongLong(s.min_int64) : PyFloat_FromDouble(s.min);
    PyObject *most = exact ? PyLong_FromLongLong(s.max_int64) : PyFloat_FromDouble(s.max);
    return PyObject_CallMethod(self->segment->state->types, "make_summary", "KKNNd",
                               (unsigned long long)s.n, (unsigned long long)s.n_nan, least, most,
                               s.sum);
}
