/* SPDX-License-Identifier: Apache-2.0 */
/* The type Connection, and the default connection of the process.
 *
 * A process usually needs one connection, so create() and attach() use a default one, which is made
 * at the first call. Each interpreter has its own, because it is an object of the interpreter. */
#include "core.h"

PyDoc_STRVAR(
    connection_doc,
    "Connection(path=None, *, start=True)\n--\n\n"
    "A connection to a daemon. path is the path of its socket. None stands for\n"
    "$SHMVIEW_SOCKET; otherwise the user's daemon; otherwise the system's; otherwise a session\n"
    "daemon, which is started if none runs and start is true.\n\n"
    "create() and attach() use the default connection of the process if they get none. A\n"
    "forked child can use the connections of its parent.\n\n"
    "Raises NoDaemon (the text names the sockets that were tried), Invalid, Denied,\n"
    "ProtocolError.");

static PyObject *connection_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"path", "start", NULL};
    PyObject *path = Py_None, *bytes = NULL;
    int start = 1, r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$p:Connection", keywords, &path, &start))
        return NULL;
    if (path != Py_None && !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    struct state *state = state_of_type(type);
    struct connection *self = (struct connection *)type->tp_alloc(type, 0);
    struct shmview_connection *handle = NULL;
    if (self && state) {
        const char *said = bytes ? PyBytes_AS_STRING(bytes) : NULL;
        self->state = state;
        UNLOCKED_CALL(r, shmview_connect(said, start ? 0 : SHMVIEW_CONNECT_NO_START, &handle));
        self->handle = handle;
        if (r) {
            raise_error(state, r, "{s:O}", "path", path);
            Py_CLEAR(self);
        }
    }
    Py_XDECREF(bytes);
    return (PyObject *)self;
}

struct shmview_connection *connection_use(struct connection *connection)
{
    if (!connection->handle)
        PyErr_SetString(PyExc_ValueError, "the connection is closed");
    return connection->handle;
}

/* Returns the default connection, and makes it if there is none or if it is closed. Returns a new
 * reference, or NULL with an exception. Connecting releases the GIL, so two threads may each make
 * one; the second one drops its own. */
static struct connection *own_connection(struct state *state, PyObject *start)
{
    struct connection *own = (struct connection *)state->default_connection;
    if (!own || !own->handle) {
        PyObject *kwargs = Py_BuildValue("{s:O}", "start", start), *args = PyTuple_New(0);
        PyObject *made =
            kwargs && args ? PyObject_Call((PyObject *)state->connection_type, args, kwargs) : NULL;
        Py_XDECREF(kwargs);
        Py_XDECREF(args);
        if (!made)
            return NULL;
        own = (struct connection *)state->default_connection;
        if (own && own->handle) { /* another thread has made one while this one connected */
            Py_DECREF(made);
        } else {
            Py_XDECREF(state->default_connection);
            state->default_connection = made;
        }
    }
    return (struct connection *)Py_NewRef(state->default_connection);
}

PyObject *module_default_connection(PyObject *module, PyObject *start)
{
    struct state *state = PyModule_GetState(module);
    return (PyObject *)own_connection(state, start);
}

PyObject *module_own_connection(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct state *state = PyModule_GetState(module);
    return Py_NewRef(state->default_connection ? state->default_connection : Py_None);
}

PyObject *module_forget_connections(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct state *state = PyModule_GetState(module);
    Py_CLEAR(state->default_connection);
    Py_RETURN_NONE;
}

struct connection *connection_take(struct state *state, PyObject *argument)
{
    if (argument && argument != Py_None) {
        if (!PyObject_TypeCheck(argument, state->connection_type)) {
            PyErr_Format(PyExc_TypeError, "connection: a Connection, not %.100s",
                         Py_TYPE(argument)->tp_name);
            return NULL;
        }
        return (struct connection *)Py_NewRef(argument);
    }
    return own_connection(state, Py_True);
}

PyDoc_STRVAR(close_doc,
             "close()\n--\n\n"
             "Closes the connection. All its segments must be closed first. Closing it again has\n"
             "no effect.\n\n"
             "Raises Busy, which is a BufferError, if a segment is still attached.");

static PyObject *connection_close(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct connection *self = (struct connection *)op;
    struct shmview_connection *handle = self->handle;
    int r;
    if (!handle)
        Py_RETURN_NONE;
    Py_ssize_t n = COUNT(self->n_attached);
    n += self->forks == n_forks ? COUNT(self->n_calls) : 0; /* a child lacks the other threads */
    if (n) {
        char text[120];
        PyOS_snprintf(text, sizeof text,
                      "%zd segments and calls of other threads still need the connection", n);
        return raise_text(self->state, SHMVIEW_ERR_BUSY, text);
    }
    self->handle = NULL; /* other threads must not use it while it is being closed */
    Py_BEGIN_ALLOW_THREADS
    r = shmview_disconnect(handle);
    Py_END_ALLOW_THREADS
    if (r == 0)
        Py_RETURN_NONE;
    self->handle = handle;
    return raise_error(self->state, r, NULL);
}

static PyObject *connection_ping(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct connection *self = (struct connection *)op;
    struct shmview_connection *handle = connection_use(self);
    int r;
    if (!handle)
        return NULL;
    CONNECTION_CALL(self, r, shmview_ping(handle));
    if (r)
        return raise_error(self->state, r, NULL);
    Py_RETURN_NONE;
}

static PyObject *connection_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(op);
}

static PyObject *connection_exit(PyObject *op, PyObject *Py_UNUSED(args))
{
    return connection_close(op, NULL);
}

static PyObject *get_path(PyObject *op, void *Py_UNUSED(closure))
{
    struct connection *self = (struct connection *)op;
    struct shmview_connection *handle = connection_use(self);
    return handle ? PyUnicode_DecodeFSDefault(shmview_socket_path(handle)) : NULL;
}

static PyObject *get_closed(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!((struct connection *)op)->handle);
}

static PyObject *connection_repr(PyObject *op)
{
    struct connection *self = (struct connection *)op;
    if (!self->handle)
        return PyUnicode_FromString("<shmview.Connection, closed>");
    return PyUnicode_FromFormat("<shmview.Connection %s>", shmview_socket_path(self->handle));
}

/* Each segment has a reference to its connection, so at most segments with living tensors are left.
 * Their handles need the connection. shmview_disconnect() fails then, and the connection stays. */
static void connection_dealloc(PyObject *op)
{
    struct connection *self = (struct connection *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->handle)
        shmview_disconnect(self->handle);
    type->tp_free(op);
    Py_DECREF(type);
}

static int connection_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static PyObject *connection_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    PyObject *path = get_path(op, NULL);
    return path ? Py_BuildValue("O(N)", Py_TYPE(op), path) : NULL;
}

/* _handle(): the handle in a capsule. The caller must keep the Connection open, for example by a
 * Segment of it. */
static PyObject *connection_handle(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct shmview_connection *handle = connection_use((struct connection *)op);
    return handle ? PyCapsule_New(handle, "shmview.connection", NULL) : NULL;
}

static PyMethodDef methods[] = {
    {"_handle", connection_handle, METH_NOARGS, NULL},
    {"close", connection_close, METH_NOARGS, close_doc},
    {"ping", connection_ping, METH_NOARGS,
     "ping()\n--\n\nSends a request that does nothing, and waits for the reply.\n\n"
     "Raises Disconnected or ProtocolError."},
    {"__enter__", connection_enter, METH_NOARGS, NULL},
    {"__exit__", connection_exit, METH_VARARGS, NULL},
    {"__reduce__", connection_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef members[] = {
    {"path", get_path, NULL, "The path of the daemon's socket.", NULL},
    {"closed", get_closed, NULL, "Whether close() was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)connection_doc},
    {Py_tp_new, connection_new},
    {Py_tp_dealloc, connection_dealloc},
    {Py_tp_traverse, connection_traverse},
    {Py_tp_repr, connection_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, members},
    {0, NULL},
};
PyType_Spec connection_spec = {
    .name = "shmview.Connection",
    .basicsize = sizeof(struct connection),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
