/* SPDX-License-Identifier: Apache-2.0 */
/* The type Segment: its methods and what help() says of them. */
#include "segment.h"

#include <stddef.h>

PyDoc_STRVAR(segment_doc,
             "A named region of shared memory, attached: create() and attach() make it.\n\n"
             "    with seg:            holds its lock, exclusively\n"
             "    with seg.shared():   holds it among other readers\n\n"
             "Both raise OwnerDied, and hold nothing, if the last holder died inside: then\n"
             "recover() is the way in. Views and buffers of a segment keep it attached. It is\n"
             "detached by close(), or when nobody refers to it any more. A pickled segment is\n"
             "its name: whoever loads it attaches the segment, with the same access.");

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"close", segment_close, METH_NOARGS,
     "close()\n--\n\nDetaches the segment; once more does no harm. A segment whose lifetime is\n"
     "'attached' goes with its last attachment.\n\n"
     "Raises Busy, a BufferError, while views, buffers or tensors of it are out, a thread of this\n"
     "process holds its lock, or is in a call of it."},
    {"remove", segment_remove, METH_NOARGS,
     "remove()\n--\n\nRemoves the name at once; the memory goes with the last attachment.\n\n"
     "Raises NotFound, Denied, Disconnected."},
    {"__reduce__", segment_reduce, METH_NOARGS, NULL},
    {"__enter__", segment_enter, METH_NOARGS,
     "Takes the lock exclusively, as lock() does without a timeout."},
    {"__exit__", (PyCFunction)(void (*)(void))segment_exit, METH_FASTCALL, NULL},
    {"shared", segment_shared, METH_NOARGS,
     "shared()\n--\n\nFor 'with seg.shared():', which holds the lock among other readers.\n\n"
     "Raises what lock(shared=True) raises."},
    {"recover", segment_recover, METH_NOARGS,
     "recover()\n--\n\nFor 'with seg.recover() as died:', which takes the lock exclusively, also "
     "from a\n"
     "holder that died inside: died is then an OwnerDied that tells who it was, else None.\n"
     "Repair the bytes in the block. If the block raises, they are not repaired, and the next\n"
     "one is told again."},
    {"lock", WITH_KEYWORDS(segment_lock),
     "lock(timeout=None, *, shared=False)\n--\n\n"
     "Takes the lock, exclusively and recursively for this thread, or shared with other\n"
     "readers. Waits for timeout seconds at most; the GIL is free meanwhile, and signal\n"
     "handlers run. What raises holds nothing.\n\n"
     "Raises OwnerDied (the last exclusive holder died inside: recover()), TimedOut, Deadlock\n"
     "(exclusively while this thread holds it shared), NoLock, Limit."},
    {"trylock", WITH_KEYWORDS(segment_trylock),
     "trylock(*, shared=False)\n--\n\n"
     "Takes the lock if nobody is in the way, and says whether it did.\n\n"
     "Raises OwnerDied, Deadlock, NoLock, Limit."},
    {"unlock", WITH_KEYWORDS(segment_unlock),
     "unlock(*, repaired=True)\n--\n\nGives back what this thread took last. repaired=False says\n"
     "that the bytes are not in order: the next one gets OwnerDied.\n\nRaises NotOwner, NoLock."},
    {"lock_status", segment_lock_status, METH_NOARGS,
     "lock_status()\n--\n\n"
     "Who holds the lock and who waits, as a LockStatus; takes nothing.\n\nRaises NoLock."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"name", segment_get_name, NULL, "The segment's name.", NULL},
    {"size", segment_get_size, NULL, "Its size in bytes.", NULL},
    {"access", segment_get_access, NULL,
     "What this attachment may do: 'peek' (see the bytes), 'read' (and lock), 'write'.", NULL},
    {"closed", segment_get_closed, NULL, "Whether close() was called.", NULL},
    {"connection", segment_get_connection, NULL, "The Connection it was attached through.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct segment, weakrefs), READONLY, NULL},
    {"_watch", T_OBJECT, offsetof(struct segment, watch), 0, NULL},
    {"_layouts", T_OBJECT, offsetof(struct segment, layouts), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)segment_doc},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, segment_dealloc},
    {Py_tp_traverse, segment_traverse},
    {Py_tp_clear, segment_clear},
    {Py_tp_repr, segment_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_bf_getbuffer, segment_getbuffer},
    {Py_bf_releasebuffer, segment_releasebuffer},
    {0, NULL},
};
PyType_Spec segment_spec = {
    .name = "shmview.Segment",
    .basicsize = sizeof(struct segment),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
