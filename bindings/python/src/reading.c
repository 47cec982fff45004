/* SPDX-License-Identifier: Apache-2.0 */
/* Segment.reading(): optimistic reads. A block reads without the lock, and learns afterwards
 * whether an owner was inside in the meantime. */
#include "segment.h"

/* The object of a with statement. It belongs to one thread at a time, like the block itself. */
struct reading {
    PyObject_HEAD struct segment *segment; /* owned */
    uint64_t version;                      /* of the bytes, at the beginning of the block */
    bool is_valid;                         /* nobody was inside when valid was last asked for */
    bool is_over;                          /* the block has ended: is_valid no longer changes */
};

PyObject *segment_reading(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct segment *segment = (struct segment *)op;
    struct reading *self = PyObject_New(struct reading, segment->state->reading_type);
    if (!self)
        return NULL;
    self->segment = (struct segment *)Py_NewRef(op);
    self->is_valid = false;
    self->is_over = true;
    return (PyObject *)self;
}

static void reading_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_DECREF((PyObject *)((struct reading *)op)->segment);
    PyObject_Free(op);
    Py_DECREF(type);
}

/* Begins to read. An owner inside is no error, because the block must find out later in any case:
 * valid is false then. */
static PyObject *reading_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct reading *self = (struct reading *)op;
    struct shmview_segment *handle = segment_use(self->segment);
    int r;
    if (!handle)
        return NULL;
    if (is_entered(self->segment))
        r = shmview_read_begin(handle, &self->version);
    else
        SEGMENT_CALL(self->segment, r, shmview_read_begin(handle, &self->version));
    if (r && r != -SHMVIEW_ERR_BUSY)
        return raise_error(self->segment->state, r, NULL);
    self->segment->entered = n_forks;
    self->is_valid = r == 0;
    self->is_over = false;
    return Py_NewRef(op);
}

/* Asks again whether nobody was inside, unless the answer is no already or the block has ended.
 * Returns 0, or -1 with an exception. */
static int look(struct reading *self)
{
    struct shmview_segment *handle;
    if (self->is_over || !self->is_valid)
        return 0;
    handle = segment_use(self->segment);
    self->is_valid = handle && shmview_read_validate(handle, self->version) == 1;
    return handle ? 0 : -1;
}

static PyObject *reading_exit(PyObject *op, PyObject *Py_UNUSED(args))
{
    struct reading *self = (struct reading *)op;
    int r = look(self);
    self->is_over = true;
    if (r)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *reading_valid(PyObject *op, void *Py_UNUSED(closure))
{
    struct reading *self = (struct reading *)op;
    return look(self) ? NULL : PyBool_FromLong(self->is_valid);
}

static PyMethodDef methods[] = {
    {"__enter__", reading_enter, METH_NOARGS, "Begins to read. Raises NoLock, Lost."},
    {"__exit__", reading_exit, METH_VARARGS, "Sets valid for good."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"valid", reading_valid, NULL,
     "Whether no exclusive owner was inside from the beginning of the block until now, or until "
     "the\nend of the block. Use a copy only if this is true after it was made.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "The result of Segment.reading(), for a with statement."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, reading_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};
PyType_Spec reading_spec = {
    .name = "shmview.Reading",
    .basicsize = sizeof(struct reading),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
