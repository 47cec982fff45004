/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of a segment, as the daemon describes them. Segment.layouts asks for them each time,
 * because another process may have declared one since. */
#include <shmview/describe.h>

#include "segment.h"

/* Returns a tuple of n numbers, or NULL with an exception. */
static PyObject *build_numbers(const int64_t *numbers, uint32_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (uint32_t d = 0; tuple && d < n; d++) {
        PyObject *number = PyLong_FromLongLong(numbers[d]);
        if (number)
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)d, number);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Returns the description of a view in the form that define() takes, or NULL with an exception. */
static PyObject *build_view(const struct shmview_view_description *v)
{
    PyObject *view = Py_BuildValue(
        "{s:s,s:N,s:K,s:N,s:N}", "format", v->format, "shape", build_numbers(v->shape, v->ndim),
        "offset", (unsigned long long)v->offset, "strides", build_numbers(v->strides, v->ndim),
        "readonly", PyBool_FromLong(v->flags & SHMVIEW_VIEW_READ_ONLY));
    if (!view || !v->suboffsets)
        return view;
    PyObject *suboffsets = build_numbers(v->suboffsets, v->ndim);
    if (!suboffsets || PyDict_SetItemString(view, "suboffsets", suboffsets))
        Py_CLEAR(view);
    Py_XDECREF(suboffsets);
    return view;
}

/* Stores value in dict. Takes over the reference to value; NULL stands for an exception that is
 * already set. Returns 0, or -1 with an exception. */
static int put(PyObject *dict, const char *name, PyObject *value)
{
    int r = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return r;
}

static PyObject *build_layout(const struct shmview_layout_description *layout)
{
    PyObject *views = PyDict_New();
    for (size_t i = 0; views && i < layout->n_views; i++)
        if (put(views, layout->views[i]->name, build_view(layout->views[i])))
            Py_CLEAR(views);
    return views;
}

PyObject *segment_get_layouts(PyObject *op, void *Py_UNUSED(closure))
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    struct shmview_connection *connection = segment_connection(self);
    const struct shmview_description *told = NULL;
    int r;
    if (!connection)
        return NULL;
    SEGMENT_CALL(self, r, shmview_describe(connection, shmview_name(handle), &told));
    if (r) {
        shmview_description_free(told);
        return raise_error(self->state, r, "{s:s}", "name", shmview_name(handle));
    }
    PyObject *layouts = PyDict_New();
    for (size_t i = 0; layouts && i < told->n_layouts; i++)
        if (put(layouts, told->layouts[i]->name, build_layout(told->layouts[i])))
            Py_CLEAR(layouts);
    shmview_description_free(told);
    return layouts;
}

PyObject *layouts_with(struct segment *segment, PyObject *view)
{
    PyObject *layouts = segment_get_layouts((PyObject *)segment, NULL);
    PyObject *found = layouts ? PyList_New(0) : NULL;
    PyObject *name, *views;
    for (Py_ssize_t at = 0; found && PyDict_Next(layouts, &at, &name, &views);) {
        int has = PyDict_Contains(views, view);
        if (has < 0 || (has && PyList_Append(found, name)))
            Py_CLEAR(found);
    }
    Py_XDECREF(layouts);
    return found;
}
