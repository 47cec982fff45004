/* SPDX-License-Identifier: Apache-2.0 */
/* Converts structs to tuples and back: one entry for each field. A struct within a struct is a
 * tuple again, and an array is a list. libshmview describes a format as a flat list of components;
 * shmview_part_next() walks it as a tree. */
#include <stddef.h>
#include <string.h>

#include <shmview/value.h>

#include "view.h"

/* The parsed format of a view of structs; owned by the view. */
struct components {
    struct shmview_part whole;
    struct shmview_component list[];
};

/* Returns the parts of the view's format, which the first call parses; or NULL with an exception.
 * The first parse returns the number of components, and the second one fills in the list. */
static const struct shmview_part *parts_of(struct view *view)
{
    struct shmview_format format;
    struct components *found = view->components;
    if (found)
        return &found->whole;
    int r = shmview_format_parse(view->v.format, &format, NULL, 0);
    if (r)
        return view_raise(view, r), NULL;
    uint32_t n = format.n_components;
    found = PyMem_Malloc(offsetof(struct components, list) + n * sizeof found->list[0]);
    if (!found)
        return PyErr_NoMemory(), NULL;
    r = shmview_format_parse(view->v.format, &format, found->list, n);
    if (r) {
        PyMem_Free(found);
        return view_raise(view, r), NULL;
    }
    shmview_part_of(&format, found->list, &found->whole);
    view->components = found;
    return &found->whole;
}

/* Whether the part is a scalar, and not an array or a struct. */
static bool has_value(const struct shmview_part *part)
{
    return !part->is_array && part->dtype != SHMVIEW_STRUCT;
}

/* Converts one part of the element at p; its offset counts from p. */
static PyObject *load_part(const struct shmview_part *whole, const char *p)
{
    struct shmview_part part = {.component = NULL};
    if (has_value(whole))
        return item_load(whole->dtype, whole->nbytes, p + whole->offset);
    PyObject *all = whole->is_array ? PyList_New(whole->n_parts) : PyTuple_New(whole->n_parts);
    while (all && shmview_part_next(whole, &part)) {
        PyObject *item = load_part(&part, p);
        if (!item)
            Py_CLEAR(all);
        else if (whole->is_array)
            PyList_SET_ITEM(all, part.index, item);
        else
            PyTuple_SET_ITEM(all, part.index, item);
    }
    return all;
}

/* A new tuple may start the garbage collector, and so any Python code. */
PyObject *struct_get(struct view *view, const char *p)
{
    COUNT_ADD(view->n_exports, 1);
    const struct shmview_part *whole = parts_of(view);
    PyObject *element = whole ? load_part(whole, p) : NULL;
    COUNT_ADD(view->n_exports, -1);
    return element;
}

/* --- The other way ------------------------------------------------------- */

/* Converts value, a sequence or an iterator, to a tuple of n items; `what` names the targets in the
 * error text. A list could change while conversions of its items run Python code; a tuple cannot.
 * Returns a new reference, or NULL with an exception. */
static PyObject *tuple_of(PyObject *value, Py_ssize_t n, const char *what)
{
    if (PyUnicode_Check(value) || !(PySequence_Check(value) || PyIter_Check(value))) {
        PyErr_Format(PyExc_TypeError, "%zd %s are set from a tuple or list, not from %.100s", n,
                     what, Py_TYPE(value)->tp_name);
        return NULL;
    }
    PyObject *tuple = PySequence_Tuple(value);
    if (tuple && PyTuple_GET_SIZE(tuple) != n) {
        PyErr_Format(PyExc_ValueError, "%zd values for %zd %s", PyTuple_GET_SIZE(tuple), n, what);
        Py_CLEAR(tuple);
    }
    return tuple;
}

/* Sets one part of the element at p. If it fails, earlier parts may be set. */
static int store_part(struct view *view, const struct shmview_part *whole, char *p, PyObject *value)
{
    struct shmview_part part = {.component = NULL};
    if (has_value(whole))
        return item_store(view, whole->dtype, whole->nbytes, p + whole->offset, value);
    PyObject *tuple =
        tuple_of(value, whole->n_parts, whole->is_array ? "elements of an array" : "fields");
    int r = tuple ? 0 : -1;
    while (r == 0 && shmview_part_next(whole, &part))
        r = store_part(view, &part, p, PyTuple_GET_ITEM(tuple, part.index));
    Py_XDECREF(tuple);
    return r;
}

/* Sets the element at p from an object that exports a buffer: a record of numpy, or a view without
 * dimensions. Copies the bytes if the buffer is one element of the same format. Returns 0; 1 if the
 * caller must convert each field; or -1 with an exception. */
static int copy_record(struct view *view, char *p, PyObject *value)
{
    struct foreign foreign;
    if (foreign_open(view->segment->state, value, &foreign)) {
        PyErr_Clear(); /* a format that has no view here may still have fields */
        return 1;
    }
    int r = foreign.v.ndim || strcmp(foreign.v.format, view->v.format) != 0;
    if (r == 0) {
        r = shmview_get_bytes(&foreign.v, NULL, p);
        if (r) {
            view_raise(view, r);
            r = -1;
        }
    }
    foreign_close(&foreign);
    return r;
}

int struct_set(struct view *view, char *p, PyObject *value)
{
    const struct shmview_part *whole = parts_of(view);
    if (!whole)
        return -1;
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value) || !PyObject_CheckBuffer(value))
        return store_part(view, whole, p, value);
    int r = copy_record(view, p, value);
    if (r <= 0)
        return r;
    if (!PyObject_HasAttrString(value, "tolist"))
        return store_part(view, whole, p, value);
    PyObject *list = PyObject_CallMethod(value, "tolist", NULL);
    r = list ? store_part(view, whole, p, list) : -1;
    Py_XDECREF(list);
    return r;
}
