/* SPDX-License-Identifier: Apache-2.0 */
/* The type View: its methods and what help() says of them. */
#include <stddef.h>

#include "view.h"

PyDoc_STRVAR(
    view_doc,
    "A typed window on a segment, without a copy: Segment.view(), cast() and buf make it.\n\n"
    "    v[3]  v[1, 2]  v[-1]      one element, as Python has it; of a struct a tuple\n"
    "    v[2:5]  v[::2, 1]  v[...] a part, again a view\n"
    "    v['x']                    the field x of every struct\n"
    "    v[2:5] = ...              from numbers, from a buffer of the same shape (each element is\n"
    "                              converted, exactly or not at all), or all to one number\n\n"
    "Iterates over its first dimension. == compares the values, with any buffer. A view is a\n"
    "buffer (memoryview, numpy.asarray: no copy), and a tensor for from_dlpack(). It keeps its\n"
    "segment attached: close() of that raises Busy until the view is dropped or released. A view\n"
    "that was opened from a layout raises StaleViewError once another phase has begun; what\n"
    "was made of it before, an array of numpy's for example, cannot know.\n\n"
    "Nothing here takes the lock. A pickled view is its segment's name and its description.");

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"tolist", view_tolist, METH_NOARGS,
     "tolist()\n--\n\nThe elements in lists, one level for each dimension."},
    {"tobytes", WITH_KEYWORDS(view_tobytes),
     "tobytes(order='C')\n--\n\nA copy of the elements' bytes, last index fastest; 'F': first "
     "index\n"
     "fastest; 'A': as they lie, if they are contiguous."},
    {"hex", WITH_KEYWORDS(view_hex), "hex([sep[, bytes_per_sep]])\n\nThe bytes in hexadecimal."},
    {"cast", WITH_KEYWORDS(view_cast),
     "cast(format, shape=None)\n--\n\n"
     "The bytes of a C-contiguous view as elements of another format; the last dimension grows\n"
     "or shrinks. With shape, of that shape.\n\n"
     "Raises FormatError, IllSized, Misaligned, Invalid."},
    {"reshape", view_reshape, METH_VARARGS,
     "reshape(*shape)\n\nThe same number of elements in another shape, in C order. One length may "
     "be\n"
     "-1: what is left. Raises IllSized; Invalid where only a copy would do."},
    {"transpose", view_transpose, METH_VARARGS,
     "transpose(*axes)\n\nDimension d is the old one axes[d]; without axes, they are reversed."},
    {"broadcast", view_broadcast, METH_VARARGS,
     "broadcast(*shape)\n\nRepeats elements by strides of 0, by numpy's rule. Read-only."},
    {"field", view_field, METH_O,
     "field(name, /)\n--\n\nOne field of every struct. None is the only component of an element\n"
     "without names, as of '3f'. An array field adds its dimensions.\n\nRaises NotFound, "
     "Misaligned."},
    {"toreadonly", view_toreadonly, METH_NOARGS, "toreadonly()\n--\n\nThe same view, read-only."},
    {"fill", view_fill, METH_O,
     "fill(value, /)\n--\n\nSets every element. Raises ReadOnly, ConversionError."},
    {"summary", view_summary, METH_NOARGS,
     "summary()\n--\n\n"
     "Minimum, maximum and sum of real numbers, as a Summary; the GIL is free meanwhile.\n\n"
     "Raises ConversionError for what are no real numbers."},
    {"release", view_release, METH_NOARGS,
     "release()\n--\n\nLets go of the segment; the view cannot be used any more. If somebody may\n"
     "know its address (address, __array_interface__, numpy.frombuffer() and others that ask for\n"
     "plain bytes), the segment stays attached until the view object is gone as well.\n\n"
     "Raises BufferError while memoryviews and arrays of the view are out."},
    {"_description", view_description, METH_NOARGS, NULL},
    {"__enter__", view_enter, METH_NOARGS, NULL},
    {"__exit__", view_exit, METH_VARARGS, "Releases the view."},
    {"__reduce__", view_reduce, METH_NOARGS, NULL},
    {"__dlpack__", WITH_KEYWORDS(view_dlpack),
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A capsule with a tensor, versioned where max_version is (1, 0) or later. A read-only view\n"
     "needs that. The segment cannot be closed while the tensor lives.\n\n"
     "Raises BufferError where DLPack has no such type or device; for strides below 0, which only\n"
     "a copy helps with."},
    {"__dlpack_device__", view_dlpack_device, METH_NOARGS,
     "__dlpack_device__()\n--\n\n(1, 0): the CPU."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct view, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)view_doc},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_repr, view_repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_richcompare, view_richcompare},
    {Py_tp_iter, view_iter},
    {Py_tp_methods, methods},
    {Py_tp_getset, view_getset},
    {Py_tp_members, members},
    {Py_mp_length, view_length},
    {Py_mp_subscript, view_subscript},
    {Py_mp_ass_subscript, view_ass_subscript},
    {Py_sq_length, view_length},
    {Py_sq_item, view_item},
    {Py_bf_getbuffer, view_getbuffer},
    {0, NULL},
};
PyType_Spec view_spec = {
    .name = "shmview.View",
    .basicsize = sizeof(struct view),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
