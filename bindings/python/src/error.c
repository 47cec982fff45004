/* SPDX-License-Identifier: Apache-2.0 */
/* Raises errors of libshmview as exceptions. The classes are in shmview/_errors.py, because most of
 * them have two bases and a docstring, which is short in Python and long in C. */
#include "core.h"

#include <stdarg.h>
#include <string.h>

/* Lets shmview._errors.make() make an exception, and raises it. Takes over the reference to facts,
 * which may be NULL. Returns NULL. */
static PyObject *raise_made(struct state *state, int error, const char *text, PyObject *facts)
{
    PyObject *said = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *made = NULL;
    if (said)
        made =
            PyObject_CallFunction(state->make_error, "iOO", error, said, facts ? facts : Py_None);
    Py_XDECREF(said);
    Py_XDECREF(facts);
    if (made) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
    return NULL;
}

PyObject *raise_error(struct state *state, int r, const char *format, ...)
{
    PyObject *facts = NULL;
    if (r == -SHMVIEW_ERR_INTERRUPTED && PyErr_Occurred())
        return NULL;
    if (format) {
        va_list ap;
        va_start(ap, format);
        facts = Py_VaBuildValue(format, ap);
        va_end(ap);
        if (!facts)
            return NULL;
    }
    const char *text = shmview_error_text();
    return raise_made(state, -r, text[0] ? text : shmview_strerror(r), facts);
}

PyObject *raise_as_buffer_error(struct state *state, int r)
{
    raise_error(state, r, NULL);
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_SetString(PyExc_BufferError, shmview_error_text());
    return NULL;
}

PyObject *raise_text(struct state *state, int error, const char *text)
{
    return raise_made(state, error, text, NULL);
}

PyObject *raise_no_view(struct state *state, PyObject *view, PyObject *text)
{
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    PyObject *facts = utf8 ? Py_BuildValue("{s:O}", "view", view) : NULL;
    if (facts)
        raise_made(state, SHMVIEW_ERR_NO_LAYOUT, utf8, facts);
    Py_XDECREF(text);
    return NULL;
}
