/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a Queue: pickled items in shared memory, on a monitor.
 *
 * The ring has frames, {bytes u32, flags u32, total u64} and then the bytes, padded to 16. An item
 * of up to a quarter of the ring is one frame. A larger one is several, the first of which is
 * marked FIRST, and the last LAST; one process writes all of them, and one reads them. HEAD moves
 * when a frame is complete, so a process that is killed while it writes one leaves nothing. If it
 * is killed between two frames, the item is lost: its reader notices, and drops what it has. If the
 * reader is killed, the next one skips the frames up to the next FIRST.
 *
 * Counts. An item that was put counts until it was got, so that maxsize holds: in ITEMS once its
 * first frame is in the ring, before that in PENDING and in entry a of its process, which keeps it
 * in a buffer of its own. In a queue that can be joined, an item that was got and is not done
 * counts in TAKEN and in entry b of its process. task_done() may be called before get(), as in
 * CPython; the next item that is got then counts as done. The counts of a process that has ended
 * are taken back. */
#include "ring.h"

#include <string.h>

/* The items that count as done although no process has got them. */
static uint32_t done_early(struct monitor *m)
{
    uint32_t early = monitor_word(m, EARLY);
    return early ? early - 1 : 0;
}

/* Inside: takes back the counts of processes that have ended. */
static void bury(struct monitor *m, bool now)
{
    for (struct party *p; (p = monitor_dead(m, now)); now = true) {
        uint32_t pending = monitor_load(&p->a), taken = monitor_load(&p->b);
        ring_note_less(m, PENDING, pending);
        ring_note_less(m, TAKEN, taken);
        uint32_t left = ring_size(m) > pending ? ring_size(m) - pending : 0;
        if (done_early(m) > left)
            monitor_note_word(m, EARLY, 1 + left);
        monitor_note(m, &p->a, 0);
        monitor_note(m, &p->b, 0);
        monitor_note_word(m, DIED, (uint32_t)p->process & SHMVIEW_MUTEX_ID);
        monitor_commit(m);
        monitor_ring(m, ROOM_BELL, 0);
        monitor_ring(m, DONE_BELL, 0);
    }
}

static bool is_full(struct monitor *m)
{
    uint32_t most = monitor_word(m, MAXSIZE);
    return most && ring_size(m) >= most;
}

/* Parses (block, timeout). Returns 0, or -1 with an exception. */
static int deadline_for(int block, PyObject *timeout, int64_t *ret_deadline)
{
    *ret_deadline = 0;
    return block ? deadline_of(timeout, ret_deadline) : 0;
}

/* --- Put ----------------------------------------------------------------- */

/* Waits until the queue is not full. Returns 1, inside; 0 outside after the deadline; or -1 with an
 * exception and outside. */
static int wait_for_room(struct monitor *m, int64_t deadline)
{
    int r = monitor_enter_until(m, deadline);
    if (UNLIKELY(r))
        return r < 0 ? -1 : 0;
    while (is_full(m)) {
        int how = deadline ? monitor_wait(m, ROOM_BELL, deadline) : MONITOR_EXPIRED;
        if (how < 0 || how == MONITOR_OUT)
            return how < 0 ? -1 : 0;
        if (how != MONITOR_RUNG)
            bury(m, how == MONITOR_EXPIRED);
        if (how == MONITOR_EXPIRED && is_full(m)) {
            monitor_leave(m);
            return 0;
        }
    }
    return 1;
}

/* put(data, block, timeout, may_write): returns 0 if the queue is full; 1 if the item is in it; 2
 * if it counts as pending, and the caller must pass it to write(). may_write is false if earlier
 * items are pending in this process. */
static PyObject *put(PyObject *op, PyObject *args)
{
    struct monitor *m = (struct monitor *)op;
    Py_buffer data;
    PyObject *timeout;
    int block, may_write, r = -1;
    int64_t deadline;
    if (!PyArg_ParseTuple(args, "y*pOp", &data, &block, &timeout, &may_write))
        return NULL;
    if (deadline_for(block, timeout, &deadline) == 0)
        r = wait_for_room(m, deadline);
    if (r == 1) {
        bool in_ring = may_write && ring_try(m, data.buf, (size_t)data.len);
        if (!in_ring) {
            struct party *own = monitor_own(m);
            if (own)
                monitor_note(m, &own->a, monitor_load(&own->a) + 1);
            monitor_note_word(m, PENDING, monitor_word(m, PENDING) + 1);
            monitor_commit(m);
        }
        monitor_leave(m);
        r = in_ring ? 1 : 2;
    }
    PyBuffer_Release(&data);
    return r < 0 ? NULL : PyLong_FromLong(r);
}

/* write(data, was_pending): waits until the item is in the ring. */
static PyObject *write_(PyObject *op, PyObject *args)
{
    Py_buffer data;
    int was_pending;
    if (!PyArg_ParseTuple(args, "y*p", &data, &was_pending))
        return NULL;
    int r = ring_write((struct monitor *)op, data.buf, (size_t)data.len, was_pending);
    PyBuffer_Release(&data);
    if (r)
        return NULL;
    Py_RETURN_NONE;
}

/* --- Get ----------------------------------------------------------------- */

/* The result of get() after MONITOR_OUT, or after -1 with an exception. */
static PyObject *nothing(int how)
{
    return how < 0 ? NULL : Py_NewRef(Py_None);
}

/* get(block, timeout): the bytes of an item, or None after the deadline. */
static PyObject *get(PyObject *op, PyObject *args)
{
    struct monitor *m = (struct monitor *)op;
    PyObject *timeout, *item = NULL;
    int block, r;
    int64_t deadline;
    if (!PyArg_ParseTuple(args, "pO", &block, &timeout) || deadline_for(block, timeout, &deadline))
        return NULL;
    r = monitor_enter_until(m, deadline);
    if (UNLIKELY(r))
        return nothing(r);
    while ((r = ring_read(m, &item)) == 0) {
        int how = deadline ? monitor_wait(m, ITEM_BELL, deadline) : MONITOR_EXPIRED;
        if (how < 0 || how == MONITOR_OUT)
            return nothing(how);
        if (how != MONITOR_RUNG)
            ring_forget_reader(m);
        if (how == MONITOR_EXPIRED && !ring_has_item(m)) {
            monitor_leave(m);
            Py_RETURN_NONE;
        }
    }
    return r < 0 ? NULL : item;
}

/* --- Joining, and the state ---------------------------------------------- */

static PyObject *task_done(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct monitor *m = (struct monitor *)op;
    if (monitor_enter(m))
        return NULL;
    struct party *p = monitor_own(m);
    m->n_writes = 0; /* an entry is not taken for this */
    for (uint32_t i = 0; (!p || !monitor_load(&p->b)) && i < m->n_parties; i++)
        p = &m->memory->parties[i];
    bool was_taken = monitor_word(m, TAKEN);
    bool is_early = !was_taken && monitor_word(m, EARLY) && done_early(m) < ring_size(m);
    if (was_taken)
        ring_note_less(m, TAKEN, 1);
    if (was_taken && p && monitor_load(&p->b))
        monitor_note(m, &p->b, monitor_load(&p->b) - 1);
    if (is_early)
        monitor_note_word(m, EARLY, 2 + done_early(m));
    if (was_taken || is_early) {
        monitor_commit(m);
        monitor_ring(m, DONE_BELL, 0);
    }
    monitor_leave(m);
    if (was_taken || is_early)
        Py_RETURN_NONE;
    return PyErr_Format(PyExc_ValueError, "task_done() called too many times");
}

static PyObject *join(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct monitor *m = (struct monitor *)op;
    if (monitor_enter(m))
        return NULL;
    while (ring_size(m) + monitor_word(m, TAKEN) > done_early(m)) {
        int how = monitor_wait(m, DONE_BELL, SHMVIEW_FOREVER);
        if (how < 0)
            return NULL;
        if (how == MONITOR_QUIET)
            bury(m, false);
    }
    uint32_t died = monitor_word(m, DIED);
    monitor_note_word(m, DIED, 0);
    monitor_commit(m);
    monitor_leave(m);
    if (died && monitor_warn(m, died,
                             "died before it called task_done() for an item that it had "
                             "got, or before its items were in the queue: they are lost"))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *qsize(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(ring_size((struct monitor *)op));
}

static PyObject *empty(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(monitor_word((struct monitor *)op, ITEMS) == 0);
}

static PyObject *full(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(is_full((struct monitor *)op));
}

static PyObject *maxsize(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLong(monitor_word((struct monitor *)op, MAXSIZE));
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *queue = monitor_new(type, args, MONITOR_QUEUE, RING_TABLE);
    if (queue && !ring_capacity((struct monitor *)queue)) {
        PyErr_SetString(PyExc_ValueError, "not the memory of a queue");
        Py_CLEAR(queue);
    }
    return queue;
}

static PyMethodDef methods[] = {
    {"put", put, METH_VARARGS, NULL},        {"write", write_, METH_VARARGS, NULL},
    {"get", get, METH_VARARGS, NULL},        {"task_done", task_done, METH_NOARGS, NULL},
    {"join", join, METH_NOARGS, NULL},       {"qsize", qsize, METH_NOARGS, NULL},
    {"empty", empty, METH_NOARGS, NULL},     {"full", full, METH_NOARGS, NULL},
    {"maxsize", maxsize, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};
SHARED_SPEC(queue, "Queue", struct monitor);
