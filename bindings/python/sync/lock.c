/* SPDX-License-Identifier: Apache-2.0 */
/* Lock and RLock: drop-ins for those of multiprocessing, whose next taker gets the lock if its
 * owner was killed.
 *
 * A semaphore of multiprocessing stays taken after the death of its owner, and every waiter hangs.
 * Here the owner is a process (Lock) or a thread (RLock) that the kernel can be asked about.
 * Programs that were written for multiprocessing do not expect an exception from acquire(). So a
 * death is reported by a warning and by owner_died, and the lock is taken; a program can turn the
 * warning into an exception. Segment.lock() always raises instead, because its users are new code.
 */
#include "sync.h"

/* --- Taking -------------------------------------------------------------- */

/* Issues OwnerDiedWarning for the last owner of a lock that the caller now holds. If the warning is
 * raised as an exception, gives the lock back not repaired. Returns 0, or -1 with an exception and
 * without the lock. */
static int tell_death(struct lock *lock)
{
    struct shmview_mutex_status status = {0};
    shmview_mutex_query(lock->mutex, &status);
    PyObject *told = PyObject_CallMethod(lock->state->helpers, "_tell_death", "I", status.died);
    if (!told) {
        shmview_mutex_unlock_not_repaired(lock->mutex); /* so that the next owner is warned too */
        return -1;
    }
    Py_DECREF(told);
    return 0;
}

int lock_take_slowly(struct lock *lock, int r, int64_t deadline)
{
    if (r == -SHMVIEW_ERR_TIMED_OUT && deadline) {
        PyThreadState *thread;
        unlocked_begin(&thread);
        r = shmview_mutex_lock(lock->mutex, deadline);
        if (unlocked_end(&thread, r) == -SHMVIEW_ERR_INTERRUPTED)
            return -1;
    } else if (r == -SHMVIEW_ERR_TIMED_OUT) {
        r = shmview_mutex_lock(lock->mutex, 0);
    }
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        return 1;
    return r < 0 ? lock_fail(lock, r) : r == SHMVIEW_OWNER_DIED ? tell_death(lock) : 0;
}

int lock_fail(const struct lock *lock, int r)
{
    if (r == -SHMVIEW_ERR_TOO_DEEP)
        PyErr_SetString(PyExc_RecursionError, shmview_error_text());
    else if (r != -SHMVIEW_ERR_NOT_OWNER)
        PyErr_SetString(PyExc_RuntimeError, shmview_error_text());
    else if (lock->recursive)
        PyErr_SetString(PyExc_AssertionError,
                        "attempt to release recursive lock not owned by thread");
    else
        PyErr_SetString(PyExc_ValueError, "semaphore or lock released too many times");
    return -1;
}

/* --- Methods ------------------------------------------------------------- */

int deadline_of(PyObject *timeout, int64_t *ret_deadline)
{
    *ret_deadline = SHMVIEW_FOREVER;
    if (timeout == Py_None)
        return 0;
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1 && PyErr_Occurred())
        return -1;
    *ret_deadline = !(seconds > 0)  ? 0
                    : seconds > 3e9 ? SHMVIEW_FOREVER
                                    : shmview_deadline((int64_t)(seconds * 1e9));
    return 0;
}

int parse_deadline(PyObject *args, PyObject *kwargs, int64_t *ret_deadline)
{
    static char *keywords[] = {"block", "timeout", NULL};
    PyObject *timeout = Py_None;
    int block = 1;
    *ret_deadline = SHMVIEW_FOREVER;
    if (PyTuple_GET_SIZE(args) == 0 && !kwargs)
        return 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pO:acquire", keywords, &block, &timeout))
        return -1;
    *ret_deadline = 0;
    return block ? deadline_of(timeout, ret_deadline) : 0;
}

static PyObject *acquire(PyObject *op, PyObject *args, PyObject *kwargs)
{
    int64_t deadline;
    if (parse_deadline(args, kwargs, &deadline))
        return NULL;
    int r = lock_take((struct lock *)op, deadline);
    return r < 0 ? NULL : PyBool_FromLong(r == 0);
}

static PyObject *enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    if (UNLIKELY(lock_take((struct lock *)op, SHMVIEW_FOREVER)))
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

/* Returns the status of the mutex. All members are 0 if its memory was overwritten. */
static struct shmview_mutex_status status_of(PyObject *op)
{
    struct shmview_mutex_status status = {0};
    shmview_mutex_query(((struct lock *)op)->mutex, &status);
    return status;
}

static PyObject *locked(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(status_of(op).is_held);
}

static PyObject *is_mine(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(status_of(op).is_mine);
}

static PyObject *count(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(status_of(op).depth);
}

/* _get_value(): the value of the semaphore that a lock of multiprocessing is. */
static PyObject *get_value(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(!status_of(op).is_held);
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
    struct shmview_mutex_status status = status_of(op);
    if (!status.is_mine || !status.died)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(status.died);
}

/* multiprocessing.Condition uses the attribute _semlock of its lock for _is_mine() and _count(),
 * which this type has itself. */
static PyObject *get_semlock(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(op);
}

static PyObject *get_owner_pid(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(status_of(op).pid);
}

/* --- The types ----------------------------------------------------------- */

/* Makes a lock in a new block, or, with _block, an object for the lock that is already in the given
 * block: unpickling in a child does that. */
static PyObject *lock_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"ctx", "_block", NULL};
    struct state *state = state_of(type);
    PyObject *ctx, *given = NULL;
    if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO:Lock", keywords, &ctx, &given))
        return NULL;
    PyObject *block = given ? Py_NewRef(given)
                            : PyObject_CallMethod(state->helpers, "_new_block", "n",
                                                  (Py_ssize_t)sizeof(struct shmview_mutex));
    Py_ssize_t bytes;
    void *address = block ? block_address(block, sizeof(struct shmview_mutex), &bytes) : NULL;
    struct lock *self = address ? (struct lock *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        Py_XDECREF(block);
        return NULL;
    }
    self->state = state;
    self->block = block;
    self->mutex = address;
    self->recursive = PyType_IsSubtype(type, state->rlock_type);
    int kind = self->recursive ? SHMVIEW_MUTEX_OF_THREADS : SHMVIEW_MUTEX_OF_PROCESSES;
    if (!given && shmview_mutex_init(self->mutex, kind)) {
        PyErr_SetString(PyExc_OSError, shmview_error_text());
        Py_CLEAR(self);
    }
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
     "Takes the lock, and returns whether it did. If block is true, waits for at most timeout\n"
     "seconds (None: as long as necessary), without the GIL. Signal handlers run during the wait.\n"
     "\n"
     "If the last owner was killed inside, the caller gets the lock, OwnerDiedWarning is issued,\n"
     "and owner_died is the process id of that owner. If a filter turns the warning into an\n"
     "exception, the caller does not hold the lock, and the next owner is warned too."},
    {"release", release, METH_NOARGS,
     "release()\n--\n\nGives the lock back.\n\nRaises AssertionError for an RLock that this "
     "thread\n"
     "does not hold; ValueError for a Lock, which any process may release, that nobody holds."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {"locked", locked, METH_NOARGS,
     "locked()\n--\n\nReturns whether a process or thread holds the lock."},
    {"_is_mine", is_mine, METH_NOARGS, NULL},
    {"_count", count, METH_NOARGS, NULL},
    {"_get_value", get_value, METH_NOARGS, NULL},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
/* isinstance() also looks at __class__. Programs that ask for a lock of multiprocessing accept
 * ours; a subclass keeps its own class. */
static PyObject *get_class(PyObject *op, void *Py_UNUSED(closure))
{
    const struct lock *self = (struct lock *)op;
    bool is_lock = Py_TYPE(op) == self->state->lock_type;
    if (!is_lock && Py_TYPE(op) != self->state->rlock_type)
        return Py_NewRef((PyObject *)Py_TYPE(op));
    return PyObject_CallMethod(self->state->helpers, "_standard_class", "s",
                               is_lock ? "Lock" : "RLock");
}

static PyGetSetDef getset[] = {
    {"__class__", get_class, NULL, NULL, NULL},
    {"owner_died", get_owner_died, NULL,
     "While the lock is held: the process id of an owner that died inside, so that the data may "
     "be\n"
     "half written; otherwise None. Releasing the lock resets it.",
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
             "A lock between processes, like multiprocessing.Lock: not recursive, and any process\n"
             "may release it. Its owner is the process that took it. If the owner is killed, the\n"
             "next process gets the lock. Children inherit it. ctx is ignored.");
PyDoc_STRVAR(
    rlock_doc,
    "RLock(*, ctx=None)\n--\n\n"
    "A recursive lock between processes, like multiprocessing.RLock: only the thread that\n"
    "took it may release it. If that thread ends or is killed inside, the next one gets\n"
    "the lock. Children inherit it. ctx is ignored.");

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
