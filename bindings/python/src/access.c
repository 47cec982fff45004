/* SPDX-License-Identifier: Apache-2.0 */
/* The users who may use a segment. shmview/_access.py converts what users write; here are the
 * requests. */
#include "access.h"

#include <shmview/describe.h>

/* Converts one id, or None. Returns 0, or -1 with an exception. */
static int parse_id(PyObject *object, uint32_t bit, uint32_t *set, uint32_t *ret)
{
    if (object == Py_None)
        return 0;
    unsigned long number = PyLong_AsUnsignedLong(object);
    if (PyErr_Occurred())
        return -1;
    if (number > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%lu is no mode, uid or gid", number);
        return -1;
    }
    *ret = (uint32_t)number;
    *set |= bit;
    return 0;
}

int access_parse(PyObject *tuple, struct access *ret)
{
    PyObject *mode, *owner, *group, *entries;
    struct shmview_access_change *c = &ret->change;
    *c = (struct shmview_access_change){.struct_bytes = sizeof *c, .entries = ret->entries};
    if (!PyArg_ParseTuple(tuple, "OOOO", &mode, &owner, &group, &entries) ||
        parse_id(mode, SHMVIEW_SET_MODE, &c->set, &c->mode) ||
        parse_id(owner, SHMVIEW_SET_OWNER, &c->set, &c->owner) ||
        parse_id(group, SHMVIEW_SET_GROUP, &c->set, &c->group))
        return -1;
    if (entries == Py_None)
        return 0;
    Py_ssize_t n = PyTuple_Size(entries);
    if (n < 0)
        return -1;
    if (n > ENTRIES_MAX) {
        PyErr_Format(PyExc_ValueError, "%zd entries are too many", n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        struct shmview_access_entry *e = &ret->entries[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(entries, i), "IIs", &e->kind, &e->right, &e->name))
            return -1;
    }
    c->set |= SHMVIEW_SET_ENTRIES;
    c->n_entries = (uint32_t)n;
    return 0;
}

PyObject *module_set_access(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *tuple, *connection_arg;
    struct access access;
    const char *name;
    int r;
    if (!PyArg_ParseTuple(args, "sOO:set_access", &name, &tuple, &connection_arg) ||
        access_parse(tuple, &access))
        return NULL;
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    PyObject *done = NULL;
    if (handle) {
        CONNECTION_CALL(connection, r, shmview_set_access(handle, name, &access.change));
        done = r ? raise_error(state, r, "{s:s}", "name", name) : Py_NewRef(Py_None);
    }
    Py_XDECREF((PyObject *)connection);
    return done;
}

/* Returns a tuple of (kind, right, id) for each entry, or NULL with an exception. */
static PyObject *build_entries(const struct shmview_description *d)
{
    PyObject *entries = PyTuple_New((Py_ssize_t)d->n_entries);
    for (size_t i = 0; entries && i < d->n_entries; i++) {
        const struct shmview_entry_description *e = d->entries[i];
        PyObject *entry = Py_BuildValue("IIL", e->kind, e->right, (long long)e->id);
        if (entry)
            PyTuple_SET_ITEM(entries, (Py_ssize_t)i, entry);
        else
            Py_CLEAR(entries);
    }
    return entries;
}

PyObject *module_get_access(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    const struct shmview_description *d = NULL;
    PyObject *connection_arg;
    const char *name;
    int r;
    if (!PyArg_ParseTuple(args, "sO:get_access", &name, &connection_arg))
        return NULL;
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    PyObject *access = NULL;
    if (handle) {
        CONNECTION_CALL(connection, r, shmview_describe(handle, name, &d));
        access = r ? raise_error(state, r, "{s:s}", "name", name)
                   : Py_BuildValue("LLLN", (long long)d->mode, (long long)d->owner,
                                   (long long)d->group, build_entries(d));
        shmview_description_free(d);
    }
    Py_XDECREF((PyObject *)connection);
    return access;
}
