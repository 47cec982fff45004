/* SPDX-License-Identifier: Apache-2.0 */
/* index() and count() of a view, as a list has them. `in` and reversed() need no code here: Python
 * makes them of the length and the items. */
#include "view.h"

/* Compares the items from start to stop with value. Returns how many are equal; or -1 with an
 * exception. If ret_first is not NULL, stops at the first equal item and stores its index. Each
 * item is a new access, which fails if a comparison has run Python code that released the view. */
static Py_ssize_t compare_items(PyObject *op, PyObject *value, Py_ssize_t start, Py_ssize_t stop,
                                Py_ssize_t *ret_first)
{
    Py_ssize_t n = 0;
    for (Py_ssize_t i = start; i < stop; i++) {
        PyObject *item = view_item(op, i);
        int equal = item ? PyObject_RichCompareBool(item, value, Py_EQ) : -1;
        Py_XDECREF(item);
        if (equal < 0)
            return -1;
        n += equal;
        if (equal && ret_first) {
            *ret_first = i;
            return n;
        }
    }
    return n;
}

/* Converts a bound as a slice does: a negative one counts from the end, and one out of range means
 * the nearest end. NULL stands for omitted. Returns 0, or -1 with an exception. */
static int parse_bound(PyObject *bound, Py_ssize_t length, Py_ssize_t omitted, Py_ssize_t *ret)
{
    Py_ssize_t i = bound ? PyNumber_AsSsize_t(bound, NULL) : omitted;
    if (i == -1 && PyErr_Occurred())
        return -1;
    if (i < 0)
        i += length;
    *ret = i < 0 ? 0 : i > length ? length : i;
    return 0;
}

PyObject *view_index_of(PyObject *op, PyObject *args)
{
    PyObject *value, *start_arg = NULL, *stop_arg = NULL;
    Py_ssize_t start, stop, found = 0;
    if (!PyArg_ParseTuple(args, "O|OO:index", &value, &start_arg, &stop_arg))
        return NULL;
    Py_ssize_t length = view_length(op);
    if (length < 0 || parse_bound(start_arg, length, 0, &start) ||
        parse_bound(stop_arg, length, length, &stop))
        return NULL;
    Py_ssize_t n = compare_items(op, value, start, stop, &found);
    if (n == 0)
        PyErr_Format(PyExc_ValueError, "%R is not in the view", value);
    return n > 0 ? PyLong_FromSsize_t(found) : NULL;
}

PyObject *view_count_of(PyObject *op, PyObject *value)
{
    Py_ssize_t length = view_length(op);
    Py_ssize_t n = length < 0 ? -1 : compare_items(op, value, 0, length, NULL);
    return n < 0 ? NULL : PyLong_FromSsize_t(n);
}
