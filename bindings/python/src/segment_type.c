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
    {"entrust", segment_entrust, METH_O,
     "entrust(pid, /)\n--\n\nLets the segment, which this process created with lifetime='creator', "
     "go with another\n"
     "process: an ancestor of this one, of the same user. So a worker leaves its result to\n"
     "the process that waits for it.\n\nRaises Denied, NotFound, Invalid, Disconnected."},
    {"__reduce__", segment_reduce, METH_NOARGS, NULL},
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
     "that the bytes are not in order: the next one gets OwnerDied.\n\nRaises NotOwner, Lost, "
     "NoLock."},
    {"lock_status", segment_lock_status, METH_NOARGS,
     "lock_status()\n--\n\n"
     "Who holds the lock and who waits, as a LockStatus; takes nothing.\n\nRaises NoLock."},
    {"cast", WITH_KEYWORDS(segment_cast),
     "cast(format, shape=None, *, offset=0, strides=None, suboffsets=None, readonly=False)\n--\n\n"
     "The segment's bytes from offset on as a View, without a copy.\n\n"
     "format: of one element, as PEP 3118 and struct write it ('d', '<i', 'T{i:a:d:b:}'), numpy's\n"
     "names and typestrs ('float32', 'f4'), DLPack's ('bfloat16'); also a dtype of numpy's or a\n"
     "type of ctypes. shape: lengths in elements; without it, one dimension to the end.\n"
     "strides: steps in bytes, negative and zero allowed; without them, C order.\n"
     "suboffsets: as PEP 3118 has them, except that the segment holds offsets, not addresses.\n\n"
     "Raises FormatError, Misaligned, IllSized, Bounds, Overflow, Invalid; all of them are\n"
     "ValueErrors and name the dimension and the byte."},
    {"view", WITH_KEYWORDS(segment_view),
     "view(name, layout=None)\n--\n\n"
     "Opens the view called name of a layout: of that which is named, else of the current "
     "phase's,\n"
     "or, while there has been no phase, of the only one that has such a view. It belongs to the "
     "phase that is current now, and is stale afterwards.\n\nRaises NoLayout."},
    {"define", WITH_KEYWORDS(segment_define),
     "define(layouts=None, **more)\n\n"
     "Declares layouts: named sets of views that hold at the same time, by keyword or in a dict.\n"
     "A layout is a dict of views, a list of (name, format, shape, offset), or a structured dtype\n"
     "of numpy's, whose fields are the views. A view is\n\n"
     "    'f4'                            one element\n"
     "    ('f4', 1000)  ('f4', (10, 10))  an array\n"
     "    ('f4', 1000, 64)                that begins at byte 64\n"
     "    {'format': 'f4', 'shape': (10, 10), 'strides': (4, 40), 'offset': 0, 'readonly': "
     "True}\n\n"
     "What has no offset follows the view before it, aligned to its element; the first one\n"
     "begins at byte 0. So layouts overlap, like the arms of a union.\n\n"
     "Raises LayoutExists, ReadOnly, Limit, and what cast() raises; the text names the view."},
    {"changed", WITH_KEYWORDS(segment_changed),
     "changed(seen=None)\n\n"
     "To be awaited in asyncio: until the counter of changes is not seen, or not what it is now.\n"
     "Returns it. Any number of tasks, in event loops of any thread, may wait.\n\n"
     "    seen = seg.change\n"
     "    while seg.phase != 'int':\n"
     "        seen = await seg.changed(seen)\n\n"
     "Raises NoLock, Limit, Disconnected; ValueError if the segment is closed meanwhile."},
    {"switch", segment_switch, METH_O,
     "switch(layout, /)\n--\n\n"
     "Makes a layout the current phase, tells all who wait, and makes views of other phases\n"
     "stale. The caller holds the lock exclusively.\n\n"
     "Raises NotOwner, Lost, ReadOnly, NoLayout, NoLock."},
    {"wait", WITH_KEYWORDS(segment_wait),
     "wait(phase=None, *, generation=None, change=None, timeout=None)\n--\n\n"
     "Waits for a phase, for any phase after a generation (or both), and returns its generation;\n"
     "else until the counter of changes is not change, or not what it is now, and returns it.\n"
     "At most timeout seconds. The GIL is free meanwhile, and signal handlers run.\n\n"
     "Raises TimedOut, NoLayout (it is not declared), NoLock."},
    {"notify", WITH_KEYWORDS(segment_notify),
     "notify(*, one=False)\n--\n\n"
     "Adds one to the counter of changes and wakes all who wait for one, or only one of them.\n\n"
     "Raises NoLock."},
    {"_change_fd", segment_change_fd, METH_NOARGS, NULL},
    {"_handle", segment_handle, METH_NOARGS, NULL},
    {"_define", segment_define_views, METH_VARARGS, NULL},
    {"_bind", segment_bind, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"name", segment_get_name, NULL, "The segment's name.", NULL},
    {"size", segment_get_size, NULL, "Its size in bytes.", NULL},
    {"access", segment_get_access, NULL,
     "What this attachment may do: 'peek' (see the bytes), 'read' (and lock), 'write'.", NULL},
    {"closed", segment_get_closed, NULL, "Whether close() was called.", NULL},
    {"buf", segment_get_buf, NULL, "A View of all bytes, format 'B'.", NULL},
    {"layouts", segment_get_layouts, NULL,
     "The layouts that there are, as define() takes them: a dict of names, each with a dict of\n"
     "views, each a dict of 'format', 'shape', 'offset', 'strides' and 'readonly'. Asks the "
     "daemon\n"
     "anew each time. Raises NotFound where the name was removed; Disconnected.",
     NULL},
    {"phase", segment_get_phase, NULL, "The name of the layout that is current, or None.", NULL},
    {"generation", segment_get_generation, NULL, "How often the phase was switched; it wraps to 1.",
     NULL},
    {"change", segment_get_change, NULL,
     "The counter of changes, which notify() and switch() add to; it wraps.", NULL},
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
