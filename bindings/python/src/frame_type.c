/* SPDX-License-Identifier: Apache-2.0 */
/* The type Frame: its attributes, the table of its methods, and their docstrings, which help()
 * prints. */
#include <string.h>

#include "frame.h"

/* --- Attributes ---------------------------------------------------------- */

static PyObject *get_sequence(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(((struct frame *)op)->sequence);
}

static PyObject *get_missed(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(((struct frame *)op)->missed);
}

static PyObject *get_stream(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef((PyObject *)((struct frame *)op)->stream);
}

static PyObject *get_released(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!((struct frame *)op)->hold);
}

static PyObject *get_intact(PyObject *op, void *Py_UNUSED(closure))
{
    struct frame *self = (struct frame *)op;
    return PyBool_FromLong(self->hold &&
                           (self->is_loaned || shmview_frame_is_intact(&self->hold->frame)));
}

static PyObject *get_time(PyObject *op, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble((double)((struct frame *)op)->time_ns / 1e9);
}

static PyObject *get_time_ns(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(((struct frame *)op)->time_ns);
}

/* Raises TypeError for "del frame.user" and the like. */
static int refuse_deletion(PyObject *value)
{
    if (!value)
        PyErr_SetString(PyExc_TypeError, "the attributes of a frame cannot be deleted");
    return value ? 0 : -1;
}

static int set_time_to(struct frame *self, int64_t time_ns)
{
    struct shmview_frame *frame = frame_use_loaned(self);
    if (!frame)
        return -1;
    self->time_ns = frame->time_ns = time_ns;
    return 0;
}

static int set_time(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    double seconds = refuse_deletion(value) ? -1 : PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    if (!(seconds > -9e9 && seconds < 9e9)) {
        PyErr_Format(PyExc_ValueError, "a time is a number of seconds: %R", value);
        return -1;
    }
    return set_time_to((struct frame *)op, (int64_t)(seconds * 1e9));
}

static int set_time_ns(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    long long time_ns = refuse_deletion(value) ? -1 : PyLong_AsLongLong(value);
    return PyErr_Occurred() ? -1 : set_time_to((struct frame *)op, time_ns);
}

static PyObject *get_user(PyObject *op, void *Py_UNUSED(closure))
{
    const struct shmview_frame *frame = frame_use((struct frame *)op);
    return frame
               ? PyBytes_FromStringAndSize((const char *)frame->user, (Py_ssize_t)frame->user_bytes)
               : NULL;
}

static int set_user(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    struct frame *self = (struct frame *)op;
    Py_buffer buffer;
    int r = -1;
    if (refuse_deletion(value) || PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE))
        return -1;
    struct shmview_frame *frame = frame_use_loaned(self);
    if (frame && buffer.len > SHMVIEW_STREAM_USER_BYTES) {
        PyErr_Format(PyExc_ValueError, "%zd bytes for a frame's user, the limit is %u", buffer.len,
                     SHMVIEW_STREAM_USER_BYTES);
    } else if (frame) {
        memcpy(frame->user, buffer.buf, (size_t)buffer.len);
        frame->user_bytes = (uint32_t)buffer.len;
        r = 0;
    }
    PyBuffer_Release(&buffer);
    return r;
}

static PyObject *frame_repr(PyObject *op)
{
    const struct frame *self = (struct frame *)op;
    if (self->is_loaned && self->hold)
        return PyUnicode_FromFormat("<shmview.Frame of '%U', loaned>", self->stream->name);
    return PyUnicode_FromFormat("<shmview.Frame %llu of '%U'%s>",
                                (unsigned long long)self->sequence, self->stream->name,
                                self->hold         ? ""
                                : !self->is_loaned ? ", released"
                                : self->sequence   ? ", published"
                                                   : ", discarded");
}

/* --- The type ------------------------------------------------------------ */

PyDoc_STRVAR(
    frame_doc,
    "One frame of a stream, which Stream.loan() or take() returned. frame['image'] is a new "
    "View.\n\n"
    "    with stream.loan() as frame:         publishes it at the end of the block, and discards\n"
    "        frame['image'][:] = pixels       it if the block raises\n"
    "    with stream.take() as frame:         releases it at the end of the block\n"
    "        print(frame['image'].array.mean())\n\n"
    "A frame ends when it is published, discarded or released, or with its last reference. Its\n"
    "views end with it, but an array, a buffer or a tensor of a view keeps the slot until it is\n"
    "dropped, so that it never changes under its owner. So does a View while nobody has ended the\n"
    "frame explicitly. Of a frame that a parent process has taken, a forked child has only a copy\n"
    "that keeps nothing.");

static PyMethodDef methods[] = {
    {"publish", frame_publish, METH_NOARGS,
     "publish()\n--\n\nPublishes a loaned frame, and returns its sequence number. Readers see it "
     "as a\n"
     "whole. Do not write to arrays of it any longer.\n\n"
     "Raises NotOwner (it was taken), Lost; ValueError if it is over."},
    {"discard", frame_discard, METH_NOARGS,
     "discard()\n--\n\nGives a loaned slot back without publishing it. Has no effect on a frame "
     "that\nis over.\n\nRaises NotOwner (it was taken)."},
    {"release", frame_release, METH_NOARGS,
     "release()\n--\n\nReleases a taken frame, and ends its views. Has no effect on a frame that "
     "is\nover; a loaned one is discarded.\n\n"
     "Raises Busy, which is a BufferError, while arrays, buffers or tensors of the frame exist.\n"
     "The end of a with block does not: the slot is free when the last of them is dropped."},
    {"set_length", frame_set_length, METH_VARARGS,
     "set_length(name, n, /)\n--\n\nSets the length of a view of a loaned frame in its leading "
     "dimension, from 0 to\nthat of the stream. Views that exist keep theirs.\n\n"
     "Raises Bounds, NoLayout, NotOwner."},
    {"pass_on", frame_pass_on, METH_O,
     "pass_on(stage, /)\n--\n\nPublishes a taken frame in another stage of the stream, without a "
     "copy. Returns\nits sequence number there. The stream must be open with access='write'.\n\n"
     "Raises Exists (it is in that stage already), Invalid (no such stage), ReadOnly, Lost."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"sequence", get_sequence, NULL, "Its number in the stage, from 1; 0 while it is loaned.",
     NULL},
    {"missed", get_missed, NULL,
     "How many frames this reader has missed between the one before and this one.", NULL},
    {"time", get_time, set_time,
     "When it was published, in seconds on the clock of time.monotonic(). The writer may set\n"
     "another time while the frame is loaned.",
     NULL},
    {"time_ns", get_time_ns, set_time_ns, "The time in nanoseconds, as an int.", NULL},
    {"user", get_user, set_user,
     "Up to 64 bytes for the program's own use, which the writer may set.", NULL},
    {"stream", get_stream, NULL, "The Stream.", NULL},
    {"released", get_released, NULL, "Whether it was published, discarded or released.", NULL},
    {"intact", get_intact, NULL,
     "Whether nobody has overwritten the frame. A frame that is taken stays intact; with\n"
     "access='peek' look at this after copying what is needed.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)frame_doc},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, frame_dealloc},
    {Py_tp_repr, frame_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_mp_subscript, frame_subscript},
    {0, NULL},
};
PyType_Spec frame_spec = {
    .name = "shmview.Frame",
    .basicsize = sizeof(struct frame),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
