/* SPDX-License-Identifier: Apache-2.0 */
/* A segment: creating and attaching it, its attributes, and its bytes as a buffer. */
#include "segment.h"

#include <string.h>

#include <shmview/placement.h>

#include "access.h"

/* --- Opening ------------------------------------------------------------- */

PyObject *segment_wrap(struct state *state, struct connection *connection,
                       struct shmview_segment *handle)
{
    struct segment *self = (struct segment *)state->segment_type->tp_alloc(state->segment_type, 0);
    if (!self)
        return NULL;
    self->state = state;
    self->name = PyUnicode_FromString(shmview_name(handle));
    if (!self->name) {
        Py_DECREF(self);
        return NULL;
    }
    self->handle = handle;
    self->forks = n_forks;
    self->entered = n_forks;
    if (connection) {
        self->connection = (struct connection *)Py_NewRef((PyObject *)connection);
        COUNT_ADD(connection->n_attached, 1);
    }
    return (PyObject *)self;
}

struct shmview_connection *segment_connection(struct segment *segment)
{
    if (!segment_use(segment))
        return NULL;
    if (segment->connection)
        return connection_use(segment->connection);
    raise_text(segment->state, SHMVIEW_ERR_INVALID,
               segment->is_frame ? "a frame has no name of its own: pickle a copy, or the stream"
                                 : "memory of another object has no name and no daemon");
    return NULL;
}

/* Detaches a handle for which there is no object. handle may be NULL: shmview_create() and
 * shmview_attach() set it even if a signal handler has raised (see UNLOCKED_CALL()). */
static void give_back(struct shmview_segment *handle)
{
    Py_BEGIN_ALLOW_THREADS
    shmview_detach(handle);
    Py_END_ALLOW_THREADS
}

/* Returns the number of name in a list of three names, counted from 1 as the enums of shmview.h
 * are; or 0 with ValueError. */
static int choose(const char *what, const char *name, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0)
            return i + 1;
    PyErr_Format(PyExc_ValueError, "%s: '%s', '%s' or '%s', not '%s'", what, names[0], names[1],
                 names[2], name);
    return 0;
}

int lifetime_called(const char *name)
{
    static const char *const lifetimes[] = {"attached", "manual", "creator", NULL};
    return choose("lifetime", name, lifetimes);
}

int backing_called(const char *name)
{
    if (!name || strcmp(name, "file") == 0)
        return name ? SHMVIEW_BACKING_FILE : 0;
    if (strcmp(name, "sealed") == 0)
        return SHMVIEW_BACKING_SEALED;
    PyErr_Format(PyExc_ValueError, "backing: 'file' or 'sealed', not '%s'", name);
    return -1;
}

PyObject *module_create(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name",   "size",       "lifetime", "lock",    "populate",
                               "access", "connection", "label",    "backing", "own_memory",
                               "huge",   "numa",       NULL};
    struct state *state = PyModule_GetState(module);
    const char *name, *lifetime = "attached", *label = NULL, *backing_name = NULL;
    unsigned long long size;
    PyObject *number, *access_arg = Py_None, *connection_arg = NULL;
    PyObject *huge = Py_None, *numa = Py_None;
    struct shmview_placement placement;
    struct access access;
    int lock = 1, populate = 0, own_memory = 0, r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|$sppOOzzpOO:create", keywords, &name,
                                     &number, &lifetime, &lock, &populate, &access_arg,
                                     &connection_arg, &label, &backing_name, &own_memory, &huge,
                                     &numa) ||
        placement_parse(huge, numa, &placement) ||
        (access_arg != Py_None && access_parse(access_arg, &access)))
        return NULL;
    int chosen = lifetime_called(lifetime);
    int backing = chosen ? backing_called(backing_name) : -1;
    PyObject *index = backing >= 0 ? PyNumber_Index(number) : NULL;
    if (!index)
        return NULL;
    size = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (size == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "size is a number of bytes, 1 or more: %R", number);
        return NULL;
    }
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .lifetime = (uint32_t)chosen,
        .flags = (lock ? 0 : SHMVIEW_NO_LOCK) | (populate ? SHMVIEW_POPULATE : 0) |
                 (own_memory ? SHMVIEW_OWN_MEMORY : 0),
        .access = access_arg == Py_None ? NULL : &access.change,
        .label = label,
        .backing = (uint32_t)backing,
        .placement = &placement,
    };
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    struct shmview_segment *segment = NULL;
    PyObject *made = NULL;
    if (handle) {
        CONNECTION_CALL(connection, r, shmview_create(handle, name, size, &options, &segment));
        if (r)
            raise_error(state, r, "{s:s,s:K}", "name", name, "size", size);
        else
            made = segment_wrap(state, connection, segment);
        if (!made)
            give_back(segment);
    }
    Py_XDECREF((PyObject *)connection);
    return made;
}

int access_called(const char *name)
{
    static const char *const accesses[] = {"peek", "read", "write", NULL};
    return choose("access", name, accesses);
}

PyObject *module_attach(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "access", "populate", "connection", NULL};
    struct state *state = PyModule_GetState(module);
    const char *name, *access = "write";
    PyObject *connection_arg = NULL;
    int populate = 0, r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$spO:attach", keywords, &name, &access,
                                     &populate, &connection_arg))
        return NULL;
    int chosen = access_called(access);
    struct connection *connection = chosen ? connection_take(state, connection_arg) : NULL;
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    struct shmview_segment *segment = NULL;
    PyObject *made = NULL;
    if (handle) {
        CONNECTION_CALL(
            connection, r,
            shmview_attach(handle, name, chosen, populate ? SHMVIEW_POPULATE : 0, &segment));
        if (r)
            raise_error(state, r, "{s:s,s:s}", "name", name, "access", access);
        else
            made = segment_wrap(state, connection, segment);
        if (!made)
            give_back(segment);
    }
    Py_XDECREF((PyObject *)connection);
    return made;
}

PyObject *remove_name(struct state *state, struct connection *connection, const char *borrowed)
{
    struct shmview_connection *handle = connection_use(connection);
    char name[256]; /* a copy, because another thread may close the segment during the call */
    int r;
    if (!handle)
        return NULL;
    PyOS_snprintf(name, sizeof name, "%s", borrowed);
    CONNECTION_CALL(connection, r, shmview_remove(handle, name));
    if (r)
        return raise_error(state, r, "{s:s}", "name", name);
    Py_RETURN_NONE;
}

PyObject *module_remove(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "connection", NULL};
    struct state *state = PyModule_GetState(module);
    const char *name;
    PyObject *connection_arg = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$O:remove", keywords, &name, &connection_arg))
        return NULL;
    struct connection *connection = connection_take(state, connection_arg);
    PyObject *done = connection ? remove_name(state, connection, name) : NULL;
    Py_XDECREF((PyObject *)connection);
    return done;
}

PyObject *segment_remove(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct segment *self = (struct segment *)op;
    return segment_connection(self)
               ? remove_name(self->state, self->connection, shmview_name(self->handle))
               : NULL;
}

PyObject *segment_entrust(PyObject *op, PyObject *number)
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    unsigned long pid = handle ? PyLong_AsUnsignedLong(number) : 0;
    int r;
    if (!handle || PyErr_Occurred())
        return NULL;
    SEGMENT_CALL(self, r,
                 pid > UINT32_MAX ? -SHMVIEW_ERR_INVALID : shmview_entrust(handle, (uint32_t)pid));
    if (r)
        return raise_error(self->state, r, "{s:s}", "name", shmview_name(handle));
    Py_RETURN_NONE;
}

/* --- Attributes ---------------------------------------------------------- */

static const char *access_name(const struct shmview_segment *handle)
{
    int access = shmview_access(handle);
    return access == SHMVIEW_WRITE ? "write" : access == SHMVIEW_READ ? "read" : "peek";
}

PyObject *segment_get_name(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(((struct segment *)op)->name);
}

PyObject *segment_get_size(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_segment *handle = segment_use((struct segment *)op);
    return handle ? PyLong_FromUnsignedLongLong(shmview_size(handle)) : NULL;
}

PyObject *segment_get_access(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_segment *handle = segment_use((struct segment *)op);
    return handle ? PyUnicode_FromString(access_name(handle)) : NULL;
}

PyObject *segment_get_closed(PyObject *op, void *Py_UNUSED(closure))
{
    segment_settle((struct segment *)op);
    return PyBool_FromLong(!((struct segment *)op)->handle);
}

PyObject *segment_get_connection(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *connection = (PyObject *)((struct segment *)op)->connection;
    return Py_NewRef(connection ? connection : Py_None);
}

PyObject *segment_whose(const struct segment *self)
{
    if (self->connection)
        return PyUnicode_FromFormat("'%U'", self->name);
    return self->is_frame ? PyUnicode_FromFormat("a frame of '%U'", self->name)
                          : PyUnicode_FromString("another object's memory");
}

PyObject *segment_repr(PyObject *op)
{
    const struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = self->handle;
    PyObject *whose = self->connection && handle ? NULL : segment_whose(self);
    PyObject *said;
    if (self->connection && handle)
        said = PyUnicode_FromFormat("<shmview.Segment '%U', %llu bytes, %s>", self->name,
                                    (unsigned long long)shmview_size(handle), access_name(handle));
    else
        said = whose
                   ? PyUnicode_FromFormat("<shmview.Segment %s%U%s>", self->connection ? "" : "of ",
                                          whose, handle ? "" : ", closed")
                   : NULL;
    Py_XDECREF(whose);
    return said;
}

/* Pickles the segment as the arguments of shmview._types.load_segment(). */
PyObject *segment_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    struct shmview_connection *connection = segment_connection(self);
    if (!connection)
        return NULL;
    PyObject *load = PyObject_GetAttrString(self->state->types, "load_segment");
    if (!load)
        return NULL;
    PyObject *path = PyUnicode_DecodeFSDefault(shmview_socket_path(connection));
    return path ? Py_BuildValue("N(Nss)", load, path, shmview_name(handle), access_name(handle))
                : (Py_DECREF(load), NULL);
}

/* --- Its bytes as a buffer ----------------------------------------------- */

int segment_getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct segment *self = (struct segment *)op;
    struct shmview_segment *handle = segment_use(self);
    if (!handle) {
        buffer->obj = NULL;
        return -1;
    }
    int readonly = shmview_access(handle) != SHMVIEW_WRITE;
    if (PyBuffer_FillInfo(buffer, op, shmview_data(handle), (Py_ssize_t)shmview_size(handle),
                          readonly, flags))
        return -1;
    COUNT_ADD(self->n_out, 1);
    return 0;
}

void segment_releasebuffer(PyObject *op, Py_buffer *Py_UNUSED(buffer))
{
    segment_out_ends((struct segment *)op);
}
