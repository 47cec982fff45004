/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory without a name, mapped by all who inherit it or get its descriptor. It
 * goes when the last of them has gone, whoever that is and however. */
#include "sync.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct arena {
    PyObject_HEAD void *data;
    Py_ssize_t size;
    int fd;
    PyObject *weakrefs;
};

PyDoc_STRVAR(arena_doc,
             "Arena(size, fd=-1)\n--\n\n"
             "size bytes of zeroed memory that belongs to those who have it mapped, all of it\n"
             "committed; or that of another Arena, whose descriptor fd is taken over.\n\n"
             "Raises OSError with ENOSPC where /dev/shm has not enough left.");

/* A file without a name in /dev/shm, whose limit holds for it as well: memory that has none
 * is given out until the kernel kills somebody. */
static int open_nameless(Py_ssize_t size)
{
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0 || (errno != ENOENT && errno != EOPNOTSUPP && errno != EISDIR && errno != EACCES))
        return fd;
    if (size / sysconf(_SC_PAGESIZE) > sysconf(_SC_AVPHYS_PAGES)) {
        errno = ENOSPC;
        return -1;
    }
    return memfd_create("shmview-arena", MFD_CLOEXEC);
}

static int commit(int fd, Py_ssize_t size)
{
    int r;
    do
        r = posix_fallocate(fd, 0, size);
    while (r == EINTR && !PyErr_CheckSignals());
    errno = r;
    return r ? -1 : 0;
}

static PyObject *arena_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"size", "fd", NULL};
    Py_ssize_t size;
    int given = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|i:Arena", keywords, &size, &given))
        return NULL;
    if (size <= 0)
        return PyErr_Format(PyExc_ValueError, "an arena of %zd bytes", size);
    struct arena *self = (struct arena *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->data = MAP_FAILED;
    self->size = size;
    self->fd = given >= 0 ? given : open_nameless(size);
    if (self->fd >= 0 && (given >= 0 || commit(self->fd, size) == 0))
        self->data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
    if (self->data == MAP_FAILED) {
        if (!PyErr_Occurred())
            PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void arena_dealloc(PyObject *op)
{
    struct arena *self = (struct arena *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    if (self->data != MAP_FAILED)
        munmap(self->data, (size_t)self->size);
    if (self->fd >= 0)
        close(self->fd);
    type->tp_free(op);
    Py_DECREF(type);
}

static int arena_getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct arena *self = (struct arena *)op;
    return PyBuffer_FillInfo(buffer, op, self->data, self->size, 0, flags);
}

static PyObject *arena_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct state *state = state_of(Py_TYPE(op));
    return state ? PyObject_CallMethod(state->helpers, "_reduce_arena", "O", op) : NULL;
}

static PyMemberDef members[] = {
    {"fd", T_INT, offsetof(struct arena, fd), READONLY, "Its descriptor."},
    {"size", T_PYSSIZET, offsetof(struct arena, size), READONLY, "Its size in bytes."},
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
