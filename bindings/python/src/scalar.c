/* SPDX-License-Identifier: Apache-2.0 */
/* A view of one element as a value: item(), int() and float(), as numpy's arrays have them; and a
 * view as an array of numpy. */
#include "view.h"

/* Returns the only element, or NULL with an exception. */
static PyObject *only_element(PyObject *op)
{
    const struct view *self = (struct view *)op;
    for (uint32_t d = 0; d < self->v.ndim; d++)
        if (self->v.shape[d] != 1) {
            PyErr_Format(PyExc_TypeError, "only a view of one element is a number, not %R", op);
            return NULL;
        }
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

PyObject *view_get_array(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", self) : NULL;
    Py_XDECREF(numpy);
    return array;
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
    return PyErr_Format(PyExc_TypeError,
                        "%R is memory of a segment, which deepcopy() does not copy: use "
                        "numpy.array(view), view.tobytes() or view.tolist()",
                        self);
}
