/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of Segment and View that are written in Python, in modules of the package. A module is
 * imported at the first call, so that a program that does not use it does not load it. */
#include "segment.h"
#include "view.h"

/* Calls a function of a module of the package, with self as its first argument. args is a tuple;
 * kwargs may be NULL. Returns the result, or NULL with an exception. */
static PyObject *forward(PyObject *self, const char *module, const char *name, PyObject *args,
                         PyObject *kwargs)
{
    PyObject *from = PyImport_ImportModule(module);
    PyObject *function = from ? PyObject_GetAttrString(from, name) : NULL;
    PyObject *front = function ? PyTuple_Pack(1, self) : NULL;
    PyObject *all = front ? PySequence_Concat(front, args) : NULL;
    PyObject *done = all ? PyObject_Call(function, all, kwargs) : NULL;
    Py_XDECREF(from);
    Py_XDECREF(function);
    Py_XDECREF(front);
    Py_XDECREF(all);
    return done;
}

/* Like forward(), for a function that takes only self. */
static PyObject *forward_self(PyObject *self, const char *module, const char *name)
{
    PyObject *none = PyTuple_New(0);
    PyObject *done = none ? forward(self, module, name, none, NULL) : NULL;
    Py_XDECREF(none);
    return done;
}

PyObject *segment_define(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return forward(op, "shmview._layouts", "define", args, kwargs);
}

PyObject *segment_changed(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return forward(op, "shmview._aio", "changed", args, kwargs);
}

PyObject *segment_set_access(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return segment_connection((struct segment *)op)
               ? forward(op, "shmview._access", "set_access_of", args, kwargs)
               : NULL;
}

PyObject *segment_get_right(PyObject *op, void *closure)
{
    PyObject *args =
        segment_connection((struct segment *)op) ? Py_BuildValue("(s)", closure) : NULL;
    PyObject *right = args ? forward(op, "shmview._access", "get_access_of", args, NULL) : NULL;
    Py_XDECREF(args);
    return right;
}

PyObject *view_repr(PyObject *op)
{
    return ((struct view *)op)->segment ? forward_self(op, "shmview._display", "text")
                                        : view_brief(op, NULL);
}

PyObject *view_html(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return forward_self(op, "shmview._picture", "of_view");
}

PyObject *segment_html(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return forward_self(op, "shmview._picture", "of_segment");
}

PyObject *view_get_dtype(PyObject *op, void *Py_UNUSED(closure))
{
    return forward_self(op, "shmview._numpy", "dtype");
}

/* Calls numpy.asarray() here, and Python code only for a view whose buffer numpy refuses. */
PyObject *view_get_array(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy)
        return NULL;
    PyObject *array = PyObject_CallMethod(numpy, "asarray", "O", op);
    Py_DECREF(numpy);
    if (array ||
        !(PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError)))
        return array;
    PyErr_Clear();
    return forward_self(op, "shmview._numpy", "same_memory");
}

PyObject *view_mpi(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return forward_self(op, "shmview.mpi", "_message");
}

PyObject *view_as_array(PyObject *op, PyObject *args, PyObject *kwargs)
{
    return forward(op, "shmview._numpy", "array", args, kwargs);
}
