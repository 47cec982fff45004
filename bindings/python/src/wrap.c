/* SPDX-License-Identifier: Apache-2.0 */
/* Views of memory that another object or library owns: wrap() and from_dlpack().
 *
 * Such a View has a Segment like every other, but a Segment without a connection, a name and a
 * lock. It owns the memory through libshmview, whose release function gives it back: when the
 * Segment is closed or ends, or later, when the last tensor that was exported from it ends. A
 * consumer may end a tensor on any thread, with or without the GIL, so release() must find out
 * whether it has it. */
#include "view.h"

/* The buffer of an object, which keeps the object and its memory. */
struct owner {
    Py_buffer buffer;
    PyInterpreterState *interpreter;
};

/* This thread is in wrap_detach() or wrap_detach_later(), and has the GIL. PyGILState_Check() is
 * not reliable in a process with several interpreters. */
static __thread bool has_gil;

int wrap_detach(struct shmview_segment *handle)
{
    has_gil = true;
    int r = shmview_detach(handle);
    has_gil = false;
    return r;
}

void wrap_detach_later(struct shmview_segment *handle)
{
    has_gil = true;
    shmview_detach_later(handle);
    has_gil = false;
}

/* Returns the memory to its object; the release function of shmview_wrap(). If the interpreter has
 * ended, the object is left alone. It is also left alone if a consumer without the GIL ends a
 * tensor of another interpreter than the main one, because there is no safe way to find out whether
 * such an interpreter still exists. */
static void release(void *arg)
{
    struct owner *owner = arg;
    if (has_gil) {
        has_gil = false; /* PyBuffer_Release() may run code that gives the GIL away */
        PyBuffer_Release(&owner->buffer);
    } else if (Py_IsInitialized() && owner->interpreter == PyInterpreterState_Main()) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyBuffer_Release(&owner->buffer);
        PyGILState_Release(state);
    }
    PyMem_RawFree(owner);
}

/* Makes the Segment of a handle, which it takes over, and the View v of it. Returns the View, or
 * NULL with an exception after detaching the handle. */
static PyObject *build(struct state *state, struct shmview_segment *handle,
                       const struct shmview_view *v)
{
    PyObject *segment = segment_wrap(state, NULL, handle);
    if (!segment) {
        wrap_detach_later(handle);
        return NULL;
    }
    PyObject *view = view_new((struct segment *)segment, v);
    Py_DECREF(segment);
    return view;
}

/* wrap(object, readonly): a View of the bytes of a buffer. */
PyObject *module_wrap(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    struct shmview_segment *handle = NULL;
    struct shmview_view v;
    PyObject *object;
    int readonly;
    if (!PyArg_ParseTuple(args, "Op:wrap", &object, &readonly))
        return NULL;
    struct owner *owner = PyMem_RawCalloc(1, sizeof *owner);
    if (!owner)
        return PyErr_NoMemory();
    owner->interpreter = PyInterpreterState_Get();
    if (PyObject_GetBuffer(object, &owner->buffer, PyBUF_FULL_RO)) {
        PyMem_RawFree(owner);
        return NULL;
    }
    unsigned flags = readonly || owner->buffer.readonly ? SHMVIEW_WRAP_READ_ONLY : 0;
    int r = -1;
    if (owner->buffer.suboffsets)
        raise_text(state, SHMVIEW_ERR_CONTIGUOUS,
                   "the buffer has suboffsets: its rows are not in one piece of memory");
    else
        r = foreign_wrap(state, &owner->buffer, flags, release, owner, &handle, &v);
    if (r == 0)
        return build(state, handle, &v);
    if (handle) {
        wrap_detach(handle); /* calls release() */
    } else {
        PyBuffer_Release(&owner->buffer);
        PyMem_RawFree(owner);
    }
    return NULL;
}

/* --- Tensors ------------------------------------------------------------- */

static const char *const plain[] = {"dltensor", "used_dltensor"};
static const char *const versioned[] = {"dltensor_versioned", "used_dltensor_versioned"};

/* from_dlpack(capsule): a View of the tensor in it. The capsule is renamed, as DLPack requires, so
 * that the deleter is called by the new segment alone. If it cannot be imported, the capsule still
 * owns the tensor. */
PyObject *module_from_dlpack(PyObject *module, PyObject *capsule)
{
    struct state *state = PyModule_GetState(module);
    struct shmview_segment *handle;
    struct shmview_view v;
    int r;
    if (!PyCapsule_CheckExact(capsule)) {
        PyErr_Format(PyExc_TypeError, "__dlpack__() returns a capsule, not %.100s",
                     Py_TYPE(capsule)->tp_name);
        return NULL;
    }
    const char *const *names = PyCapsule_IsValid(capsule, versioned[0]) ? versioned : plain;
    void *tensor = PyCapsule_GetPointer(capsule, names[0]);
    if (!tensor) {
        const char *name = PyCapsule_GetName(capsule);
        PyErr_Format(PyExc_ValueError,
                     "a capsule named '%.100s' has no tensor, or one that was imported already",
                     name ? name : "");
        return NULL;
    }
    r = names == versioned ? shmview_dlpack_import_versioned(tensor, &handle, &v)
                           : shmview_dlpack_import(tensor, &handle, &v);
    if (r)
        return raise_as_buffer_error(state, r);
    if (PyCapsule_SetName(capsule, names[1])) {
        /* never happens for a valid capsule; the tensor must not have two owners */
        PyCapsule_SetDestructor(capsule, NULL);
        PyErr_Clear();
    }
    return build(state, handle, &v);
}
