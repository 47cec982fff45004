/* SPDX-License-Identifier: Apache-2.0 */
/* The type Segment: the table of its methods, and their docstrings, which help() prints. */
#include "segment.h"

#include <stddef.h>

PyDoc_STRVAR(
    segment_doc,
    "An attached segment: a named region of shared memory. create() and attach() return\n"
    "it.\n\n"
    "    with shmview.attach(name) as seg:    closes it at the end of the block\n"
    "    with seg.locked():                   holds its lock exclusively\n"
    "    with seg.shared():                   holds its lock together with other readers\n\n"
    "The last two raise OwnerDied, and do not hold the lock, if the last owner died inside;\n"
    "use recover() then. close() detaches the segment, and so do the end of a with block\n"
    "and the end of the last reference. Views, buffers and tensors keep it attached: close()\n"
    "raises Busy while some exist, and after a with block the last of them detaches it. A pickled\n"
    "segment consists of the path of its daemon's socket, its name and its access; loading\n"
    "it attaches the segment.");

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS

#define WITH_TIMEOUT(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"close", segment_close, METH_NOARGS,
     "close()\n--\n\nDetaches the segment. Closing it again has no effect. A segment whose\n"
     "lifetime is 'attached' ends with its last attachment.\n\n"
     "Raises Busy, which is a BufferError, while views, buffers or tensors of the segment exist, "
     "or\n"
     "while a thread of this process holds its lock, freezes it or is in a call of it."},
    {"remove", segment_remove, METH_NOARGS,
     "remove()\n--\n\nRemoves the name at once. The memory is freed with the last attachment.\n\n"
     "Raises NotFound, Denied, Disconnected."},
    {"entrust", segment_entrust, METH_O,
     "entrust(pid, /)\n--\n\nTies the lifetime of the segment to process pid instead of to this\n"
     "client, so that the result of a worker outlives the worker. This client must have created\n"
     "the segment with lifetime='creator'. pid must be this process or an ancestor of it, and\n"
     "belong to the same user.\n\nRaises Denied, NotFound, Invalid, Disconnected."},
    {"populate", WITH_KEYWORDS(segment_populate),
     "populate(threads=1)\n--\n\nMaps every page now instead of at its first use, by that many\n"
     "threads at once, without the GIL. No byte changes.\n\nRaises MemoryError, and\n"
     "SystemCallFailed if another client has truncated the memory."},
    {"freeze", WITH_KEYWORDS(segment_freeze),
     "freeze(*, future=False)\n--\n\nMakes the bytes immutable for good: no process can change\n"
     "them any longer, and readers need no lock. The segment must have been created with\n"
     "backing='sealed'. Its access is 'read' afterwards, and views and arrays made of it are\n"
     "read-only. With future=True this process goes on writing, and no other can begin to.\n\n"
     "Raises Busy while views, buffers or tensors of the segment exist, and while another process\n"
     "may write to it, which the text names; ReadOnly, Invalid (not sealed, or a stream), Denied,\n"
     "Disconnected. While it runs, the segment counts as closed for other threads, which can only\n"
     "give back its lock, and whose close() raises Busy."},
    {"__reduce__", segment_reduce, METH_NOARGS, NULL},
    {"__enter__", segment_enter, METH_NOARGS,
     "Returns the segment. Raises ValueError if it is closed."},
    {"__exit__", segment_exit, METH_VARARGS,
     "Closes the segment. Views, buffers and tensors that still exist keep it attached; it ends\n"
     "with the last of them. Raises Busy while a thread of this process is in a call of it, or "
     "holds\n"
     "the lock through this object and no view or buffer is left; unless the block has raised. "
     "With\n"
     "views the lock stays held until unlock()."},
    {"locked", WITH_TIMEOUT(segment_locked),
     "locked(timeout=None)\n--\n\nReturns a Guard for 'with seg.locked():', which holds the lock\n"
     "exclusively. The block gets the segment. Entering the block waits for at most timeout "
     "seconds\n"
     "(None: as long as necessary), and raises what lock() raises.\n\n"
     "'async with seg.locked():' waits without blocking the event loop, and excludes the other "
     "tasks\n"
     "of the loop as well. Blocks of one task nest."},
    {"shared", WITH_TIMEOUT(segment_shared),
     "shared(timeout=None)\n--\n\nLike locked(), but holds the lock together with other readers.\n"
     "Entering the block raises what lock(shared=True) raises."},
    {"recover", WITH_TIMEOUT(segment_recover),
     "recover(timeout=None)\n--\n\nReturns a Guard for 'with seg.recover() as died:', which takes "
     "the\n"
     "lock exclusively, also if its last owner died inside. died is then an OwnerDied with the "
     "facts\n"
     "of the death; otherwise it is None. Repair the bytes in the block. If the block raises, the\n"
     "bytes count as not repaired, and the next owner gets OwnerDied again."},
    {"reading", segment_reading, METH_NOARGS,
     "reading()\n--\n\nReturns a Reading for 'with seg.reading() as r:', which reads without the\n"
     "lock and disturbs nobody. Others may write in the meantime: copy elements in the block, and\n"
     "follow no index or length among them. Use the copy only if r.valid is true afterwards.\n\n"
     "    with seg.reading() as r:\n"
     "        copy = view.tolist()\n"
     "    if not r.valid:              # somebody wrote, or has died inside: wait for the lock\n"
     "        with seg.shared():\n"
     "            copy = view.tolist()\n\n"
     "Does not wait. Entering the block raises NoLock, Lost."},
    {"lock", WITH_KEYWORDS(segment_lock),
     "lock(timeout=None, *, shared=False)\n--\n\n"
     "Takes the lock: exclusively, and recursively for this thread; or shared with other\n"
     "readers. Waits for at most timeout seconds (None: as long as necessary), without the GIL.\n"
     "Signal handlers run during the wait. A call that raises does not hold the lock.\n\n"
     "Raises OwnerDied (the last owner died inside: use recover()), TimedOut, Deadlock (this\n"
     "thread holds the lock shared and wants it exclusively), NoLock, Limit."},
    {"trylock", WITH_KEYWORDS(segment_trylock),
     "trylock(*, shared=False)\n--\n\n"
     "Takes the lock if that is possible without waiting. Returns whether it did.\n\n"
     "Raises OwnerDied, Deadlock, NoLock, Limit."},
    {"unlock", WITH_KEYWORDS(segment_unlock),
     "unlock(*, repaired=True)\n--\n\nGives back the lock that this thread took last.\n"
     "repaired=False means that the bytes are not in order: the next owner gets OwnerDied.\n\n"
     "Raises NotOwner, Lost, NoLock."},
    {"lock_status", segment_lock_status, METH_NOARGS,
     "lock_status()\n--\n\n"
     "Returns a LockStatus: the holders of the lock and the waiters. Does not take the lock.\n\n"
     "Raises NoLock."},
    {"cast", WITH_KEYWORDS(segment_cast),
     "cast(format, shape=None, *, offset=0, strides=None, suboffsets=None, readonly=False)\n--\n\n"
     "Returns a View of the segment's bytes from offset on, without a copy.\n\n"
     "format: the type of one element, as PEP 3118 and struct write it ('d', '<i',\n"
     "'T{i:a:d:b:}'); a name or typestr of numpy ('float32', 'f4') or a name of DLPack\n"
     "('bfloat16'); a dtype of numpy; or a type of ctypes. Only native formats ('d', '@h',\n"
     "'float32') must be aligned; with '<', '=', '>', '^' or a dtype, elements begin at any byte.\n"
     "shape: the lengths in elements. Without a shape, one dimension to the end of the segment.\n"
     "strides: the steps in bytes; negative ones and 0 are allowed. Without strides, C order.\n"
     "suboffsets: as in PEP 3118, except that the segment stores offsets and not addresses.\n"
     "readonly: whether elements cannot be set through this view.\n\n"
     "Raises FormatError, Misaligned, IllSized, Bounds, Overflow or Invalid. All are ValueErrors,\n"
     "and their texts name the dimension and the byte."},
    {"view", WITH_KEYWORDS(segment_view),
     "view(name, layout=None)\n--\n\n"
     "Opens the view called name of the named layout. Without a layout, uses the layout of the\n"
     "current phase; before the first phase, the only layout that has a view of this name. The\n"
     "view belongs to the current phase, and is stale after the next switch. seg[name] is\n"
     "seg.view(name).\n\n"
     "Raises NoLayout."},
    {"define", WITH_KEYWORDS(segment_define),
     "define(layouts=None, **more)\n\n"
     "Declares layouts, by keyword or in a dict. A layout is a named set of views that hold at\n"
     "the same time: a dict of views, a list of (name, format, shape, offset), or a structured\n"
     "dtype of numpy, whose fields are the views. A view is one of\n\n"
     "    'f4'                            one element\n"
     "    ('f4', 1000)  ('f4', (10, 10))  an array\n"
     "    ('f4', 1000, 64)                an array that begins at byte 64\n"
     "    {'format': 'f4', 'shape': (10, 10), 'strides': (4, 40), 'offset': 0, 'readonly': "
     "True}\n\n"
     "A view without an offset follows the view before it, at the next multiple of its\n"
     "element's alignment; the first view begins at byte 0. So layouts overlap, like the members\n"
     "of a union in C.\n\n"
     "Raises LayoutExists, ReadOnly, Limit, and the errors of cast(); the text names the view."},
    {"changed", WITH_KEYWORDS(segment_changed),
     "changed(seen=None)\n\n"
     "Returns an awaitable for asyncio, which waits until the counter of changes differs from\n"
     "seen, and returns the counter. Without seen, the counter at this call counts. Any number of\n"
     "tasks may wait, in the event loops of several threads.\n\n"
     "    seen = seg.change\n"
     "    while seg.phase != 'int':\n"
     "        seen = await seg.changed(seen)\n\n"
     "Raises NoLock, Limit, Disconnected; ValueError if the segment is closed during the wait."},
    {"switch", segment_switch, METH_O,
     "switch(layout, /)\n--\n\n"
     "Makes a layout current, which begins a new phase. Wakes all waiters; views of earlier\n"
     "phases become stale. The caller must hold the lock exclusively.\n\n"
     "Raises NotOwner, Lost, ReadOnly, NoLayout, NoLock."},
    {"wait", WITH_KEYWORDS(segment_wait),
     "wait(phase=None, *, generation=None, change=None, timeout=None)\n--\n\n"
     "With phase, generation or both: waits until the layout called phase is current (None: any\n"
     "layout), in a later generation than the given one, and returns the generation. Otherwise\n"
     "waits until the counter of changes differs from change, or from its value at this call, and\n"
     "returns the counter.\n\n"
     "Waits for at most timeout seconds (None: as long as necessary), without the GIL. Signal\n"
     "handlers run during the wait.\n\n"
     "Raises TimedOut, NoLayout (the layout is not declared), NoLock."},
    {"notify", WITH_KEYWORDS(segment_notify),
     "notify(*, one=False)\n--\n\n"
     "Increments the counter of changes, and wakes all waiters for a change; with one=True, only\n"
     "one of them.\n\n"
     "Raises NoLock."},
    {"set_access", WITH_KEYWORDS(segment_set_access),
     "set_access(*, mode=None, owner=None, group=None, entries=None)\n\n"
     "Changes who may use the segment; see shmview.set_access(). Attachments that exist stay."},
    {"_repr_html_", segment_html, METH_NOARGS,
     "_repr_html_()\n--\n\nReturns a picture of the segment's views as HTML, for notebooks. "
     "Sends a\nrequest to the daemon."},
    {"_change_fd", segment_change_fd, METH_NOARGS, NULL},
    {"_handle", segment_handle, METH_NOARGS, NULL},
    {"_define", segment_define_views, METH_VARARGS, NULL},
    {"_bind", segment_bind, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"name", segment_get_name, NULL, "The segment's name; it stays after close().", NULL},
    {"size", segment_get_size, NULL, "Its size in bytes.", NULL},
    {"access", segment_get_access, NULL,
     "The access of this attachment: 'peek' (see the bytes), 'read' (also take the lock) or\n"
     "'write' (also change the bytes).",
     NULL},
    {"frozen", segment_get_frozen, NULL,
     "Whether nobody can change the bytes any longer, according to the kernel when this process "
     "last\n"
     "attached or froze the segment. Once true, it stays true.",
     NULL},
    {"closed", segment_get_closed, NULL, "Whether close() was called.", NULL},
    {"mode", segment_get_right, NULL,
     "The rights of the owner, the group and all others: bits like those of a file. This and the\n"
     "next three each send a request to the daemon; set_access() changes them.",
     "mode"},
    {"owner", segment_get_right, NULL, "The uid of the user who is charged for it.", "owner"},
    {"group", segment_get_right, NULL, "The gid of its group.", "group"},
    {"entries", segment_get_right, NULL,
     "The rights of further users and groups: a dict such as {'user:alice': 'write'}.", "entries"},
    {"buf", segment_get_buf, NULL, "A new View of all bytes, with format 'B'.", NULL},
    {"layouts", segment_get_layouts, NULL,
     "All layouts of the segment, in the form that define() takes: a dict of layouts by name.\n"
     "Each is a dict of views by name, and each view a dict of 'format', 'shape', 'offset',\n"
     "'strides' and 'readonly', and of 'suboffsets' if it has some. Each access sends a request\n"
     "to the daemon.\n\nRaises NotFound if the name was removed; Disconnected.",
     NULL},
    {"phase", segment_get_phase, NULL,
     "The name of the current layout; None before the first phase.", NULL},
    {"generation", segment_get_generation, NULL,
     "The number of switches so far, 0 before the first phase. It wraps to 1.", NULL},
    {"change", segment_get_change, NULL,
     "The counter of changes. notify() and switch() increment it, and it wraps to 0.", NULL},
    {"placement", segment_get_placement, NULL,
     "What the segment got when it was created, as a dict: huge, huge_by ('hugetlb', 'thp'),\n"
     "huge_missing ('small', 'disabled', 'short', 'unsupported'), huge_bytes, numa, and the list\n"
     "nodes. Names are None, and nodes is empty, where its creator wanted nothing.",
     NULL},
    {"connection", segment_get_connection, NULL,
     "The Connection through which the segment was attached; None for memory of another object.",
     NULL},
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
    {Py_mp_subscript, segment_subscript},
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
