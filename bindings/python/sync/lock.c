/* SPDX-License-Identifier: Apache-2.0 */
/* Lock and RLock, as multiprocessing has them. */
#include "sync.h"

#include <errno.h>

/* How long a wait goes on before Python's signal handlers get a turn. */
#define SLICE_NS 50000000

/* --- Taking -------------------------------------------------------------- */

int lock_tell_death(struct lock *lock)
{
    uint32_t pid = atomic_load(&lock->word->died);
    PyObject *told = PyObject_CallMethod(lock->state->helpers, "_tell_death", "I", pid);
    if (!told) {
        word_give(lock->word); /* died stays: the next one is told too */
        return -1;
    }
    Py_DECREF(told);
    return 0;
}

static int enter_again(struct word *w)
{
    uint32_t depth = atomic_load_explicit(&w->depth, memory_order_relaxed);
    if (depth == UINT32_MAX) {
        PyErr_SetString(PyExc_RecursionError, "the lock is held too many times by this thread");
        return -1;
    }
    atomic_store_explicit(&w->depth, depth + 1, memory_order_relaxed);
    return 0;
}

/* Waits, with turns for signal handlers. Returns as lock_take(). */
static int wait_sliced(struct lock *lock, int64_t deadline)
{
    const struct self me = *self_get();
    if (!deadline)
        return word_wait(lock->word, &me, lock->recursive, 0) ? 1 : 0;
    for (;;) {
        int64_t slice;
        int r;
        Py_BEGIN_ALLOW_THREADS;
        slice = word_now() + SLICE_NS;
        if (slice > deadline)
            slice = deadline;
        r = word_wait(lock->word, &me, lock->recursive, slice);
        Py_END_ALLOW_THREADS;
        if (r == 0)
            return 0;
        if (r == -ETIMEDOUT && slice == deadline)
            return 1;
        if (PyErr_CheckSignals())
            return -1;
    }
}

int lock_take_slowly(struct lock *lock, int64_t deadline)
{
    if (lock->recursive && lock_is_mine(lock))
        return enter_again(lock->word);
    int r = wait_sliced(lock, deadline);
    if (r)
        return r;
    atomic_store_explicit(&lock->word->depth, 1, memory_order_relaxed);
    return atomic_load(&lock->word->died) ? lock_tell_death(lock) : 0;
}

int lock_refuse(const struct lock *lock)
{
    if (lock->recursive)
        PyErr_SetString(PyExc_AssertionError,
                        "attempt to release recursive lock not owned by thread");
    else
        PyErr_SetString(PyExc_ValueError, "semaphore or lock released too many times");
    return -1;
}

/* --- Methods ------------------------------------------------------------- */

/* As multiprocessing reads them: a timeout below 0 is 0, block=False has none. */
static int parse_acquire(PyObject *args, PyObject *kwargs, int64_t *ret_deadline)
{
    static char *keywords[] = {"block", "timeout", NULL};
    PyObject *timeout = Py_None;
    int block = 1;
    *ret_deadline = FOREVER;
    if (PyTuple_GET_SIZE(args) == 0 && !kwargs)
        return 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pO:acquire", keywords, &block, &timeout))
        return -1;
    if (!block)
        *ret_deadline = 0;
    else if (timeout != Py_None) {
        double seconds = PyFloat_AsDouble(timeout);
        if (seconds == -1 && PyErr_Occurred())
            return -1;
        *ret_deadline = !(seconds > 0)  ? 0
                        : seconds > 3e9 ? FOREVER
                                        : word_now() + (int64_t)(seconds * 1e9);
    }
    return 0;
}

static PyObject *acquire(PyObject *op, PyObject *args, PyObject *kwargs)
{
    int64_t deadline;
    if (parse_acquire(args, kwargs, &deadline))
        return NULL;
    int r = lock_take((struct lock *)op, deadline);
    return r < 0 ? NULL : PyBool_FromLong(r == 0);
}

static PyObject *enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    if (UNLIKELY(lock_take((struct lock *)op, FOREVER)))
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *release(PyObject *op, PyObject *Py_UNUSED(unused))
{
    if (UNLIKELY(lock_give((struct lock *)op)))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *leave(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    return release(op, NULL);
}

static PyObject *locked(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct lock *self = (struct lock *)op;
    return PyBool_FromLong((atomic_load(&self->word->owner) & WORD_ID) != 0);
}

static PyObject *is_mine(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(lock_is_mine((struct lock *)op));
}

static PyObject *count(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct lock *self = (struct lock *)op;
    return PyLong_FromUnsignedLong(lock_is_mine(self) ? atomic_load(&self->word->depth) : 0);
}

static PyObject *get_value(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(!(atomic_load(&((struct lock *)op)->word->owner) & WORD_ID));
}

static PyObject *reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct lock *self = (struct lock *)op;
    return PyObject_CallMethod(self->state->helpers, "_reduce_lock", "OO", op, self->block);
}

static PyObject *repr(PyObject *op)
{
    return PyObject_CallMethod(((struct lock *)op)->state->helpers, "_repr_lock", "O", op);
}

static PyObject *get_owner_died(PyObject *op, void *Py_UNUSED(closure))
{
    struct lock *self = (struct lock *)op;
    uint32_t pid = lock_is_mine(self) ? atomic_load(&self->word->died) : 0;
    if (!pid)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(pid);
}

/* What multiprocessing.Condition asks a lock for. */
static PyObject *get_semlock(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(op);
}

static PyObject *get_owner_pid(PyObject *op, void *Py_UNUSED(closure))
{
    struct word *w = ((struct lock *)op)->word;
    return PyLong_FromUnsignedLong(atomic_load(&w->owner) & WORD_ID ? atomic_load(&w->pid) : 0);
}

/* --- The types ----------------------------------------------------------- */

/* The memory of a block, which lives as long as the block does. */
static void *block_address(PyObject *block)
{
    PyObject *bytes = PyObject_CallMethod(block, "create_memoryview", NULL);
    Py_buffer buffer;
    void *address = NULL;
    if (bytes && PyObject_GetBuffer(bytes, &buffer, PyBUF_WRITABLE) == 0) {
        if (buffer.len < WORD_BYTES || (uintptr_t)buffer.buf % _Alignof(struct word))
            PyErr_SetString(PyExc_ValueError, "not the memory of a lock");
        else
            address = buffer.buf;
        PyBuffer_Release(&buffer);
    }
    Py_XDECREF(bytes);
    return address;
}

static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"ctx", "_block", NULL};
    struct state *state = state_of(type);
    PyObject *ctx, *block = NULL;
    if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO:Lock", keywords, &ctx, &block))
        return NULL;
    block = block ? Py_NewRef(block)
                  : PyObject_CallMethod(state->helpers, "_new_block", "i", WORD_BYTES);
    void *address = block ? block_address(block) : NULL;
    struct lock *self = address ? (struct lock *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        Py_XDECREF(block);
        return NULL;
    }
    self->state = state;
    self->block = block;
    self->word = address;
    self->recursive = PyType_IsSubtype(type, state->rlock_type);
    return (PyObject *)self;
}

static void lock_dealloc(PyObject *op)
{
    struct lock *self = (struct lock *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    Py_CLEAR(self->block);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))acquire, METH_VARARGS | METH_KEYWORDS,
     "acquire(block=True, timeout=None)\n--\n\n"
     "Takes the lock, waiting timeout seconds at most (None: as long as it takes) if block is\n"
     "true, and says whether it did. The GIL is free meanwhile, and signal handlers run.\n\n"
     "If the last holder was killed inside, the lock is taken all the same, OwnerDiedWarning\n"
     "is issued, and owner_died tells who it was. Where that warning is made an error, it is\n"
     "raised, nothing is held, and the next one is told too."},
    {"release", release, METH_NOARGS,
     "release()\n--\n\nGives the lock back.\n\nRaises AssertionError (RLock) if this thread does "
     "not\nhold it, ValueError (Lock, which any process may release) if nobody does."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {"locked", locked, METH_NOARGS, "locked()\n--\n\nWhether anybody holds it."},
    {"_is_mine", is_mine, METH_NOARGS, NULL},
    {"_count", count, METH_NOARGS, NULL},
    {"_get_value", get_value, METH_NOARGS, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"owner_died", get_owner_died, NULL,
     "While held: the process id of a former holder that died inside, so that what the lock\n"
     "guards may be half written; None if there is none. Releasing the lock settles it.",
     NULL},
    {"_semlock", get_semlock, NULL, NULL, NULL},
    {"_owner_pid", get_owner_pid, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct lock, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(lock_doc,
             "Lock(*, ctx=None)\n--\n\n"
             "A lock between processes, as multiprocessing.Lock: not recursive, and any process\n"
             "may release it. It belongs to the process that took it: if that one is killed, the\n"
             "next one gets it. Children get it by inheritance; ctx is ignored.");
PyDoc_STRVAR(rlock_doc,
             "RLock(*, ctx=None)\n--\n\n"
             "A recursive lock between processes, as multiprocessing.RLock: only the thread that\n"
             "took it may release it. If that one ends or is killed inside, the next one gets it.\n"
             "Children get it by inheritance; ctx is ignored.");

#define SLOTS(name, doc)                                                                           \
    static PyType_Slot name[] = {                                                                  \
        {Py_tp_doc, (void *)(uintptr_t)(doc)},                                                     \
        {Py_tp_new, lock_new},                                                                     \
        {Py_tp_dealloc, lock_dealloc},                                                             \
        {Py_tp_repr, repr},                                                                        \
        {Py_tp_methods, methods},                                                                  \
        {Py_tp_getset, getset},                                                                    \
        {Py_tp_members, members},                                                                  \
        {0, NULL},                                                                                 \
    }
SLOTS(lock_slots, lock_doc);
SLOTS(rlock_slots, rlock_doc);

PyType_Spec lock_spec = {
    .name = "shmview.Lock",
    .basicsize = sizeof(struct lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = lock_slots,
};
PyType_Spec rlock_spec = {
    .name = "shmview.RLock",
    .basicsize = sizeof(struct lock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = rlock_slots,
};
