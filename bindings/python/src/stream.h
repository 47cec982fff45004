/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - streams and their frames: the objects, and what their files share. The methods of
 * Stream are in stream.c, take.c and stream_status.c, its table and docstrings in stream_type.c; a
 * Frame is in frame.c and frame_type.c.
 *
 * A Frame has a hold, and the hold keeps the slot. The views of a Frame belong to a
 * Segment that wraps the bytes of the slot (shmview_wrap()), and that has a reference to the hold
 * as well. So views, buffers and tensors of a frame keep the slot by the same means by which they
 * keep other memory. Holds and the handle of the stream are counted without the GIL, because a
 * consumer of DLPack may end a tensor on any thread. */
#ifndef STREAM_H
#define STREAM_H

#include "core.h"

#include <shmview/stream.h>

/* An open stream of libshmview. The Stream has a reference, and so has each hold; the last one
 * closes it. */
struct line {
    struct shmview_stream *handle;
    int refs; /* atomic */
};

/* A frame that is loaned, taken or kept. The Frame has a reference, and so has the memory of its
 * views; the last one discards or releases the frame. */
struct hold {
    struct shmview_frame frame;
    struct line *line; /* owned */
    int refs;          /* atomic */
};

struct stream {
    PyObject_HEAD struct state *state;
    struct connection *connection; /* owned */
    struct line *line;             /* owned; NULL: closed */
    PyObject *name;                /* a str, with ":1" for a stage */
    PyObject *views;               /* a tuple of the names of its views */
    PyObject *numbers;             /* a dict of their numbers */
    struct shmview_stream_info info;
    int access;
    uint64_t place, reach; /* where the views of slot 0 begin and end, in bytes of the segment */
    Py_ssize_t n_calls;    /* calls that use the handle without the GIL now */
    unsigned forks;        /* n_forks when n_calls was counted */
    unsigned entered;      /* n_forks when a call was known to need no daemon */
    unsigned n_left;       /* how often leave() was called */
    struct frame *spare;   /* memory for its next Frame, or NULL */
    PyObject *watch;       /* the Watch of shmview._streams, or NULL */
    PyObject *weakrefs;
};
extern PyType_Spec stream_spec, frame_spec;

/* --- stream.c ------------------------------------------------------------ */

/* Returns the handle, or NULL with ValueError if the stream is closed. */
static inline struct shmview_stream *stream_use(const struct stream *stream)
{
    if (LIKELY(stream->line != NULL))
        return stream->line->handle;
    PyErr_SetString(PyExc_ValueError, "the stream is closed");
    return NULL;
}

/* Call these before and after a call without the GIL. In between, close() raises Busy. */
void stream_call_begins(struct stream *stream);
void stream_call_ends(struct stream *stream);

/* Makes a hold with an empty frame. Returns NULL with MemoryError. */
struct hold *hold_new(struct line *line);
/* Drops a reference. Needs no GIL. */
void hold_drop(struct hold *hold);

/* create_stream(...) and open_stream(name, access, connection), which shmview._streams wraps. */
PyObject *module_create_stream(PyObject *module, PyObject *args);
PyObject *module_open_stream(PyObject *module, PyObject *args);

PyObject *stream_close(PyObject *self, PyObject *unused);
PyObject *stream_enter(PyObject *self, PyObject *unused);
PyObject *stream_exit(PyObject *self, PyObject *args);
PyObject *stream_remove(PyObject *self, PyObject *unused);
PyObject *stream_reduce(PyObject *self, PyObject *unused);
PyObject *stream_repr(PyObject *self);
int stream_traverse(PyObject *self, visitproc visit, void *arg);
int stream_clear(PyObject *self);
void stream_dealloc(PyObject *self);

/* --- take.c -------------------------------------------------------------- */

PyObject *stream_take(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *stream_latest(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *stream_loan(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* __next__(). */
PyObject *stream_next(PyObject *self);
/* _poll(): like __next__(), but returns None instead of waiting. */
PyObject *stream_poll(PyObject *self, PyObject *unused);
PyObject *stream_aiter(PyObject *self);
PyObject *stream_anext(PyObject *self);
PyObject *stream_end(PyObject *self, PyObject *unused);
PyObject *stream_join(PyObject *self, PyObject *unused);
PyObject *stream_leave(PyObject *self, PyObject *unused);
PyObject *stream_fd(PyObject *self, PyObject *unused);

/* --- stream_status.c ----------------------------------------------------- */

/* Returns a new WriterDied for the last death that a call of this stream reported, None if there
 * was none, or NULL with an exception. */
PyObject *stream_death(struct stream *stream);
PyObject *stream_status(PyObject *self, PyObject *unused);
/* wait_any(entries, timeout). */
PyObject *module_wait_any(PyObject *module, PyObject *args, PyObject *kwargs);
extern PyGetSetDef stream_getset[];

/* --- frame.c ------------------------------------------------------------- */

/* Makes the Frame of a hold, and takes over the reference, also if it fails. */
PyObject *frame_new(struct stream *stream, struct hold *hold, bool is_loaned);
/* __enter__() and __exit__(), which module.c adds as in special.h. */
PyObject *frame_enter(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *frame_exit(PyObject *self, PyObject *const *args, Py_ssize_t n);

#endif
