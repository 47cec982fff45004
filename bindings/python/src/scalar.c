/* SPDX-License-Identifier: Apache-2.0 */
/* A view of one element as a value: item(), int(), float() and similar, as numpy's arrays have
 * them. */
#include "view.h"

/* Raises TypeError. format has one %U, for a text of the view. Returns NULL. */
static PyObject *fail(PyObject *op, const char *format)
{
    PyObject *text = view_brief(op, NULL);
    if (text)
        PyErr_Format(PyExc_TypeError, format, text);
    Py_XDECREF(text);
    return NULL;
}

/* Returns the only element, or NULL with an exception. */
static PyObject *only_element(PyObject *op)
{
    const struct view *self = (struct view *)op;
    for (uint32_t d = 0; d < self->v.ndim; d++)
        if (self->v.shape[d] != 1)
            return fail(op, "only a view of one element is a number, not %U");
    PyObject *index = PyTuple_New((Py_ssize_t)self->v.ndim);
    for (uint32_t d = 0; index && d < self->v.ndim; d++)
        PyTuple_SET_ITEM(index, d, PyLong_FromLong(0)); /* small ints exist already */
    PyObject *element = index ? view_subscript(op, index) : NULL;
    Py_XDECREF(index);
    return element;
}

PyObject *view_int(PyObject *self)
{
    PyObject *element = only_element(self);
    PyObject *number = element ? PyNumber_Long(element) : NULL;
    Py_XDECREF(element);
    return number;
}

PyObject *view_float(PyObject *self)
{
    PyObject *element = only_element(self);
    PyObject *number = element ? PyNumber_Float(element) : NULL;
    Py_XDECREF(element);
    return number;
}

PyObject *view_complex(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *element = only_element(self);
    PyObject *number =
        element ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, element, NULL) : NULL;
    Py_XDECREF(element);
    return number;
}

/* __index__(): of a view without dimensions only. A view with dimensions is a sequence, and callers
 * that take both numbers and sequences ask for an index first. */
PyObject *view_as_index(PyObject *self)
{
    PyObject *element = ((struct view *)self)->v.ndim == 0 ? only_element(self) : NULL;
    if (element && PyLong_CheckExact(element))
        return element;
    if (!element && PyErr_Occurred())
        return NULL;
    Py_XDECREF(element);
    return fail(self, "only a view of an integer without dimensions is an index, not %U");
}

/* The truth of the element of a view without dimensions. A view with dimensions is true if it has
 * items, as every sequence. */
int view_bool(PyObject *self)
{
    if (((struct view *)self)->v.ndim) {
        Py_ssize_t length = view_length(self);
        return length < 0 ? -1 : length > 0;
    }
    PyObject *element = only_element(self);
    int truth = element ? PyObject_IsTrue(element) : -1;
    Py_XDECREF(element);
    return truth;
}

PyObject *view_item_of(PyObject *self, PyObject *args)
{
    if (PyTuple_GET_SIZE(args) == 0)
        return only_element(self);
    if (PyTuple_GET_SIZE(args) == (Py_ssize_t)((struct view *)self)->v.ndim)
        return view_subscript(self, args);
    return PyErr_Format(PyExc_TypeError, "item() takes one index for each of the %u dimensions",
                        ((struct view *)self)->v.ndim);
}

/* A pickled view is the same bytes again, so that copy.deepcopy() would return a view that is not a
 * copy. Returns NULL with an exception. */
PyObject *view_deepcopy(PyObject *self, PyObject *Py_UNUSED(memo))
{
    return fail(self, "%U is memory of a segment, which deepcopy() does not copy: use "
                      "numpy.array(view), view.tobytes() or view.tolist()");
}
