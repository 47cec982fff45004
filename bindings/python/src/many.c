/* SPDX-License-Identifier: Apache-2.0 */
/* attach() with many names: one exchange with the daemon for all of them. */
#include "segment.h"

#include <string.h>

#include <shmview/many.h>

/* Returns the names of a sequence of str as an array, which the caller frees; they are borrowed
 * from the elements. NULL with an exception. */
static const char **names_of(PyObject *sequence)
{
    Py_ssize_t n = PyTuple_GET_SIZE(sequence);
    const char **names = PyMem_Calloc((size_t)n + 1, sizeof *names);
    if (!names)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; names && i < n; i++) {
        Py_ssize_t bytes = 0;
        names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(sequence, i), &bytes);
        if (names[i] && strlen(names[i]) == (size_t)bytes)
            continue;
        if (names[i])
            PyErr_SetString(PyExc_ValueError, "embedded null character");
        PyMem_Free(names);
        return NULL;
    }
    return names;
}

/* Makes a list of n handles, which become the list's. Returns NULL with an exception, after it has
 * detached those that were left. */
static PyObject *wrap_all(struct state *state, struct connection *connection,
                          struct shmview_segment **handles, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);
    Py_ssize_t i = 0;
    for (; list && i < n; i++) {
        PyObject *segment = segment_wrap(state, connection, handles[i]);
        if (!segment)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, segment);
    }
    if (!list) {
        i -= i > 0; /* the handle at which it failed has no segment */
        Py_BEGIN_ALLOW_THREADS
        shmview_detach_many(handles + i, (size_t)(n - i));
        Py_END_ALLOW_THREADS
    }
    return list;
}

static PyObject *attach_many(struct state *state, struct connection *connection, PyObject *sequence,
                             int access, unsigned flags)
{
    Py_ssize_t n = PyTuple_GET_SIZE(sequence);
    struct shmview_connection *handle = connection_use(connection);
    const char **names = handle ? names_of(sequence) : NULL;
    struct shmview_segment **handles = names ? PyMem_Calloc((size_t)n + 1, sizeof *handles) : NULL;
    PyObject *made = NULL;
    int r;
    if (names && !handles)
        PyErr_NoMemory();
    if (handles) {
        CONNECTION_CALL(connection, r,
                        shmview_attach_many(handle, names, (size_t)n, access, flags, handles));
        if (r) {
            raise_error(state, r, NULL);
            Py_BEGIN_ALLOW_THREADS
            shmview_detach_many(handles, (size_t)n); /* a signal handler has raised, or all NULL */
            Py_END_ALLOW_THREADS
        } else {
            made = wrap_all(state, connection, handles, n);
        }
    }
    PyMem_Free(handles);
    PyMem_Free(names);
    return made;
}

PyObject *module_trim(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    shmview_trim();
    Py_RETURN_NONE;
}

PyObject *module_attach_many(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *names, *connection_arg, *made = NULL;
    const char *access;
    int populate;
    if (!PyArg_ParseTuple(args, "OspO:attach", &names, &access, &populate, &connection_arg))
        return NULL;
    int chosen = access_called(access);
    PyObject *sequence = chosen ? PySequence_Tuple(names) : NULL;
    struct connection *connection = sequence ? connection_take(state, connection_arg) : NULL;
    if (connection)
        made = attach_many(state, connection, sequence, chosen, populate ? SHMVIEW_POPULATE : 0);
    Py_XDECREF((PyObject *)connection);
    Py_XDECREF(sequence);
    return made;
}
