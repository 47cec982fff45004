/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a segment: by close(), at the end of a with block, or by the end of its last reference.
 *
 * Views, buffers and calls of other threads use its mapping, so each of them is counted, and
 * close() raises Busy unless there is none. A with block instead closes the segment early if only
 * views, buffers and tensors are out: its methods can no longer be called, and the last of them
 * detaches it. The end of the last reference needs no check, because views and buffers have a
 * reference to the segment. */
#include "segment.h"

#include <time.h>

int watch_pause(PyObject *watch)
{
    if (!watch)
        return 0;
    PyObject *done = PyObject_CallMethod(watch, "pause", NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int watch_go_on(PyObject *watch, PyObject *op, int r)
{
    PyObject *type, *value, *trace;
    if (!watch)
        return r;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = r ? PyObject_CallMethod(watch, "resume", "O", op)
                       : PyObject_CallMethod(watch, "close", NULL);
    if (done) {
        PyErr_Restore(type, value, trace);
        Py_DECREF(done);
        return r;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

int segment_check_no_calls(struct segment *self)
{
    char text[160];
    if (!calls_of(self))
        return 0;
    PyOS_snprintf(text, sizeof text, "%zd threads are in calls of '%.80s'", self->n_calls,
                  shmview_name(self->handle));
    raise_text(self->state, SHMVIEW_ERR_BUSY, text);
    return -1;
}

/* The segment that this thread detaches now, or NULL. An UNLOCKED_CALL() may run code of Python,
 * which must not wait for its own thread. */
static __thread const struct segment *detaching;

/* shmview_detach() waits for nobody, so a few short sleeps are enough. A forked child does not have
 * the thread that is in close(), and a daemon thread does not return from close() while the
 * interpreter ends. */
void segment_settle(struct segment *segment)
{
    const struct timespec pause = {.tv_nsec = 20000};
    while (COUNT(segment->closing) == 1 + n_forks && segment != detaching && !Py_IsFinalizing()) {
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&pause, NULL);
        Py_END_ALLOW_THREADS
    }
}

/* Detaches a handle that can no longer be used, as soon as its last tensor has ended. */
static void let_go(struct segment *self, struct shmview_segment *handle)
{
    if (!self->connection) {
        wrap_detach_later(handle);
        return;
    }
    shmview_detach_later(handle);
    COUNT_ADD(self->connection->n_attached, -1);
}

/* Raises Busy; the format has one %U, for the name. Returns -1. */
static int fail_busy(struct segment *self, const char *format)
{
    PyObject *text = PyUnicode_FromFormat(format, self->name);
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8)
        raise_text(self->state, SHMVIEW_ERR_BUSY, utf8);
    Py_XDECREF(text);
    return -1;
}

/* Does what shmview_detach() does. If that is refused and `early` is true, finds out whether a
 * thread of this process holds the lock. */
static int try_detach(struct shmview_segment *handle, bool early, bool *ret_is_held)
{
    int r = shmview_detach(handle);
    *ret_is_held = r && early && lock_is_held_here(handle);
    return r;
}

/* Detaches the handle, which other threads must not use in the meantime. If tensors remain and
 * `early` is true, the last of them detaches it, unless a thread of this process holds the lock.
 * Returns 0, or -1 with an exception. */
static int detach(struct segment *self, bool early)
{
    struct shmview_segment *handle = self->handle;
    const struct segment *outer = detaching;
    bool is_held = false;
    int r, busy;
    self->handle = NULL;
    if (self->connection) {
        detaching = self;
        self->closing = 1 + n_forks;
        UNLOCKED_CALL(r, busy = try_detach(handle, early, &is_held));
        self->closing = 0;
        detaching = outer;
    } else {
        r = busy = wrap_detach(handle);
    }
    bool stays = busy && (is_held || !early);
    if (stays)
        self->handle = handle;
    else if (busy)
        let_go(self, handle);
    else if (self->connection)
        COUNT_ADD(self->connection->n_attached, -1);
    if (r == 0 || (r == busy && !stays))
        return 0;
    if (r == busy && is_held)
        return fail_busy(self, "a thread of this process holds the lock of '%U'");
    raise_error(self->state, r, NULL);
    return -1;
}

/* Raises Busy if a thread is in a call, or, unless `early` is true, if views or buffers are out.
 * Returns 0, or -1 with the exception. */
static int check_unused(struct segment *self, bool early)
{
    char text[160];
    if (!self->n_out || early)
        return segment_check_no_calls(self);
    PyOS_snprintf(text, sizeof text, "%zd views or buffers of '%.80s' are still out", self->n_out,
                  shmview_name(self->handle));
    raise_text(self->state, SHMVIEW_ERR_BUSY, text);
    return -1;
}

/* Returns 0 for a segment without a handle, because it is closed already; or -1 with Busy while
 * another thread freezes it (freeze.c), because it has a handle afterwards. A handle that is parked
 * by an early close() has views. A forked child does not have the thread that freezes. */
static int check_closed(struct segment *self)
{
    if (self->parked && !COUNT(self->n_out) && self->forks == n_forks)
        return fail_busy(self, "a thread of this process freezes '%U'");
    return 0;
}

/* Closes a segment without a handle again. A signal handler may have raised in the first close()
 * before the waits of asyncio ended. A handler that runs in detach() must not end them, because the
 * detach may be refused. Returns 0, or -1 with an exception. */
static int close_again(struct segment *self)
{
    PyObject *watch = self->watch;
    if (check_closed(self))
        return -1;
    if (COUNT(self->closing) == 1 + n_forks)
        return 0;
    Py_XINCREF(watch);
    int r = watch_go_on(watch, (PyObject *)self, 0);
    Py_XDECREF(watch);
    return r;
}

/* Closes the segment after watch_pause(). The check and the clearing of the handle happen without a
 * release of the GIL in between, so no thread can begin a call after it. Returns 0, or -1 with an
 * exception. */
static int close_paused(struct segment *self, bool early)
{
    if (!self->handle) /* Python code ran in watch_pause(), and closed the segment */
        return check_closed(self);
    if (check_unused(self, early)) /* or made a view */
        return -1;
    if (!self->n_out)
        return detach(self, early);
    self->parked = self->handle;
    self->handle = NULL;
    return 0;
}

/* Does what close() does; or, with `early`, __exit__(). If it is refused, it changes nothing.
 * Returns None, or NULL with an exception. */
static PyObject *close_now(struct segment *self, bool early)
{
    segment_settle(self);
    if (!self->handle) {
        if (close_again(self))
            return NULL;
        Py_RETURN_NONE;
    }
    if (check_unused(self, early))
        return NULL;
    PyObject *watch = self->watch;
    Py_XINCREF(watch);
    int r = watch_pause(watch);
    if (watch) /* another thread may have begun to detach it during pause(), and may be refused */
        segment_settle(self);
    r = watch_go_on(watch, (PyObject *)self, r ? r : close_paused(self, early));
    Py_XDECREF(watch);
    if (r)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *segment_close(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return close_now((struct segment *)op, false);
}

PyObject *segment_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return segment_use((struct segment *)op) ? Py_NewRef(op) : NULL;
}

/* Segment.__exit__(): close(), except that views, buffers and tensors do not prevent it. The
 * variables of a block outlive the block, so that close() would almost always find some. An
 * exception of the block is not replaced: if the segment cannot be closed, the end of its last
 * reference detaches it. */
PyObject *segment_exit(PyObject *op, PyObject *args)
{
    bool failed = PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None;
    PyObject *done = close_now((struct segment *)op, true);
    if (done || !failed)
        return done;
    PyErr_Clear();
    Py_RETURN_NONE;
}

void segment_out_ends(struct segment *segment)
{
    struct shmview_segment *handle = segment->parked;
    COUNT_ADD(segment->n_out, -1);
    if (LIKELY(!handle) || COUNT(segment->n_out))
        return;
    segment->parked = NULL;
    let_go(segment, handle);
}

int segment_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct segment *self = (struct segment *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT((PyObject *)self->connection);
    Py_VISIT(self->watch);
    Py_VISIT(self->layouts);
    return 0;
}

int segment_clear(PyObject *op)
{
    struct segment *self = (struct segment *)op;
    Py_CLEAR(self->watch);
    Py_CLEAR(self->layouts);
    return 0;
}

/* No view or buffer exists any longer, because each has a reference. Tensors of DLPack may exist,
 * whose deleters need no Python object, so shmview_detach_later() waits for them. */
void segment_dealloc(PyObject *op)
{
    struct segment *self = (struct segment *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    segment_clear(op);
    if (segment_mapped(self))
        let_go(self, segment_mapped(self));
    Py_XDECREF((PyObject *)self->connection);
    Py_XDECREF(self->name);
    PyObject_Free(self->spare_guard);
    type->tp_free(op);
    Py_DECREF(type);
}
