/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: anonymous memory of a family. A child inherits it by fork, or gets its descriptor when it
 * is spawned. The kernel frees the memory when the last process that has it ends, also by a kill,
 * so there is nothing to clean up and no tracker process.
 *
 * shmview/_heap.py divides arenas into blocks for locks and objects. */
#include "sync.h"

struct arena {
    PyObject_HEAD struct shmview_anonymous memory;
    PyObject *weakrefs;
};

PyDoc_STRVAR(
    arena_doc,
    "Arena(size, fd=-1)\n--\n\n"
    "size bytes of zeroed, committed memory. It exists as long as a process has it mapped.\n"
    "With fd, maps the memory of another Arena, and takes over its descriptor.\n\n"
    "Raises OSError with ENOSPC if /dev/shm has too little space.");

/* Raises the exception for r, the error of a call. ValueError if a descriptor is not that of an
 * arena, otherwise OSError with errno. */
static void fail(int r)
{
    if (r == -SHMVIEW_ERR_INVALID)
        PyErr_SetString(PyExc_ValueError, shmview_error_text());
    else
        PyErr_SetFromErrno(PyExc_OSError);
}

/* Creates an arena. Committing the memory may take long, so it runs without the GIL. Returns 0, or
 * another value with an exception. */
static int create(Py_ssize_t size, struct shmview_anonymous *ret)
{
    PyThreadState *thread;
    unlocked_begin(&thread);
    int r = shmview_anonymous_create((uint64_t)size, ret);
    int error = errno;
    if (unlocked_end(&thread, r) == -SHMVIEW_ERR_INTERRUPTED)
        return -1;
    errno = error;
    if (r)
        fail(r);
    return r;
}

/* Maps the arena of a descriptor, which *ret owns afterwards. Returns 0, or -1 with an exception.
 */
static int open_given(int fd, Py_ssize_t size, struct shmview_anonymous *ret)
{
    int r = shmview_anonymous_open(fd, ret);
    if (r)
        fail(r);
    else if (ret->bytes < (uint64_t)size)
        PyErr_Format(PyExc_ValueError, "the arena needs %zd bytes, but its memory has fewer", size);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *arena_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"size", "fd", NULL};
    Py_ssize_t size;
    int fd = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|i:Arena", keywords, &size, &fd))
        return NULL;
    if (size <= 0)
        return PyErr_Format(PyExc_ValueError, "the size of an arena is 1 or more, not %zd", size);
    struct arena *self = (struct arena *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->memory.fd = fd;
    if (fd >= 0 ? open_given(fd, size, &self->memory) : create(size, &self->memory))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void arena_dealloc(PyObject *op)
{
    struct arena *self = (struct arena *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    shmview_anonymous_close(&self->memory);
    type->tp_free(op);
    Py_DECREF(type);
}

static int arena_getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct arena *self = (struct arena *)op;
    return PyBuffer_FillInfo(buffer, op, self->memory.data, (Py_ssize_t)self->memory.bytes, 0,
                             flags);
}

static PyObject *arena_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct state *state = state_of(Py_TYPE(op));
    return state ? PyObject_CallMethod(state->helpers, "_reduce_arena", "O", op) : NULL;
}

static PyMemberDef members[] = {
    {"fd", T_INT, offsetof(struct arena, memory.fd), READONLY, "Its descriptor."},
    {"size", T_PYSSIZET, offsetof(struct arena, memory.bytes), READONLY, "Its size in bytes."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct arena, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef methods[] = {
    {"__reduce__", arena_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)arena_doc},
    {Py_tp_new, arena_new},
    {Py_tp_dealloc, arena_dealloc},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, arena_getbuffer},
    {0, NULL},
};
PyType_Spec arena_spec = {
    .name = "shmview._sync.Arena",
    .basicsize = sizeof(struct arena),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
