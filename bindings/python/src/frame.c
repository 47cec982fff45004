/* SPDX-License-Identifier: Apache-2.0 */
/* A frame: its views, publishing and releasing it.
 *
 * A view, an array or a tensor of a frame keeps its slot. When a frame is released or published,
 * its views end, except those that have buffers, because the memory of an array must not change
 * under its owner. So the slot is free when the last of them is gone; and a frame that is published
 * while its writer has an array of it is kept (shmview_frame_publish_kept()). */
#include "frame.h"

#include "view.h"

PyObject *frame_new(struct stream *stream, struct hold *hold, bool is_loaned)
{
    PyTypeObject *type = stream->state->frame_type;
    struct frame *self = stream->spare;
    stream->spare = NULL;
    self = self ? (struct frame *)PyObject_Init((PyObject *)self, type)
                : PyObject_New(struct frame, type);
    if (!self) {
        hold_drop(hold);
        return NULL;
    }
    self->stream = (struct stream *)Py_NewRef((PyObject *)stream);
    self->hold = hold;
    self->memory = NULL;
    self->sequence = hold->frame.sequence;
    self->missed = hold->frame.missed;
    self->time_ns = hold->frame.time_ns;
    self->is_loaned = is_loaned;
    return (PyObject *)self;
}

/* --- Its end ------------------------------------------------------------- */

/* Releases the views that have no buffers, and gives up the memory of the frame. The other views
 * keep it. */
static void end_memory(struct frame *self)
{
    struct segment *memory = self->memory;
    self->memory = NULL;
    if (!memory)
        return;
    for (struct view *view = memory->frame_views, *later; view; view = later) {
        later = view->later;
        if (!COUNT(view->n_exports))
            Py_XDECREF(view_release((PyObject *)view, NULL));
    }
    Py_DECREF((PyObject *)memory);
}

/* Ends the frame: a loaned one is discarded, a taken one released. */
static void end(struct frame *self)
{
    struct hold *hold = self->hold;
    self->hold = NULL;
    end_memory(self);
    if (hold)
        hold_drop(hold);
}

void frame_dealloc(PyObject *op)
{
    struct frame *self = (struct frame *)op;
    PyTypeObject *type = Py_TYPE(op);
    struct stream *stream = self->stream;
    /* unlike end(), this leaves the views alone: they live on without the Frame */
    Py_XDECREF((PyObject *)self->memory);
    if (LIKELY(self->hold != NULL))
        hold_drop(self->hold);
    if (stream->spare)
        PyObject_Free(op);
    else
        stream->spare = self;
    Py_DECREF((PyObject *)stream);
    Py_DECREF(type);
}

/* Raises Busy if buffers, tensors or calls of the frame exist. Returns 0, or -1 with the error. */
static int check_unused(struct frame *self)
{
    struct segment *memory = self->memory;
    Py_ssize_t n = 0, n_views = 0;
    bool is_known = false;
    char text[160];
    if (!memory || !segment_mapped(memory))
        return 0;
    for (struct view *view = memory->frame_views; view; view = view->later) {
        n += COUNT(view->n_exports);
        n_views++;
        is_known |= view->address_is_known;
    }
    n += COUNT(memory->n_out) - n_views; /* buffers of the Segment itself */
    if (n) {
        PyOS_snprintf(text, sizeof text,
                      "%zd arrays or buffers of the frame are still out: drop them, or the Frame",
                      n);
        raise_text(self->stream->state, SHMVIEW_ERR_BUSY, text);
        return -1;
    }
    if (calls_of(memory)) {
        raise_text(self->stream->state, SHMVIEW_ERR_BUSY,
                   "another thread is in a call of the frame's segment");
        return -1;
    }
    if (!memory->handle) /* closed early; its views keep the memory */
        return 0;
    /* a view whose address is known keeps the memory until it ends itself */
    int r = is_known ? 0 : shmview_detach(memory->handle);
    if (r) {
        raise_error(self->stream->state, r, NULL);
        return -1;
    }
    if (!is_known)
        memory->handle = NULL;
    return 0;
}

struct shmview_frame *frame_use(struct frame *self)
{
    if (LIKELY(self->hold != NULL))
        return &self->hold->frame;
    PyErr_SetString(PyExc_ValueError, self->is_loaned ? "the frame was published or discarded"
                                                      : "the frame was released");
    return NULL;
}

struct shmview_frame *frame_use_loaned(struct frame *self)
{
    struct shmview_frame *frame = frame_use(self);
    if (frame && !self->is_loaned) {
        raise_text(self->stream->state, SHMVIEW_ERR_NOT_OWNER,
                   "the frame was taken: only a loaned one can be changed");
        return NULL;
    }
    return frame;
}

PyObject *frame_release(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct frame *self = (struct frame *)op;
    if (self->hold && check_unused(self))
        return NULL;
    end(self);
    Py_RETURN_NONE;
}

PyObject *frame_discard(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct frame *self = (struct frame *)op;
    if (self->hold && !frame_use_loaned(self))
        return NULL;
    end(self);
    Py_RETURN_NONE;
}

PyObject *frame_publish(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct frame *self = (struct frame *)op;
    struct shmview_frame *frame = frame_use_loaned(self);
    if (!frame)
        return NULL;
    struct hold *hold = self->hold;
    self->hold = NULL;
    end_memory(self);
    bool is_kept = __atomic_load_n(&hold->refs, __ATOMIC_ACQUIRE) > 1;
    int r = is_kept ? shmview_frame_publish_kept(frame) : shmview_frame_publish(frame);
    self->sequence = frame->sequence;
    self->time_ns = frame->time_ns;
    if (r)
        raise_error(self->stream->state, r, "{s:O}", "name", self->stream->name);
    hold_drop(hold);
    return r ? NULL : PyLong_FromUnsignedLongLong(self->sequence);
}

PyObject *frame_enter(PyObject *op, PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
    return frame_use((struct frame *)op) ? Py_NewRef(op) : NULL;
}

PyObject *frame_exit(PyObject *op, PyObject *const *args, Py_ssize_t n)
{
    struct frame *self = (struct frame *)op;
    bool failed = n > 0 && args[0] != Py_None;
    if (self->hold && self->is_loaned && !failed) {
        PyObject *number = frame_publish(op, NULL);
        if (!number)
            return NULL;
        Py_DECREF(number);
    }
    end(self);
    Py_RETURN_NONE;
}

/* --- Views --------------------------------------------------------------- */

static void drop(void *hold)
{
    hold_drop(hold);
}

/* Makes the Segment of the frame's bytes. Returns 0, or -1 with an exception. */
static int wrap_memory(struct frame *self)
{
    struct stream *stream = self->stream;
    struct hold *hold = self->hold;
    unsigned char *data = shmview_data(shmview_stream_segment(hold->line->handle));
    struct shmview_segment *handle;
    data += stream->place + hold->frame.slot * stream->info.frame_bytes;
    __atomic_add_fetch(&hold->refs, 1, __ATOMIC_RELAXED);
    int r = shmview_wrap(data, stream->reach - stream->place,
                         self->is_loaned ? 0 : SHMVIEW_WRAP_READ_ONLY, drop, hold, &handle);
    if (r) {
        hold_drop(hold);
        raise_error(stream->state, r, NULL);
        return -1;
    }
    struct segment *memory = (struct segment *)segment_wrap(stream->state, NULL, handle);
    if (!memory) {
        shmview_detach(handle);
        return -1;
    }
    memory->is_frame = true;
    Py_SETREF(memory->name, Py_NewRef(stream->name));
    Py_XDECREF((PyObject *)self->memory);
    self->memory = memory;
    return 0;
}

static PyObject *make_view(struct frame *self, size_t i)
{
    struct shmview_frame *frame = frame_use(self);
    struct shmview_view v;
    if (!frame)
        return NULL;
    int r = shmview_frame_view_at(frame, i, &v);
    if (r)
        return raise_error(self->stream->state, r, NULL);
    if ((!self->memory || !self->memory->handle) && wrap_memory(self))
        return NULL;
    v.segment = self->memory->handle;
    return view_new(self->memory, &v);
}

/* Returns the number of a view, or -1 with NoLayout. */
static Py_ssize_t number_of(struct frame *self, PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "frame['image'] is the view called image: not %.200s",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    PyObject *number = PyDict_GetItemWithError(self->stream->numbers, name);
    if (number)
        return PyLong_AsSsize_t(number);
    if (!PyErr_Occurred())
        raise_no_view(self->stream->state, name,
                      PyUnicode_FromFormat("stream '%U' has no view %R, but %R", self->stream->name,
                                           name, self->stream->views));
    return -1;
}

PyObject *frame_subscript(PyObject *op, PyObject *name)
{
    struct frame *self = (struct frame *)op;
    Py_ssize_t i = number_of(self, name);
    return i < 0 ? NULL : make_view(self, (size_t)i);
}

PyObject *frame_set_length(PyObject *op, PyObject *args)
{
    struct frame *self = (struct frame *)op;
    PyObject *name;
    unsigned long long length;
    struct shmview_frame *frame;
    PyObject *number, *index;
    if (!PyArg_ParseTuple(args, "OO:set_length", &name, &number))
        return NULL;
    Py_ssize_t i = number_of(self, name);
    if (i < 0 || !(index = PyNumber_Index(number)))
        return NULL;
    length = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "a length is a number of elements, not %R", number);
        return NULL;
    }
    if (!(frame = frame_use_loaned(self)))
        return NULL;
    int r = shmview_frame_set_length(frame, (size_t)i, length);
    if (r)
        return raise_error(self->stream->state, r, NULL);
    Py_RETURN_NONE;
}

PyObject *frame_pass_on(PyObject *op, PyObject *number)
{
    struct frame *self = (struct frame *)op;
    struct shmview_frame *frame = frame_use(self);
    unsigned long stage = frame ? PyLong_AsUnsignedLong(number) : 0;
    uint64_t sequence;
    if (!frame || PyErr_Occurred())
        return NULL;
    int r = shmview_frame_pass(frame, stage < UINT32_MAX ? (uint32_t)stage : UINT32_MAX, &sequence);
    if (r)
        return raise_error(self->stream->state, r, NULL);
    return PyLong_FromUnsignedLongLong(sequence);
}
