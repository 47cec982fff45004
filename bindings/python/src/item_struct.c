/* SPDX-License-Identifier: Apache-2.0 */
/* Structs as tuples: one entry for each of its fields, a tuple again for a struct within, a
 * list for an array. */
#include <stddef.h>

#include "view.h"

struct components {
    uint32_t n;
    struct shmview_component list[];
};

/* What the view's format consists of, once. Borrowed, or NULL with an exception. */
static const struct components *components_of(struct view *view)
{
    struct shmview_format *format;
    struct components *found = view->components;
    if (found)
        return found;
    format = PyMem_Malloc(sizeof *format);
    if (!format)
        return (const struct components *)PyErr_NoMemory();
    int r = shmview_format_parse(view->v.format, format, NULL, 0);
    uint32_t n = r ? 0 : format->n_components;
    found = r ? NULL : PyMem_Malloc(offsetof(struct components, list) + n * sizeof found->list[0]);
    if (found) {
        found->n = n;
        r = shmview_format_parse(view->v.format, format, found->list, n);
    }
    PyMem_Free(format);
    if (r) {
        PyMem_Free(found);
        return (const struct components *)view_raise(view, r);
    }
    if (!found)
        return (const struct components *)PyErr_NoMemory();
    view->components = found;
    return found;
}

/* The one behind a component and all of its own. */
static uint32_t next_of(const struct components *all, uint32_t i)
{
    uint32_t depth = all->list[i].depth;
    do
        i++;
    while (i < all->n && all->list[i].depth > depth);
    return i;
}

/* The offsets of components below an array of structs are those in its first one, so that a
 * place is the offset plus shift. */
static PyObject *load_fields(struct view *view, const struct components *all, uint32_t begin,
                             uint32_t end, const char *p, ptrdiff_t shift);

static PyObject *load_one(struct view *view, const struct components *all, uint32_t i,
                          const char *p, ptrdiff_t shift)
{
    const struct shmview_component *c = &all->list[i];
    if (c->dtype == SHMVIEW_STRUCT)
        return load_fields(view, all, i + 1, next_of(all, i), p, shift);
    return item_load(view, c->dtype, c->itemsize, p + c->offset + shift);
}

/* Dimension d of an array within an element; *k counts its elements. */
static PyObject *load_array(struct view *view, const struct components *all, uint32_t i,
                            const char *p, ptrdiff_t shift, uint32_t d, uint32_t *k)
{
    const struct shmview_component *c = &all->list[i];
    if (d == c->ndim)
        return load_one(view, all, i, p, shift + (ptrdiff_t)c->itemsize * (*k)++);
    PyObject *list = PyList_New((Py_ssize_t)c->shape[d]);
    for (uint32_t j = 0; list && j < c->shape[d]; j++) {
        PyObject *item = load_array(view, all, i, p, shift, d + 1, k);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)j, item);
    }
    return list;
}

static Py_ssize_t count_fields(const struct components *all, uint32_t begin, uint32_t end)
{
    Py_ssize_t n = 0;
    for (uint32_t i = begin; i < end; i = next_of(all, i))
        n++;
    return n;
}

static PyObject *load_fields(struct view *view, const struct components *all, uint32_t begin,
                             uint32_t end, const char *p, ptrdiff_t shift)
{
    PyObject *tuple = PyTuple_New(count_fields(all, begin, end));
    Py_ssize_t at = 0;
    for (uint32_t i = begin; tuple && i < end; i = next_of(all, i)) {
        uint32_t k = 0;
        PyObject *field = load_array(view, all, i, p, shift, 0, &k);
        if (!field)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, at++, field);
    }
    return tuple;
}

/* Of T{...} the fields, of a format without it what it consists of. */
static void outermost(const struct components *all, uint32_t *begin, uint32_t *end)
{
    *begin = 0;
    *end = all->n;
    if (all->n && all->list[0].dtype == SHMVIEW_STRUCT && all->list[0].ndim == 0 &&
        next_of(all, 0) == all->n && all->n > 1)
        *begin = 1;
}

PyObject *struct_get(struct view *view, const char *p)
{
    uint32_t begin, end;
    const struct components *all = components_of(view);
    if (!all)
        return NULL;
    outermost(all, &begin, &end);
    return load_fields(view, all, begin, end, p, 0);
}

/* --- The other way ------------------------------------------------------- */

static int store_fields(struct view *view, const struct components *all, uint32_t begin,
                        uint32_t end, char *p, ptrdiff_t shift, PyObject *value);

/* The value as a tuple of n: one that nobody can change while its items are asked for their
 * values. New, or NULL with an exception. */
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

static int store_array(struct view *view, const struct components *all, uint32_t i, char *p,
                       ptrdiff_t shift, uint32_t d, uint32_t *k, PyObject *value)
{
    const struct shmview_component *c = &all->list[i];
    if (d == c->ndim) {
        ptrdiff_t at = shift + (ptrdiff_t)c->itemsize * (*k)++;
        if (c->dtype == SHMVIEW_STRUCT)
            return store_fields(view, all, i + 1, next_of(all, i), p, at, value);
        return item_store(view, c->dtype, c->itemsize, p + c->offset + at, value);
    }
    PyObject *tuple = tuple_of(value, (Py_ssize_t)c->shape[d], "elements of an array");
    int r = tuple ? 0 : -1;
    for (uint32_t j = 0; r == 0 && j < c->shape[d]; j++)
        r = store_array(view, all, i, p, shift, d + 1, k, PyTuple_GET_ITEM(tuple, j));
    Py_XDECREF(tuple);
    return r;
}

static int store_fields(struct view *view, const struct components *all, uint32_t begin,
                        uint32_t end, char *p, ptrdiff_t shift, PyObject *value)
{
    PyObject *tuple = tuple_of(value, count_fields(all, begin, end), "fields");
    Py_ssize_t at = 0;
    int r = tuple ? 0 : -1;
    for (uint32_t i = begin; r == 0 && i < end; i = next_of(all, i)) {
        uint32_t k = 0;
        r = store_array(view, all, i, p, shift, 0, &k, PyTuple_GET_ITEM(tuple, at++));
    }
    Py_XDECREF(tuple);
    return r;
}

int struct_set(struct view *view, char *p, PyObject *value)
{
    uint32_t begin, end;
    const struct components *all = components_of(view);
    if (!all)
        return -1;
    outermost(all, &begin, &end);
    return store_fields(view, all, begin, end, p, 0, value);
}
