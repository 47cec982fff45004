/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphore: a counter whose permits come back from processes that have ended.
 *
 * A semaphore of multiprocessing loses the permits of a killed process. Here an entry of the
 * monitor's table counts the permits that a process has taken and not given back. A release by a
 * process that holds none counts for one that does, because permits may be taken by one process
 * and given back by another. */
#include "monitor.h"

/* The words of a semaphore. */
enum {
    VALUE,  /* free permits */
    LIMIT,  /* VALUE never exceeds it */
    RETURN, /* permits that ended processes can give back: VALUE + those held, at most. 0: none */
};
#define FREED 0 /* the bell */

/* Inside: gives back the permits of processes that have ended. Returns the process id of the last
 * one, or 0. */
static uint32_t bury(struct monitor *m, bool now)
{
    uint32_t pid = 0;
    for (struct party *p; (p = monitor_dead(m, now)); now = true) {
        uint32_t value = monitor_word(m, VALUE), most = monitor_word(m, RETURN),
                 room = value < most ? most - value : 0, held = monitor_load(&p->a);
        pid = (uint32_t)p->process & SHMVIEW_MUTEX_ID;
        monitor_note_word(m, VALUE, value + (held < room ? held : room));
        monitor_note(m, &p->a, 0);
        monitor_commit(m);
        monitor_ring(m, FREED, 0);
    }
    return pid;
}

static void give(struct monitor *m, struct party *from)
{
    uint32_t held = from ? monitor_load(&from->a) : 0;
    monitor_note_word(m, VALUE, monitor_word(m, VALUE) + 1);
    if (held)
        monitor_note(m, &from->a, held - 1);
    monitor_commit(m);
    monitor_ring(m, FREED, 1);
}

static void take(struct monitor *m)
{
    struct party *own = monitor_word(m, RETURN) ? monitor_own(m) : NULL;
    monitor_note_word(m, VALUE, monitor_word(m, VALUE) - 1);
    if (own)
        monitor_note(m, &own->a, monitor_load(&own->a) + 1);
    monitor_commit(m);
}

/* Inside: returns the entry that a release counts for: that of this process if it holds a permit,
 * otherwise one of another process, or NULL. */
static struct party *holder(struct monitor *m)
{
    struct party *own = monitor_own(m);
    m->n_writes = 0; /* an entry is not taken for a release */
    for (uint32_t i = 0; (!own || !monitor_load(&own->a)) && i < m->n_parties; i++)
        own = &m->memory->parties[i];
    return own;
}

/* The result of acquire() after MONITOR_OUT, or after -1 with an exception. */
static PyObject *outside(int how)
{
    return how < 0 ? NULL : Py_NewRef(Py_False);
}

static PyObject *acquire_until(struct monitor *m, int64_t deadline)
{
    uint32_t died = 0;
    int r = monitor_enter_until(m, deadline);
    if (UNLIKELY(r))
        return outside(r);
    while (monitor_word(m, VALUE) == 0) {
        int how = deadline ? monitor_wait(m, FREED, deadline) : MONITOR_EXPIRED;
        if (how < 0 || how == MONITOR_OUT)
            return outside(how);
        if (how == MONITOR_RUNG)
            continue;
        uint32_t pid = bury(m, how == MONITOR_EXPIRED);
        died = pid ? pid : died;
        if (how == MONITOR_EXPIRED && monitor_word(m, VALUE) == 0) {
            monitor_leave(m);
            Py_RETURN_FALSE;
        }
    }
    take(m);
    monitor_leave(m);
    if (died && monitor_warn(m, died,
                             "died while it held permits of this semaphore, which are "
                             "free again: its work may be half done")) {
        if (monitor_enter(m) == 0) {
            give(m, holder(m));
            monitor_leave(m);
        }
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *acquire(PyObject *op, PyObject *args, PyObject *kwargs)
{
    int64_t deadline;
    return parse_deadline(args, kwargs, &deadline) ? NULL
                                                   : acquire_until((struct monitor *)op, deadline);
}

static PyObject *enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return acquire_until((struct monitor *)op, SHMVIEW_FOREVER);
}

static PyObject *release(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct monitor *m = (struct monitor *)op;
    if (monitor_enter(m))
        return NULL;
    bool fits = monitor_word(m, VALUE) < monitor_word(m, LIMIT);
    if (fits)
        give(m, holder(m));
    monitor_leave(m);
    if (fits)
        Py_RETURN_NONE;
    return PyErr_Format(PyExc_ValueError, "semaphore or lock released too many times");
}

static PyObject *leave(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    return release(op, NULL);
}

static PyObject *get_value(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(monitor_word((struct monitor *)op, VALUE));
}

static PyObject *is_zero(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(monitor_word((struct monitor *)op, VALUE) == 0);
}

static PyObject *semaphore_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    return monitor_new(type, args, MONITOR_SEMAPHORE, 0);
}

static PyMethodDef methods[] = {
    {"acquire", (PyCFunction)(void (*)(void))acquire, METH_VARARGS | METH_KEYWORDS,
     "acquire(block=True, timeout=None)\n--\n\n"
     "Takes a permit, and returns whether it did. If block is true, waits for at most timeout\n"
     "seconds (None: as long as necessary), without the GIL. Signal handlers run during the wait,\n"
     "but not while it waits for another process that is stopped inside a call of this object.\n"
     "\n"
     "If the permit is one of a process that was killed, OwnerDiedWarning is issued. If a filter\n"
     "turns the warning into an exception, the caller has no permit."},
    {"release", release, METH_NOARGS,
     "release()\n--\n\nGives a permit back. Raises ValueError if the semaphore is at its limit."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL, NULL},
    {"get_value", get_value, METH_NOARGS, "get_value()\n--\n\nReturns the number of free permits."},
    {"_get_value", get_value, METH_NOARGS, NULL},
    {"_is_zero", is_zero, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
SHARED_SPEC(semaphore, "Semaphore", struct monitor);
