/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and changes: how the users of a segment coordinate.
 *
 * The phase and the counter of changes are words in shared memory. Reading them needs no request,
 * except that a handle asks the daemon once for the name of a layout that it does not know. All
 * calls here release the GIL for that reason, also those that usually do not wait. */
#include "segment.h"

PyObject *segment_get_change(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_segment *handle = segment_use((struct segment *)op);
    return handle ? PyLong_FromUnsignedLong(shmview_change(handle)) : NULL;
}

/* Reads the current phase. Returns 0, or -1 with an exception. */
static int get_phase(struct segment *self, struct shmview_phase *phase)
{
    struct shmview_segment *handle = segment_use(self);
    int r;
    if (!handle)
        return -1;
    SEGMENT_CALL(self, r, shmview_phase_get(handle, phase));
    if (r)
        raise_error(self->state, r, NULL);
    return r ? -1 : 0;
}

PyObject *segment_get_phase(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_phase phase;
    if (get_phase((struct segment *)op, &phase))
        return NULL;
    if (phase.generation == 0)
        Py_RETURN_NONE;
    return PyUnicode_FromString(phase.name);
}

PyObject *segment_get_generation(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_phase phase;
    return get_phase((struct segment *)op, &phase) ? NULL
                                                   : PyLong_FromUnsignedLong(phase.generation);
}

PyObject *segment_switch(PyObject *op, PyObject *layout)
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    const char *name = handle ? PyUnicode_AsUTF8(layout) : NULL;
    int r;
    if (!name)
        return NULL;
    SEGMENT_CALL(self, r, shmview_switch(handle, name));
    if (r)
        return raise_error(self->state, r, "{s:s}", "layout", name);
    Py_RETURN_NONE;
}

/* Makes one change; call is shmview_notify() or shmview_notify_one(). */
static PyObject *notify(struct segment *self, int (*call)(struct shmview_segment *))
{
    struct shmview_segment *handle = segment_use(self);
    int r;
    if (!handle)
        return NULL;
    SEGMENT_CALL(self, r, call(handle));
    if (r)
        return raise_error(self->state, r, NULL);
    Py_RETURN_NONE;
}

PyObject *segment_notify(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"one", NULL};
    int one = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:notify", keywords, &one))
        return NULL;
    return notify((struct segment *)op, one ? shmview_notify_one : shmview_notify);
}

PyObject *segment_change_fd(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    int r, fd;
    if (!handle)
        return NULL;
    SEGMENT_CALL(self, r, shmview_change_fd(handle, &fd));
    return r ? raise_error(self->state, r, NULL) : PyLong_FromLong(fd);
}

/* --- Waiting ------------------------------------------------------------- */

/* Converts an int to 32 bits; `what` is its name in the error text. Returns 0, or -1 with an
 * exception. */
static int parse_count(PyObject *object, const char *what, uint32_t *ret)
{
    unsigned long long n = PyLong_AsUnsignedLongLong(object);
    if (n == (unsigned long long)-1 && PyErr_Occurred())
        return -1;
    if (n > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: 0 to 4294967295", what);
        return -1;
    }
    *ret = (uint32_t)n;
    return 0;
}

PyObject *segment_wait(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"phase", "generation", "change", "timeout", NULL};
    struct segment *self = (struct segment *)op;
    PyObject *phase = Py_None, *generation = Py_None, *change = Py_None, *timeout = Py_None;
    struct shmview_phase reached;
    const char *layout = NULL;
    uint32_t after = 0, seen;
    int64_t deadline;
    int r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:wait", keywords, &phase, &generation,
                                     &change, &timeout) ||
        parse_timeout(timeout, &deadline))
        return NULL;
    if (!segment_use(self)) /* checked last, because timeout.__float__() may close the segment */
        return NULL;
    bool for_a_phase = phase != Py_None || generation != Py_None;
    if (for_a_phase && change != Py_None) {
        PyErr_SetString(PyExc_TypeError, "wait for a phase or for a change, not for both");
        return NULL;
    }
    if (phase != Py_None && !(layout = PyUnicode_AsUTF8(phase)))
        return NULL;
    if (generation != Py_None && parse_count(generation, "generation", &after))
        return NULL;
    seen = shmview_change(self->handle);
    if (change != Py_None && parse_count(change, "change", &seen))
        return NULL;
    if (for_a_phase)
        SEGMENT_CALL(self, r, shmview_wait_phase(self->handle, layout, after, deadline, &reached));
    else
        SEGMENT_CALL(self, r, shmview_wait_change(self->handle, seen, deadline, &seen));
    if (r)
        return raise_error(self->state, r, "{s:O}", "layout", phase);
    return PyLong_FromUnsignedLong(for_a_phase ? reached.generation : seen);
}
