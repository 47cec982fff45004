/* SPDX-License-Identifier: Apache-2.0 */
/* The object between "with" and ":" in "with seg.locked():". seg.shared() and seg.recover() return
 * one as well.
 *
 * A guard has no state except in recover(), so that a program may keep one and use it for many
 * blocks, in any thread, nested as the lock allows. The type is not tracked by the garbage
 * collector, because a guard has references only to a segment and to a number, and neither refers
 * to it. */
#include "guard.h"

#include "segment.h"

struct guard {
    PyObject_HEAD struct segment *segment; /* owned */
    PyObject *timeout;                     /* owned: seconds, or NULL for no limit */
    int mode;                              /* of lock_take() */
    bool is_plain;                         /* of locked(), without a timeout */
    bool recovers;                         /* made by recover(): does not raise OwnerDied */
    unsigned n_repairing;                  /* its blocks since the last owner died, or 0 */
};

/* Makes a guard; timeout is None or seconds. Returns NULL with an exception for a wrong timeout. */
static PyObject *guard_make(PyObject *op, PyObject *timeout, int mode, bool recovers)
{
    struct segment *segment = (struct segment *)op;
    PyTypeObject *type = segment->state->guard_type;
    int64_t deadline;
    if (timeout == Py_None)
        timeout = NULL;
    if (timeout && parse_timeout(timeout, &deadline))
        return NULL;
    struct guard *self = segment->spare_guard;
    segment->spare_guard = NULL;
    self = self ? (struct guard *)PyObject_Init((PyObject *)self, type)
                : PyObject_New(struct guard, type);
    if (!self)
        return NULL;
    self->segment = (struct segment *)Py_NewRef(op);
    self->timeout = timeout ? Py_NewRef(timeout) : NULL;
    self->mode = mode;
    self->is_plain = mode == SHMVIEW_EXCLUSIVE && !recovers && !timeout;
    self->recovers = recovers;
    self->n_repairing = 0;
    return (PyObject *)self;
}

static void guard_dealloc(PyObject *op)
{
    struct guard *self = (struct guard *)op;
    PyTypeObject *type = Py_TYPE(op);
    struct segment *segment = self->segment;
    Py_XDECREF(self->timeout);
    if (segment->spare_guard)
        PyObject_Free(op);
    else
        segment->spare_guard = self;
    Py_DECREF((PyObject *)segment);
    Py_DECREF(type);
}

/* Takes the lock until a deadline. Returns what the block gets, or NULL with an exception. */
static PyObject *enter_until(struct guard *self, int64_t deadline)
{
    PyObject *died = NULL;
    if (!self->recovers) {
        if (lock_hold(self->segment, self->mode, deadline))
            return NULL;
        return Py_NewRef((PyObject *)self->segment);
    }
    int r = lock_take(self->segment, self->mode, deadline, &died);
    if (r == LOCK_TIMED_OUT)
        return raise_error(self->segment->state, -SHMVIEW_ERR_TIMED_OUT, NULL);
    if (r < 0)
        return NULL;
    if (r == SHMVIEW_OWNER_DIED)
        self->n_repairing = 1;
    else if (self->n_repairing) /* a nested block gets no report */
        self->n_repairing++;
    return r == SHMVIEW_OWNER_DIED ? died : Py_NewRef(Py_None);
}

/* Guard.__enter__(). The plain case comes first and inline, because it is the common way to take
 * the lock, and each call in between is measurable. */
PyObject *guard_enter(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    struct guard *self = (struct guard *)op;
    struct segment *segment = self->segment;
    int64_t deadline;
    if (LIKELY(self->is_plain && segment->handle && is_entered(segment))) {
        int r = shmview_trylock(segment->handle);
        if (LIKELY(r == 0))
            return Py_NewRef((PyObject *)segment);
        if (r == SHMVIEW_OWNER_DIED)
            shmview_unlock_not_repaired(segment->handle); /* enter_until() gets it again */
    }
    return parse_timeout(self->timeout, &deadline) ? NULL : enter_until(self, deadline);
}

/* Guard.__exit__(): gives the lock back. If the block of recover() that got the report of a death
 * has raised, the bytes are not repaired, and the next owner gets OwnerDied again. */
PyObject *guard_exit(PyObject *op, PyObject *const *args, Py_ssize_t n)
{
    struct guard *self = (struct guard *)op;
    struct segment *segment = self->segment;
    int r = 0;
    if (LIKELY(self->is_plain && segment->handle && is_entered(segment) &&
               (r = shmview_unlock(segment->handle)) == 0))
        Py_RETURN_NONE;
    if (r)
        return raise_error(segment->state, r, NULL);
    bool failed = n > 0 && args[0] != Py_None;
    bool repaired = !(self->n_repairing == 1 && failed);
    self->n_repairing -= self->n_repairing > 0;
    if (lock_give(segment, repaired))
        return NULL;
    Py_RETURN_NONE;
}

/* --- async with ---------------------------------------------------------- */

/* _enter(timeout): like __enter__() with another timeout; for shmview._async_lock. */
static PyObject *guard_enter_within(PyObject *op, PyObject *timeout)
{
    int64_t deadline;
    return parse_timeout(timeout, &deadline) ? NULL : enter_until((struct guard *)op, deadline);
}

/* Calls a function of shmview._async_lock with the guard and args. The module is imported at the
 * first call, so that a program without asyncio does not load it. */
static PyObject *forward(PyObject *op, const char *name, PyObject *args)
{
    PyObject *module = PyImport_ImportModule("shmview._async_lock");
    PyObject *result = module ? PyObject_CallMethod(module, name, "OO", op, args) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *guard_aenter(PyObject *op, PyObject *args)
{
    return forward(op, "enter", args);
}

static PyObject *guard_aexit(PyObject *op, PyObject *args)
{
    return forward(op, "leave", args);
}

/* --- The type ------------------------------------------------------------ */

static PyObject *get_segment(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)((struct guard *)op)->segment);
}

static PyObject *get_timeout(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *timeout = ((struct guard *)op)->timeout;
    return Py_NewRef(timeout ? timeout : Py_None);
}

static PyObject *get_shared(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((struct guard *)op)->mode == SHMVIEW_SHARED);
}

static PyObject *guard_repr(PyObject *op)
{
    const struct guard *self = (struct guard *)op;
    return PyUnicode_FromFormat("<shmview.Guard: %s() of '%U'>",
                                self->recovers                 ? "recover"
                                : self->mode == SHMVIEW_SHARED ? "shared"
                                                               : "locked",
                                self->segment->name);
}

static PyGetSetDef guard_getset[] = {
    {"segment", get_segment, NULL, "The Segment whose lock it takes.", NULL},
    {"timeout", get_timeout, NULL, "The seconds that it waits at most; None: no limit.", NULL},
    {"_shared", get_shared, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef guard_methods[] = {
    {"_enter", guard_enter_within, METH_O, NULL},
    {"__aenter__", guard_aenter, METH_VARARGS, NULL},
    {"__aexit__", guard_aexit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot guard_slots[] = {
    {Py_tp_doc, "The result of Segment.locked(), shared() and recover(), for a with statement or\n"
                "an async with statement."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, guard_dealloc},
    {Py_tp_repr, guard_repr},
    {Py_tp_methods, guard_methods},
    {Py_tp_getset, guard_getset},
    {0, NULL},
};
PyType_Spec guard_spec = {
    .name = "shmview.Guard",
    .basicsize = sizeof(struct guard),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = guard_slots,
};

/* --- Segment.locked(), shared(), recover() ------------------------------- */

/* Parses the only argument, timeout. Returns it, borrowed, or NULL with TypeError. */
static PyObject *timeout_of(const char *method, PyObject *const *args, Py_ssize_t n,
                            PyObject *names)
{
    if (LIKELY(n == 0 && !names))
        return Py_None;
    Py_ssize_t n_named = names ? PyTuple_GET_SIZE(names) : 0;
    if (n + n_named == 1 &&
        (n == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "timeout") == 0))
        return args[0];
    PyErr_Format(PyExc_TypeError, "%s() takes only timeout=", method);
    return NULL;
}

PyObject *segment_locked(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *timeout = timeout_of("locked", args, n, names);
    return timeout ? guard_make(op, timeout, SHMVIEW_EXCLUSIVE, false) : NULL;
}

PyObject *segment_shared(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *timeout = timeout_of("shared", args, n, names);
    return timeout ? guard_make(op, timeout, SHMVIEW_SHARED, false) : NULL;
}

PyObject *segment_recover(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *timeout = timeout_of("recover", args, n, names);
    return timeout ? guard_make(op, timeout, SHMVIEW_EXCLUSIVE, true) : NULL;
}
