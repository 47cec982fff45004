/* SPDX-License-Identifier: Apache-2.0 */
/* A stream: creating, opening and closing it.
 *
 * Frames need the stream, so close() raises Busy while this process holds any. A with block instead
 * closes it early: its methods can no longer be called, and the last frame closes the handle. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "segment.h"
#include "view_specs.h"

/* --- Holds --------------------------------------------------------------- */

static void line_drop(struct line *line)
{
    if (__atomic_sub_fetch(&line->refs, 1, __ATOMIC_ACQ_REL))
        return;
    shmview_stream_close_later(line->handle);
    free(line);
}

struct hold *hold_new(struct line *line)
{
    struct hold *hold = calloc(1, sizeof *hold);
    if (!hold) {
        PyErr_NoMemory();
        return NULL;
    }
    hold->line = line;
    hold->refs = 1;
    __atomic_add_fetch(&line->refs, 1, __ATOMIC_RELAXED);
    return hold;
}

void hold_drop(struct hold *hold)
{
    if (__atomic_sub_fetch(&hold->refs, 1, __ATOMIC_ACQ_REL))
        return;
    shmview_frame_discard(&hold->frame);
    shmview_frame_release(&hold->frame);
    line_drop(hold->line);
    free(hold);
}

/* --- Calls --------------------------------------------------------------- */

/* Returns how many calls of this process use the handle without the GIL. */
static Py_ssize_t calls_of_stream(struct stream *stream)
{
    if (UNLIKELY(stream->forks != n_forks)) {
        stream->forks = n_forks;
        stream->n_calls = 0;
    }
    return COUNT(stream->n_calls);
}

void stream_call_begins(struct stream *stream)
{
    count_begins(&stream->n_calls, &stream->forks);
}

void stream_call_ends(struct stream *stream)
{
    count_ends(&stream->n_calls, &stream->forks);
}

/* --- Opening ------------------------------------------------------------- */

/* Finds the bytes that the views of slot 0 take. Returns 0 or an error. */
static int find_place(struct shmview_stream *handle, uint64_t *ret_place, uint64_t *ret_reach)
{
    struct shmview_segment *segment = shmview_stream_segment(handle);
    const unsigned char *data = shmview_data(segment);
    uint64_t place = UINT64_MAX, reach = 0;
    const char *name;
    for (size_t i = 0; (name = shmview_stream_view_name(handle, i)); i++) {
        struct shmview_view v;
        int r = shmview_view_open(segment, "frame", name, &v);
        if (r)
            return r;
        const unsigned char *low = v.data, *high = v.data + v.itemsize;
        for (uint32_t d = 0; d < v.ndim && v.nbytes; d++) {
            ptrdiff_t far = (v.shape[d] - 1) * v.strides[d];
            *(far < 0 ? &low : &high) += far;
        }
        uint64_t begin = (uint64_t)(low - data), end = v.nbytes ? (uint64_t)(high - data) : begin;
        place = begin < place ? begin : place;
        reach = end > reach ? end : reach;
    }
    *ret_place = place / 64 * 64;
    *ret_reach = reach;
    return 0;
}

/* Sets the names of the views and their numbers. Returns 0, or -1 with an exception. */
static int name_views(struct stream *self)
{
    struct shmview_stream *handle = self->line->handle;
    self->views = PyTuple_New((Py_ssize_t)self->info.n_views);
    self->numbers = self->views ? PyDict_New() : NULL;
    for (uint32_t i = 0; self->numbers && i < self->info.n_views; i++) {
        PyObject *name = PyUnicode_InternFromString(shmview_stream_view_name(handle, i));
        PyObject *number = name ? PyLong_FromUnsignedLong(i) : NULL;
        int r = number ? PyDict_SetItem(self->numbers, name, number) : -1;
        Py_XDECREF(number);
        if (name)
            PyTuple_SET_ITEM(self->views, (Py_ssize_t)i, name);
        if (r)
            return -1;
    }
    return self->numbers ? 0 : -1;
}

/* Fills a new Stream, which has its connection and takes over the handle. Returns 0, or -1 with an
 * exception. */
static int fill(struct stream *self, struct shmview_stream *handle)
{
    struct line *line = malloc(sizeof *line);
    if (!line) {
        shmview_stream_close_later(handle);
        PyErr_NoMemory();
        return -1;
    }
    *line = (struct line){handle, 1};
    self->line = line;
    COUNT_ADD(self->connection->n_attached, 1);
    struct shmview_segment *segment = shmview_stream_segment(handle);
    self->access = shmview_access(segment);
    self->forks = self->entered = n_forks;
    shmview_stream_info_get(handle, &self->info);
    int r;
    UNLOCKED_CALL(r, find_place(handle, &self->place, &self->reach));
    if (r) {
        raise_error(self->state, r, NULL);
        return -1;
    }
    self->name = self->info.stage ? PyUnicode_FromFormat("%s:%u", shmview_name(segment),
                                                         (unsigned)self->info.stage)
                                  : PyUnicode_FromString(shmview_name(segment));
    return self->name ? name_views(self) : -1;
}

/* Makes the Stream of a handle, which it takes over. Returns NULL with an exception. */
static PyObject *wrap_stream(struct state *state, struct connection *connection,
                             struct shmview_stream *handle)
{
    struct stream *self = (struct stream *)state->stream_type->tp_alloc(state->stream_type, 0);
    if (!self) {
        shmview_stream_close_later(handle);
        return NULL;
    }
    self->state = state;
    self->connection = (struct connection *)Py_NewRef((PyObject *)connection);
    if (fill(self, handle))
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *module_create_stream(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    const char *name, *lifetime, *backing_name;
    PyObject *views, *access_arg, *connection_arg;
    struct access access;
    struct view_specs parsed;
    int lossless, many_writers, placed, populate, r;
    unsigned slots, history, stages;
    if (!PyArg_ParseTuple(args, "sO!pIIIppspOOz:create_stream", &name, &PyTuple_Type, &views,
                          &lossless, &slots, &history, &stages, &many_writers, &placed, &lifetime,
                          &populate, &access_arg, &connection_arg, &backing_name) ||
        (access_arg != Py_None && access_parse(access_arg, &access)))
        return NULL;
    int backing = backing_called(backing_name);
    if (backing < 0)
        return NULL;
    struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .lifetime = (uint32_t)lifetime_called(lifetime),
        .backing = (uint32_t)backing,
        .flags = populate ? SHMVIEW_POPULATE : 0,
        .access = access_arg == Py_None ? NULL : &access.change,
    };
    if (!options.lifetime || view_specs_parse(views, &parsed))
        return NULL;
    struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = lossless ? SHMVIEW_LOSSLESS : SHMVIEW_LATEST,
        .n_slots = slots,
        .history = history,
        .n_stages = stages,
        .flags = (many_writers ? SHMVIEW_MANY_WRITERS : 0) | (placed ? SHMVIEW_PLACED : 0),
        .views = parsed.specs,
        .n_views = parsed.n,
        .options = &options,
    };
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    struct shmview_stream *stream = NULL;
    PyObject *made = NULL;
    if (handle) {
        CONNECTION_CALL(connection, r, shmview_stream_create(handle, name, &spec, &stream));
        if (r == 0)
            made = wrap_stream(state, connection, stream);
        else
            raise_error(state, r, "{s:s}", "name", name);
        if (r && stream) /* a signal handler has raised nevertheless */
            shmview_stream_close_later(stream);
    }
    view_specs_free(&parsed);
    Py_XDECREF((PyObject *)connection);
    return made;
}

PyObject *module_open_stream(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    const char *name, *access;
    PyObject *connection_arg;
    int r;
    if (!PyArg_ParseTuple(args, "ssO:open_stream", &name, &access, &connection_arg))
        return NULL;
    int chosen = access_called(access);
    struct connection *connection = chosen ? connection_take(state, connection_arg) : NULL;
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    struct shmview_stream *stream = NULL;
    PyObject *made = NULL;
    if (handle) {
        CONNECTION_CALL(connection, r, shmview_stream_open(handle, name, chosen, &stream));
        if (r == 0)
            made = wrap_stream(state, connection, stream);
        else
            raise_error(state, r, "{s:s,s:s}", "name", name, "access", access);
        if (r && stream)
            shmview_stream_close_later(stream);
    }
    Py_XDECREF((PyObject *)connection);
    return made;
}

/* --- Closing ------------------------------------------------------------- */

/* Raises Busy if a thread is in a call, or, unless is_early, if frames are held. Returns 0, or -1
 * with the exception. */
static int check_unused(struct stream *self, bool is_early)
{
    PyObject *text = NULL;
    int n = __atomic_load_n(&self->line->refs, __ATOMIC_ACQUIRE) - 1;
    if (calls_of_stream(self))
        text = PyUnicode_FromFormat("%zd threads are in calls of '%U'", self->n_calls, self->name);
    else if (n && !is_early)
        text = PyUnicode_FromFormat("%d frames of '%U', or arrays of them, are still held", n,
                                    self->name);
    else
        return 0;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8)
        raise_text(self->state, SHMVIEW_ERR_BUSY, utf8);
    Py_XDECREF(text);
    return -1;
}

/* Gives up the handle. Closing talks to no daemon, but it may detach memory, which takes a while.
 */
static void let_go(struct stream *self)
{
    struct line *line = self->line;
    self->line = NULL;
    if (!line)
        return;
    COUNT_ADD(self->connection->n_attached, -1);
    Py_BEGIN_ALLOW_THREADS
    line_drop(line);
    Py_END_ALLOW_THREADS
}

/* Closes the stream after watch_pause(). Returns 0, or -1 with an exception. */
static int close_paused(struct stream *self, bool is_early)
{
    if (!self->line) /* Python code ran in watch_pause(), and closed the stream */
        return 0;
    if (check_unused(self, is_early)) /* or took a frame */
        return -1;
    let_go(self);
    return 0;
}

/* A closed stream may have waits of asyncio, if a signal handler raised in the first close() before
 * they ended. */
static PyObject *close_stream(struct stream *self, bool is_early)
{
    if (self->line && check_unused(self, is_early))
        return NULL;
    PyObject *watch = self->watch;
    Py_XINCREF(watch);
    int r = self->line ? watch_pause(watch) : 0;
    r = watch_go_on(watch, (PyObject *)self, r ? r : close_paused(self, is_early));
    Py_XDECREF(watch);
    if (r)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *stream_close(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return close_stream((struct stream *)op, false);
}

PyObject *stream_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return stream_use((struct stream *)op) ? Py_NewRef(op) : NULL;
}

/* Stream.__exit__(): close(), except that frames do not prevent it. An exception of the block is
 * not replaced. */
PyObject *stream_exit(PyObject *op, PyObject *args)
{
    bool failed = PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None;
    PyObject *done = close_stream((struct stream *)op, true);
    if (done || !failed)
        return done;
    PyErr_Clear();
    Py_RETURN_NONE;
}

PyObject *stream_remove(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct stream *self = (struct stream *)op;
    struct shmview_stream *handle = stream_use(self);
    return handle ? remove_name(self->state, self->connection,
                                shmview_name(shmview_stream_segment(handle)))
                  : NULL;
}

int stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct stream *self = (struct stream *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT((PyObject *)self->connection);
    Py_VISIT(self->watch);
    return 0;
}

int stream_clear(PyObject *op)
{
    Py_CLEAR(((struct stream *)op)->watch);
    return 0;
}

void stream_dealloc(PyObject *op)
{
    struct stream *self = (struct stream *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    stream_clear(op);
    if (self->line) {
        COUNT_ADD(self->connection->n_attached, -1);
        line_drop(self->line);
    }
    Py_XDECREF((PyObject *)self->connection);
    Py_XDECREF(self->name);
    Py_XDECREF(self->views);
    Py_XDECREF(self->numbers);
    PyObject_Free(self->spare);
    type->tp_free(op);
    Py_DECREF(type);
}

/* --- As text ------------------------------------------------------------- */

static const char *access_text(const struct stream *self)
{
    return self->access == SHMVIEW_WRITE ? "write" : self->access == SHMVIEW_READ ? "read" : "peek";
}

PyObject *stream_repr(PyObject *op)
{
    struct stream *self = (struct stream *)op;
    return PyUnicode_FromFormat("<shmview.Stream '%U', %s, %u slots, %s%s>", self->name,
                                self->info.mode == SHMVIEW_LOSSLESS ? "lossless" : "latest",
                                (unsigned)self->info.n_slots, access_text(self),
                                self->line ? "" : ", closed");
}

/* Pickles the stream as the arguments of shmview._types.load_stream(). */
PyObject *stream_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct stream *self = (struct stream *)op;
    struct shmview_connection *connection =
        stream_use(self) ? connection_use(self->connection) : NULL;
    PyObject *load = connection ? PyObject_GetAttrString(self->state->types, "load_stream") : NULL;
    if (!load)
        return NULL;
    return Py_BuildValue("N(NOs)", load, PyUnicode_DecodeFSDefault(shmview_socket_path(connection)),
                         self->name, access_text(self));
}
