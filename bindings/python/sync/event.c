/* SPDX-License-Identifier: Apache-2.0 */
/* Event: one word, without a mutex. It is odd while the event is set, and each change adds 1, so
 * that a waiter also notices a set that was followed by a clear.
 *
 *     0  kind   EVENT_KIND
 *     4  word
 *
 * A process that dies after its change and before its wake-up delays the waiters by 0.1 s at most,
 * because shmview_word_wait() is bounded. */
#include "shared.h"

#define EVENT_KIND 0x746e7645u

struct event_memory {
    uint32_t kind, word;
};
static uint32_t *word_of(PyObject *op)
{
    return &((struct event_memory *)((struct shared *)op)->memory)->word;
}

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Adds 1 to the word if it has that parity: 0 to set the event, 1 to clear it. Returns whether it
 * did. */
static bool flip(uint32_t *word, uint32_t parity)
{
    uint32_t v = load(word);
    while ((v & 1) == parity)
        if (__atomic_compare_exchange_n(word, &v, v + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
            return true;
    return false;
}

static PyObject *is_set(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(load(word_of(op)) & 1);
}

static PyObject *set(PyObject *op, PyObject *Py_UNUSED(unused))
{
    if (flip(word_of(op), 0))
        shmview_word_wake(word_of(op), 0);
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *op, PyObject *Py_UNUSED(unused))
{
    flip(word_of(op), 1);
    Py_RETURN_NONE;
}

static PyObject *wait(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"timeout", NULL};
    uint32_t *word = word_of(op);
    PyObject *timeout = Py_None;
    int64_t deadline;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", keywords, &timeout) ||
        deadline_of(timeout, &deadline))
        return NULL;
    uint32_t seen = load(word);
    int r = 0;
    while (!(seen & 1) && load(word) == seen && r != -SHMVIEW_ERR_TIMED_OUT) {
        PyThreadState *thread;
        unlocked_begin(&thread);
        r = shmview_word_wait(word, seen, deadline);
        r = unlocked_end(&thread, r);
        if (r == -SHMVIEW_ERR_INTERRUPTED)
            return NULL;
    }
    return PyBool_FromLong((seen & 1) || load(word) != seen);
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *words;
    return (PyObject *)shared_new(type, args, EVENT_KIND, sizeof(struct event_memory), &words);
}

static PyMethodDef methods[] = {
    {"is_set", is_set, METH_NOARGS, "is_set()\n--\n\nReturns whether the event is set."},
    {"set", set, METH_NOARGS, "set()\n--\n\nSets the event, and wakes all waiters."},
    {"clear", clear, METH_NOARGS, "clear()\n--\n\nClears the event."},
    {"wait", (PyCFunction)(void (*)(void))wait, METH_VARARGS | METH_KEYWORDS,
     "wait(timeout=None)\n--\n\n"
     "Waits for at most timeout seconds (None: as long as necessary) until the event is set, and\n"
     "returns whether it was. Releases the GIL. Signal handlers run during the wait."},
    {NULL, NULL, 0, NULL},
};
SHARED_SPEC(event, "Event", struct shared);
