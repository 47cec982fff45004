/* SPDX-License-Identifier: Apache-2.0 */
/* The type Stream: the table of its methods, and their docstrings, which help() prints. */
#include <stddef.h>

#include "stream.h"

PyDoc_STRVAR(
    stream_doc,
    "An open stream: frames from process to process, without a copy. create_stream() and\n"
    "open_stream() return it.\n\n"
    "    with stream.loan() as frame:         a writer: publishes at the end of the block\n"
    "        frame['image'][:] = pixels\n"
    "    for frame in stream:                 a reader: each frame in order\n"
    "        print(frame['image'].array.mean())\n"
    "    async for frame in stream:           the same in an event loop\n"
    "    with stream.latest() as frame:       the newest frame\n\n"
    "A 'for' joins the stage at its first frame, and ends at the end of the stage. It raises\n"
    "WriterDied once for each death of a writer; begin another 'for' to go on. In a stream with\n"
    "one writer it comes after the frames that this writer has published. Threads may share a\n"
    "Stream: each frame goes to one of them. A forked child joins anew by its first call. A\n"
    "pickled stream is the path of its daemon's socket, its name and its access. close() closes\n"
    "it, and so do the end of a with block and the end of the last reference.");

#define WITH_TIMEOUT(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"loan", WITH_TIMEOUT(stream_loan),
     "loan(timeout=None)\n--\n\nLoans a free slot, and returns the Frame. Its views have the bytes "
     "of an earlier\n"
     "frame. Waits for at most timeout seconds (None: as long as necessary), without the GIL: in\n"
     "a lossless stream for the slowest reader, in any stream while all slots are held or loaned.\n"
     "Signal handlers run during the wait.\n\n"
     "Raises TimedOut (the text names the processes that are in the way), Busy (another process\n"
     "writes the stream; raised after 0.2 s, because that one may have been killed a moment ago),\n"
     "ReadOnly, Invalid (a later stage gets its frames by pass_on()), Lost."},
    {"take", WITH_TIMEOUT(stream_take),
     "take(timeout=None)\n--\n\nTakes the next frame in order, and returns the Frame. Waits for at "
     "most timeout\n"
     "seconds (None: as long as necessary), without the GIL. Signal handlers run during the wait.\n"
     "The first call joins the stage.\n\n"
     "Raises TimedOut, WriterDied (once for each death), StreamEnded (a writer has called end(),\n"
     "and all frames are taken), LayoutVersion (the stream is damaged), Invalid (another thread\n"
     "has called leave() during the call), Lost."},
    {"latest", WITH_TIMEOUT(stream_latest),
     "latest(timeout=None)\n--\n\nLike take(), but takes the newest frame, and skips those before "
     "it. Waits for a\n"
     "frame that this Stream has not taken yet."},
    {"end", stream_end, METH_NOARGS,
     "end()\n--\n\nMarks the end of the stage: readers that have taken the last frame end. A frame "
     "that\n"
     "is published later begins the stage again.\n\nRaises ReadOnly, Busy, Lost."},
    {"join", stream_join, METH_NOARGS,
     "join()\n--\n\nJoins the stage as a reader: it gets the frames that are published from now "
     "on, and\n"
     "the history before unless it has left earlier. The first take() or iteration does it as "
     "well.\n\nRaises Lost."},
    {"leave", stream_leave, METH_NOARGS,
     "leave()\n--\n\nLeaves the stage: writers do not wait for this reader any longer. Frames that "
     "it has\n"
     "taken stay its own. A take of another thread or task that waits raises Invalid."},
    {"status", stream_status, METH_NOARGS,
     "status()\n--\n\nReturns a StreamStatus: its slots and readers, without disturbing them. "
     "With\n"
     "access='peek' the readers are not seen.\n\nRaises Lost."},
    {"close", stream_close, METH_NOARGS,
     "close()\n--\n\nCloses the stream. Closing it again has no effect.\n\n"
     "Raises Busy, which is a BufferError, while frames of it, or arrays of such frames, exist, "
     "or\n"
     "while a thread of this process is in a call of it."},
    {"remove", stream_remove, METH_NOARGS,
     "remove()\n--\n\nRemoves the name at once. The memory is freed when the last process closes "
     "the\nstream.\n\nRaises NotFound, Denied, Disconnected."},
    {"fileno", stream_fd, METH_NOARGS,
     "fileno()\n--\n\nReturns a descriptor for an event loop of another kind, which becomes "
     "readable when a\n"
     "frame is published, or when a slot may be free. Read from it until it would block, and then\n"
     "call take(0) or loan(0) until it raises TimedOut.\n\n"
     "Raises NoLock (access='peek'), Disconnected."},
    {"_change_fd", stream_fd, METH_NOARGS, NULL},
    {"_poll", stream_poll, METH_NOARGS, NULL},
    {"__enter__", stream_enter, METH_NOARGS,
     "Returns the stream. Raises ValueError if it is closed."},
    {"__exit__", stream_exit, METH_VARARGS,
     "Closes the stream. Frames that still exist keep it; it ends with the last of them."},
    {"__reduce__", stream_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct stream, weakrefs), READONLY, NULL},
    {"_watch", T_OBJECT, offsetof(struct stream, watch), 0, NULL},
    {"_n_left", T_UINT, offsetof(struct stream, n_left), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)stream_doc},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_clear, stream_clear},
    {Py_tp_repr, stream_repr},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, stream_getset},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, stream_next},
    {Py_am_aiter, stream_aiter},
    {Py_am_anext, stream_anext},
    {0, NULL},
};
PyType_Spec stream_spec = {
    .name = "shmview.Stream",
    .basicsize = sizeof(struct stream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
