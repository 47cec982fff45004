/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and loaning frames; iteration.
 *
 * A call first tries with the GIL held: that costs less than giving it away, and sends no request.
 * Only a forked child, whose first call attaches the segment again, gives it away at once. */
#include "stream.h"

#include <errno.h>

/* A result of take() besides those of libshmview: an exception is set. */
#define RAISED (-1000)

typedef int take_call(struct shmview_stream *stream, int64_t deadline, struct shmview_frame *ret);

/* Parses the only argument, timeout. Returns 0 with the deadline, or -1 with an exception. */
static int parse_only_timeout(const char *method, PyObject *const *args, Py_ssize_t n,
                              PyObject *names, int64_t *ret)
{
    Py_ssize_t n_named = names ? PyTuple_GET_SIZE(names) : 0;
    if (LIKELY(n + n_named == 0))
        return parse_timeout(NULL, ret);
    if (n + n_named == 1 &&
        (n == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "timeout") == 0))
        return parse_timeout(args[0], ret);
    PyErr_Format(PyExc_TypeError, "%s() takes only timeout=", method);
    return -1;
}

/* Calls without the GIL. Returns the result of the call, or RAISED with the exception of a signal
 * handler. */
static int call_unlocked(struct stream *self, take_call *call, int64_t deadline,
                         struct shmview_frame *frame)
{
    struct shmview_stream *handle = self->line->handle;
    PyThreadState *thread;
    stream_call_begins(self);
    unlocked_begin(&thread);
    int got = call(handle, deadline, frame);
    int r = unlocked_end(&thread, got);
    stream_call_ends(self);
    if (got >= 0 || got == -SHMVIEW_ERR_TIMED_OUT)
        self->entered = n_forks;
    return r != got || PyErr_Occurred() ? RAISED : got;
}

/* --- Taking -------------------------------------------------------------- */

/* Takes a frame. Returns 0, SHMVIEW_WRITER_DIED, SHMVIEW_STREAM_ENDED, an error, or RAISED. A wait
 * that a signal handler ends has taken nothing, but for the first call of a forked child, whose
 * frame the caller releases. */
static int take(struct stream *self, bool latest, int64_t deadline, struct shmview_frame *ret)
{
    take_call *call = latest ? shmview_stream_take_latest : shmview_stream_take;
    if (LIKELY(self->entered == n_forks)) {
        int r = call(self->line->handle, 0, ret);
        if (LIKELY(r == 0) || r != -SHMVIEW_ERR_TIMED_OUT || deadline == 0)
            return r;
    }
    return call_unlocked(self, call, deadline, ret);
}

static PyObject *raise_death(struct stream *self)
{
    PyObject *death = stream_death(self);
    if (death)
        PyErr_SetObject((PyObject *)Py_TYPE(death), death);
    Py_XDECREF(death);
    return NULL;
}

static PyObject *raise_ended(struct stream *self)
{
    PyObject *errors = PyImport_ImportModule("shmview._errors");
    PyObject *ended = errors ? PyObject_CallMethod(errors, "make_end", "O", self->name) : NULL;
    Py_XDECREF(errors);
    if (ended)
        PyErr_SetObject((PyObject *)Py_TYPE(ended), ended);
    Py_XDECREF(ended);
    return NULL;
}

/* What a call returns instead of an exception. */
enum {
    NONE_AT_END = 1,  /* NULL without an exception, at the end of the stage */
    NONE_IN_TIME = 2, /* None, after the deadline */
};

static PyObject *take_frame(struct stream *self, bool latest, int64_t deadline, int instead)
{
    struct hold *hold = stream_use(self) ? hold_new(self->line) : NULL;
    if (!hold)
        return NULL;
    int r = take(self, latest, deadline, &hold->frame);
    if (LIKELY(r == 0))
        return frame_new(self, hold, false);
    hold_drop(hold);
    if (r == SHMVIEW_WRITER_DIED)
        return raise_death(self);
    if (r == SHMVIEW_STREAM_ENDED)
        return instead & NONE_AT_END ? NULL : raise_ended(self);
    if (r == -SHMVIEW_ERR_TIMED_OUT && instead & NONE_IN_TIME)
        Py_RETURN_NONE;
    return r == RAISED ? NULL : raise_error(self->state, r, "{s:O}", "name", self->name);
}

PyObject *stream_take(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    int64_t deadline;
    return parse_only_timeout("take", args, n, names, &deadline)
               ? NULL
               : take_frame((struct stream *)op, false, deadline, 0);
}

PyObject *stream_latest(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    int64_t deadline;
    return parse_only_timeout("latest", args, n, names, &deadline)
               ? NULL
               : take_frame((struct stream *)op, true, deadline, 0);
}

PyObject *stream_next(PyObject *op)
{
    return take_frame((struct stream *)op, false, SHMVIEW_FOREVER, NONE_AT_END);
}

PyObject *stream_poll(PyObject *op, PyObject *Py_UNUSED(unused))
{
    PyObject *frame = take_frame((struct stream *)op, false, 0, NONE_AT_END | NONE_IN_TIME);
    if (!frame && !PyErr_Occurred())
        PyErr_SetNone(PyExc_StopAsyncIteration);
    return frame;
}

PyObject *stream_aiter(PyObject *op)
{
    return stream_use((struct stream *)op) ? Py_NewRef(op) : NULL;
}

PyObject *stream_anext(PyObject *op)
{
    PyObject *module = PyImport_ImportModule("shmview._streams_aio");
    PyObject *awaitable = module ? PyObject_CallMethod(module, "take", "O", op) : NULL;
    Py_XDECREF(module);
    return awaitable;
}

/* --- Loaning ------------------------------------------------------------- */

PyObject *stream_loan(PyObject *op, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    struct stream *self = (struct stream *)op;
    int64_t deadline;
    if (parse_only_timeout("loan", args, n, names, &deadline))
        return NULL;
    struct hold *hold = stream_use(self) ? hold_new(self->line) : NULL;
    int r = -SHMVIEW_ERR_TIMED_OUT;
    if (!hold)
        return NULL;
    bool tried = LIKELY(self->entered == n_forks);
    if (tried)
        r = shmview_stream_loan(self->line->handle, 0, &hold->frame);
    /* it waits for another writer as well, which may have been killed a moment ago */
    if ((r == -SHMVIEW_ERR_TIMED_OUT || r == -SHMVIEW_ERR_BUSY) && (!tried || deadline))
        r = call_unlocked(self, shmview_stream_loan, deadline, &hold->frame);
    if (LIKELY(r == 0))
        return frame_new(self, hold, true);
    hold_drop(hold); /* which discards a frame that was loaned although a handler has raised */
    return r == RAISED ? NULL : raise_error(self->state, r, "{s:O}", "name", self->name);
}

/* --- The rest ------------------------------------------------------------ */

/* r = call(handle), without the GIL. Returns 0, or -1 with an exception. */
static int call_handle(struct stream *self, int (*call)(struct shmview_stream *))
{
    struct shmview_stream *handle = stream_use(self);
    int r;
    if (!handle)
        return -1;
    stream_call_begins(self);
    UNLOCKED_CALL(r, call(handle));
    stream_call_ends(self);
    if (r)
        raise_error(self->state, r, "{s:O}", "name", self->name);
    return r ? -1 : 0;
}

PyObject *stream_end(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return call_handle((struct stream *)op, shmview_stream_end) ? NULL : Py_NewRef(Py_None);
}

PyObject *stream_join(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return call_handle((struct stream *)op, shmview_stream_join) ? NULL : Py_NewRef(Py_None);
}

static int leave(struct shmview_stream *handle)
{
    shmview_stream_leave(handle);
    return 0;
}

PyObject *stream_leave(PyObject *op, PyObject *Py_UNUSED(unused))
{
    ((struct stream *)op)->n_left++; /* before a task can look again, which would join */
    return call_handle((struct stream *)op, leave) ? NULL : Py_NewRef(Py_None);
}

PyObject *stream_fd(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct stream *self = (struct stream *)op;
    struct shmview_stream *handle = stream_use(self);
    int r, fd;
    if (!handle)
        return NULL;
    stream_call_begins(self);
    UNLOCKED_CALL(r, shmview_stream_fd(handle, &fd));
    stream_call_ends(self);
    return r ? raise_error(self->state, r, NULL) : PyLong_FromLong(fd);
}
