/* SPDX-License-Identifier: Apache-2.0 */
/* Waiters: the threads that wait for a condition, each in a place of its own.
 *
 * The lock of the condition, any lock, guards the taking of places and notify(). A waiter leaves
 * its place without it. A place is
 *
 *     process u64   shmview_process_name() of the waiter
 *     state   u32   FREE -> WAITING -> NOTIFIED -> FREE; the waiter parks on it
 *     ticket  u32   which of two waiters came first
 *
 * and the memory is {kind u32, tickets u32, 56 bytes of zeros, places...}.
 *
 * notify() changes the state of the first waiters by CAS, and wakes them. A thread that the kernel
 * wakes lives. If none was parked, the kernel is asked about the process, and a place of an ended
 * one is passed over. A waiter keeps its place until it has the lock again. If it is killed before,
 * another waiter, which looks every 0.1 s, takes its notification over. */
#include "shared.h"

#define WAITERS_KIND 0x646e6f43u

enum {
    FREE,
    WAITING,
    NOTIFIED
};

struct place {
    uint64_t process;
    uint32_t state, ticket;
};
struct waiters_memory {
    uint32_t kind, tickets;
    uint32_t reserved[14];
    struct place places[];
};
/* All places of the memory. */
struct places {
    struct waiters_memory *memory;
    uint32_t n;
};
static struct places places_of(PyObject *op)
{
    const struct shared *s = (struct shared *)op;
    return (struct places){s->memory, (s->bytes - (uint32_t)sizeof(struct waiters_memory)) /
                                          (uint32_t)sizeof(struct place)};
}

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static bool change(struct place *p, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&p->state, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_ACQUIRE);
}

/* Returns the waiter that came first, or NULL. */
static struct place *first(const struct places *w)
{
    struct place *found = NULL;
    for (uint32_t i = 0; i < w->n; i++) {
        struct place *p = &w->memory->places[i];
        if (load(&p->state) == WAITING && (!found || (int32_t)(p->ticket - found->ticket) < 0))
            found = p;
    }
    return found;
}

/* Notifies the waiter that came first. Returns whether there was one. */
static bool notify_one(const struct places *w)
{
    for (struct place *p; (p = first(w));) {
        if (!change(p, WAITING, NOTIFIED))
            continue;
        if (shmview_word_wake(&p->state, 1) || !shmview_process_has_ended(p->process))
            return true;
        change(p, NOTIFIED, FREE);
    }
    return false;
}

/* Passes on the notification, if it has one, of a waiter that was killed before it had the lock. */
static void pass_on(const struct places *w, struct place *p)
{
    if (load(&p->state) == NOTIFIED && change(p, NOTIFIED, FREE))
        notify_one(w);
}

/* Passes on the notifications of all waiters that were killed. */
static void inherit(const struct places *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct place *p = &w->memory->places[i];
        if (load(&p->state) == NOTIFIED && shmview_process_has_ended(p->process))
            pass_on(w, p);
    }
}

/* Takes a place; the caller has the lock. Returns it, or NULL if all are taken. */
static struct place *take_place(const struct places *w)
{
    struct place *found = NULL;
    for (uint32_t i = 0; !found && i < w->n; i++)
        if (load(&w->memory->places[i].state) == FREE)
            found = &w->memory->places[i];
    for (uint32_t i = 0; !found && i < w->n; i++) {
        struct place *p = &w->memory->places[i];
        if (!shmview_process_has_ended(p->process))
            continue;
        pass_on(w, p);
        found = p;
    }
    if (!found || shmview_process_name(&found->process))
        return NULL;
    found->ticket = w->memory->tickets++;
    store(&found->state, WAITING);
    return found;
}

/* Waits in a place until it is notified. Returns 1; 0 if the deadline has passed; or -1 with an
 * exception. After 1 the place is still taken. */
static int park(const struct places *w, struct place *p, int64_t deadline)
{
    while (load(&p->state) == WAITING) {
        PyThreadState *thread;
        unlocked_begin(&thread);
        int r = shmview_word_wait(&p->state, WAITING, deadline);
        r = unlocked_end(&thread, r);
        if (r && change(p, WAITING, FREE))
            return r == -SHMVIEW_ERR_INTERRUPTED ? -1 : 0;
        if (r == -SHMVIEW_ERR_INTERRUPTED) {
            store(&p->state, FREE);
            return -1;
        }
        if (load(&p->state) == WAITING)
            inherit(w);
    }
    return 1;
}

/* Calls a method of the lock n times. Returns 0, or -1 with an exception. */
static int call(PyObject *lock, const char *method, long n)
{
    for (; n > 0; n--) {
        PyObject *done = PyObject_CallMethod(lock, method, NULL);
        if (!done)
            return -1;
        Py_DECREF(done);
    }
    return 0;
}

/* wait(lock, depth, timeout): releases the lock depth times, waits, and takes it again. */
static PyObject *wait(PyObject *op, PyObject *args)
{
    struct places w = places_of(op);
    PyObject *lock, *timeout, *type, *value, *trace;
    long depth;
    int64_t deadline;
    if (!PyArg_ParseTuple(args, "OlO:wait", &lock, &depth, &timeout) ||
        deadline_of(timeout, &deadline))
        return NULL;
    struct place *p = take_place(&w);
    if (!p)
        return PyErr_Format(PyExc_RuntimeError,
                            "%u threads wait for this condition already, and it has no more places",
                            w.n);
    if (call(lock, "release", depth)) {
        store(&p->state, FREE);
        return NULL;
    }
    int how = park(&w, p, deadline);
    PyErr_Fetch(&type, &value, &trace);
    int taken = call(lock, "acquire", depth);
    if (how == 1)
        store(&p->state, FREE);
    if (how < 0) {
        PyErr_Restore(type, value, trace); /* rather than that of acquire() */
        return NULL;
    }
    return taken ? NULL : PyBool_FromLong(how);
}

/* notify(n): wakes n waiters; the caller has the lock. */
static PyObject *notify(PyObject *op, PyObject *arg)
{
    struct places w = places_of(op);
    Py_ssize_t n = PyNumber_AsSsize_t(arg, NULL);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    while (n-- > 0 && notify_one(&w))
        ;
    Py_RETURN_NONE;
}

/* count(): how many threads have a place. */
static PyObject *count(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct places w = places_of(op);
    unsigned long n = 0;
    for (uint32_t i = 0; i < w.n; i++)
        n += load(&w.memory->places[i].state) != FREE;
    return PyLong_FromUnsignedLong(n);
}

static PyObject *waiters_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *words;
    return (PyObject *)shared_new(type, args, WAITERS_KIND, sizeof(struct waiters_memory), &words);
}

static PyMethodDef methods[] = {
    {"wait", wait, METH_VARARGS, NULL},
    {"notify", notify, METH_O, NULL},
    {"count", count, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
SHARED_SPEC(waiters, "Waiters", struct shared);
