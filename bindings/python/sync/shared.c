/* SPDX-License-Identifier: Apache-2.0 */
/* The base of the objects for shared memory whose first word is its kind. */
#include "shared.h"

void *block_address(PyObject *block, Py_ssize_t least, Py_ssize_t *ret_bytes)
{
    PyObject *bytes = PyObject_CallMethod(block, "create_memoryview", NULL);
    Py_buffer buffer;
    void *address = NULL;
    if (bytes && PyObject_GetBuffer(bytes, &buffer, PyBUF_WRITABLE) == 0) {
        if (buffer.len < least || (uintptr_t)buffer.buf % _Alignof(struct shmview_mutex))
            PyErr_SetString(PyExc_ValueError, "not the memory of this kind of object");
        else
            address = buffer.buf;
        *ret_bytes = buffer.len;
        PyBuffer_Release(&buffer);
    }
    Py_XDECREF(bytes);
    return address;
}

struct shared *shared_new(PyTypeObject *type, PyObject *args, uint32_t kind, uint32_t least,
                          PyObject **ret_words)
{
    struct state *state = state_of(type);
    PyObject *block, *words = NULL;
    Py_ssize_t bytes;
    if (!state || !PyArg_ParseTuple(args, "O|O!", &block, &PyTuple_Type, &words))
        return NULL;
    uint32_t *memory = block_address(block, least, &bytes);
    if (!memory)
        return NULL;
    if (words)
        *memory = kind;
    if (*memory != kind || bytes > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "not the memory of this kind of object");
        return NULL;
    }
    struct shared *self = (struct shared *)type->tp_alloc(type, 0);
    if (self) {
        self->state = state;
        self->memory = memory;
        self->bytes = (uint32_t)bytes;
        self->block = Py_NewRef(block);
        *ret_words = words;
    }
    return self;
}

void shared_dealloc(PyObject *op)
{
    struct shared *self = (struct shared *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    Py_CLEAR(self->block);
    type->tp_free(op);
    Py_DECREF(type);
}

PyMemberDef shared_members[] = {
    {"_block", T_OBJECT, offsetof(struct shared, block), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct shared, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
