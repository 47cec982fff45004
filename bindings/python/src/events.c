/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions to events of the daemon. shmview/_events.py makes iterators of them, and gives the
 * members of an event their names.
 *
 * A monitor of libshmview serves one thread at a time, and only the process that opened it. So a
 * call that uses the monitor marks the object, and other threads get Busy in the meantime. */
#include "events.h"

#include <stddef.h>
#include <string.h>

#include <shmview/monitor.h>

struct monitor {
    PyObject_HEAD struct state *state;
    struct shmview_monitor *handle;      /* NULL: closed */
    unsigned forks;                      /* n_forks when it was opened */
    bool is_used;                        /* a thread waits for an event, without the GIL */
    int stop;                            /* close() was called during that wait, which must end */
    const struct shmview_event *pending; /* came in a wait that a signal handler ended; or NULL */
};

/* --- Opening ------------------------------------------------------------- */

/* Adds the bit of the kind of this name. Returns 0, or -1 with an exception. */
static int add_kind(PyObject *name, uint32_t *kinds)
{
    const char *text = PyUnicode_AsUTF8(name), *known;
    char all[400] = "";
    size_t n = 0;
    if (!text)
        return -1;
    for (int kind = 1; (known = shmview_event_kind_name(kind)); kind++) {
        if (strcmp(text, known) == 0) {
            *kinds |= SHMVIEW_EVENT_BIT(kind);
            return 0;
        }
        n += (size_t)PyOS_snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", known);
    }
    PyErr_Format(PyExc_ValueError, "no kind of events: %R; the kinds are %s", name, all);
    return -1;
}

/* Opens the monitor of a new object. Returns 0, or -1 with an exception. */
static int open_for(struct monitor *self, struct connection *connection,
                    const struct shmview_monitor_options *options)
{
    struct shmview_connection *handle = connection_use(connection);
    int r;
    if (!handle)
        return -1;
    CONNECTION_CALL(connection, r, shmview_monitor_open(handle, options, &self->handle));
    self->forks = n_forks;
    if (r)
        raise_error(self->state, r, NULL);
    return r ? -1 : 0;
}

/* events(names, kinds, after, connection): opens a Monitor. names and kinds are tuples of str.
 * after is None or a serial number; for 0, which libshmview takes for None, it is the number 1. */
PyObject *module_events(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *names, *kinds, *after, *connection_arg;
    if (!PyArg_ParseTuple(args, "O!O!OO:events", &PyTuple_Type, &names, &PyTuple_Type, &kinds,
                          &after, &connection_arg))
        return NULL;
    size_t n = (size_t)PyTuple_GET_SIZE(names);
    const char **texts = PyMem_Calloc(n + 1, sizeof *texts);
    if (!texts)
        return PyErr_NoMemory();
    struct shmview_monitor_options options = {
        .struct_bytes = sizeof options, .names = texts, .n_names = n};
    struct monitor *self = NULL;
    bool parsed = true;
    for (size_t i = 0; parsed && i < n; i++)
        parsed = (texts[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, (Py_ssize_t)i))) != NULL;
    for (Py_ssize_t i = 0; parsed && i < PyTuple_GET_SIZE(kinds); i++)
        parsed = add_kind(PyTuple_GET_ITEM(kinds, i), &options.kinds) == 0;
    if (parsed && after != Py_None) {
        options.after = PyLong_AsUnsignedLongLong(after);
        parsed = !PyErr_Occurred();
        options.after = options.after ? options.after : SHMVIEW_MONITOR_REMEMBERED;
    }
    struct connection *connection = parsed ? connection_take(state, connection_arg) : NULL;
    if (connection) {
        self = (struct monitor *)state->monitor_type->tp_alloc(state->monitor_type, 0);
        if (self)
            self->state = state;
        if (self && open_for(self, connection, &options))
            Py_CLEAR(self);
    }
    Py_XDECREF((PyObject *)connection);
    PyMem_Free(texts);
    return (PyObject *)self;
}

/* --- Closing ------------------------------------------------------------- */

/* Closes the monitor. In a child, a thread of the parent may have been using it at the fork, so
 * that its memory cannot be used: it is left alone then. */
static void close_now(struct monitor *self)
{
    struct shmview_monitor *handle = self->handle;
    self->handle = NULL;
    if (self->forks == n_forks || !self->is_used)
        shmview_monitor_close(handle);
}

static PyObject *monitor_close(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct monitor *self = (struct monitor *)op;
    if (self->is_used && self->forks == n_forks)
        __atomic_store_n(&self->stop, 1, __ATOMIC_RELAXED); /* monitor_next() closes it */
    else
        close_now(self);
    Py_RETURN_NONE;
}

static void monitor_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    close_now((struct monitor *)op);
    type->tp_free(op);
    Py_DECREF(type);
}

static int monitor_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

/* --- Reading ------------------------------------------------------------- */

/* Returns the handle if this thread may use it now, or NULL with an exception. */
static struct shmview_monitor *monitor_use(struct monitor *self)
{
    if (!self->handle || self->stop) {
        PyErr_SetString(PyExc_ValueError, "the events are closed");
    } else if (self->forks != n_forks) {
        PyErr_SetString(PyExc_ValueError,
                        "the events belong to the parent of this process: call events() again");
    } else if (self->is_used) {
        raise_text(self->state, SHMVIEW_ERR_BUSY, "another thread waits for an event of these");
    } else {
        return self->handle;
    }
    return NULL;
}

static PyObject *number_or_none(int64_t number)
{
    return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(number);
}

static const char *text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

/* Returns the i-th of n names, counted from 1, or NULL. */
static const char *name_of(uint32_t i, const char *const *names, uint32_t n)
{
    return i > 0 && i <= n ? names[i - 1] : NULL;
}

/* Returns the members of a SegmentEvent of shmview._events in its order, or NULL with an exception.
 */
static PyObject *build_event(const struct shmview_event *e)
{
    static const char *const accesses[] = {"peek", "read", "write"};
    static const char *const modes[] = {"exclusive", "shared"};
    static const char *const stream_modes[] = {"lossless", "latest"};
    static const char *const roles[] = {"writer", "reader", "both"};
    const char *kind = shmview_event_kind_name((int)e->kind);
    return Py_BuildValue(
        "KdszKNIzKzNzKIzIKKKKizzIzI", (unsigned long long)e->serial, (double)e->time_us / 1e6,
        kind ? kind : "unknown", text_or_null(e->segment), (unsigned long long)e->id,
        number_or_none(e->uid), e->pid, text_or_null(e->command), (unsigned long long)e->attachment,
        name_of(e->access, accesses, 3), number_or_none(e->slot), name_of(e->held, modes, 2),
        (unsigned long long)e->size, e->generation, text_or_null(e->layout), e->switches,
        (unsigned long long)e->deaths, (unsigned long long)e->segments,
        (unsigned long long)e->attachments, (unsigned long long)e->lost, e->error,
        text_or_null(e->reason), name_of(e->stream, stream_modes, 2), e->stream_slots,
        name_of(e->stream_role, roles, 3), e->held_frames);
}

/* next(timeout): returns the members of the next event, or None after the timeout. An event that
 * has come is not lost if a signal handler raises: the next call returns it. */
static PyObject *monitor_next(PyObject *op, PyObject *timeout)
{
    struct monitor *self = (struct monitor *)op;
    const struct shmview_event *event = NULL;
    struct unlocked_wait wait;
    PyObject *found = NULL;
    int64_t deadline;
    if (parse_timeout(timeout, &deadline))
        return NULL;
    struct shmview_monitor *handle = monitor_use(self);
    if (!handle)
        return NULL;
    if (self->pending) {
        event = self->pending;
        self->pending = NULL;
        return build_event(event);
    }
    self->is_used = true;
    unlocked_begin_until(&wait, &self->stop);
    int got = shmview_monitor_next(handle, deadline, &event);
    int r = unlocked_end(&wait.thread, got);
    if (got == 0 && r)
        self->pending = event;
    if (r == 0 && !self->stop)
        found = build_event(event);
    else if (!PyErr_Occurred() && r == -SHMVIEW_ERR_TIMED_OUT && !self->stop)
        found = Py_NewRef(Py_None);
    else if (!PyErr_Occurred() && self->stop)
        monitor_use(self); /* raises: it was closed during the wait */
    else
        raise_error(self->state, r, NULL);
    self->is_used = false;
    if (self->stop)
        close_now(self);
    return found;
}

static PyObject *monitor_fileno(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct shmview_monitor *handle = monitor_use((struct monitor *)op);
    return handle ? PyLong_FromLong(shmview_monitor_fd(handle)) : NULL;
}

static PyObject *monitor_closed(PyObject *op, void *Py_UNUSED(closure))
{
    const struct monitor *self = (struct monitor *)op;
    return PyBool_FromLong(!self->handle || self->stop);
}

static PyMethodDef methods[] = {
    {"close", monitor_close, METH_NOARGS, NULL},
    {"next", monitor_next, METH_O, NULL},
    {"fileno", monitor_fileno, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"closed", monitor_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "A subscription to events; shmview._events wraps it."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, monitor_dealloc},
    {Py_tp_traverse, monitor_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};
PyType_Spec monitor_spec = {
    .name = "shmview._core.Monitor",
    .basicsize = sizeof(struct monitor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
