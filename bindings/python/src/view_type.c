/* SPDX-License-Identifier: Apache-2.0 */
/* The type View: the table of its methods, and their docstrings, which help() prints. */
#include <stddef.h>

#include "view.h"

PyDoc_STRVAR(
    view_doc,
    "A typed window on the bytes of a segment, without a copy. Segment.view(), cast() and buf\n"
    "return it.\n\n"
    "    v[3]  v[1, 2]  v[-1]      one element; a struct is a tuple\n"
    "    v[2:5]  v[::2, 1]  v[...] a part, which is a View again\n"
    "    v['x']                    the field x of every struct\n"
    "    v[2:5] = ...              sets elements: from numbers, from a buffer of the same shape,\n"
    "                              or all to one number. Floating-point elements take the\n"
    "                              nearest value; any other that does not fit is refused with\n"
    "                              ConversionError\n\n"
    "Iterating yields the entries of the first dimension. == compares values, with any buffer. A\n"
    "view is a buffer (memoryview and numpy.asarray make no copy), and a tensor for\n"
    "from_dlpack(). It keeps its segment attached: Segment.close() raises Busy until the view is\n"
    "dropped or released. A view that was opened from a layout raises StaleViewError after the\n"
    "next phase has begun. Objects made from it earlier, for example numpy arrays, cannot check\n"
    "that.\n\n"
    "No method takes the lock. A pickled view consists of its pickled segment and its\n"
    "description.");

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"tolist", view_tolist, METH_NOARGS,
     "tolist()\n--\n\nReturns the elements in nested lists, one level for each dimension."},
    {"tobytes", WITH_KEYWORDS(view_tobytes),
     "tobytes(order='C')\n--\n\nReturns a copy of the elements' bytes. order is 'C' (last index\n"
     "fastest), 'F' (first index fastest) or 'A' (as in memory for a contiguous view, else 'C')."},
    {"hex", WITH_KEYWORDS(view_hex),
     "hex([sep[, bytes_per_sep]])\n\nReturns the bytes in hexadecimal, like bytes.hex()."},
    {"cast", WITH_KEYWORDS(view_cast),
     "cast(format, shape=None)\n--\n\n"
     "Returns a View of the bytes as elements of another format. The view must be C-contiguous.\n"
     "The last dimension grows or shrinks; with shape, the result has that shape.\n\n"
     "Raises FormatError, IllSized, Misaligned, Invalid."},
    {"reshape", view_reshape, METH_VARARGS,
     "reshape(*shape)\n\nReturns a View of the same elements with another shape, in C order. One\n"
     "length may be -1, and is then computed.\n\n"
     "Raises IllSized if the numbers of elements differ; Invalid if only a copy could have the\n"
     "shape."},
    {"transpose", view_transpose, METH_VARARGS,
     "transpose(*axes)\n\nReturns a View whose dimension d is dimension axes[d] of this one.\n"
     "Without axes, the order of the dimensions is reversed."},
    {"broadcast", view_broadcast, METH_VARARGS,
     "broadcast(*shape)\n\nReturns a read-only View that repeats elements by strides of 0, by\n"
     "numpy's rule."},
    {"field", view_field, METH_O,
     "field(name, /)\n--\n\nReturns a View of one field of every struct. name=None selects the\n"
     "only part of an element without names, such as '3f'. An array field adds its dimensions.\n\n"
     "Raises NotFound."},
    {"toreadonly", view_toreadonly, METH_NOARGS,
     "toreadonly()\n--\n\nReturns a read-only View of the same elements."},
    {"fill", view_fill, METH_O,
     "fill(value, /)\n--\n\nSets every element to value.\n\nRaises ReadOnly, ConversionError."},
    {"summary", view_summary, METH_NOARGS,
     "summary()\n--\n\n"
     "Returns a Summary: minimum, maximum and sum of the elements. Releases the GIL.\n\n"
     "Raises ConversionError if the elements are not real numbers."},
    {"release", view_release, METH_NOARGS,
     "release()\n--\n\nReleases the segment; the view can then no longer be used. If another\n"
     "object may use the address of the view (address, __array_interface__, numpy.frombuffer()\n"
     "and other consumers of plain bytes), the segment stays attached until the View object ends.\n"
     "\n"
     "Raises BufferError while memoryviews or arrays of the view exist."},
    {"item", view_item_of, METH_VARARGS,
     "item(*index)\n--\n\nReturns one element. Without an index, the view must have only one.\n"
     "Raises TypeError, and the errors of view[...]."},
    {"index", view_index_of, METH_VARARGS,
     "index(value[, start[, stop]])\n\nReturns the index of the first item of the first\n"
     "dimension that equals value, between start and stop.\n\nRaises ValueError if there is none."},
    {"count", view_count_of, METH_O,
     "count(value, /)\n--\n\nReturns how many items of the first dimension equal value."},
    {"mpi", view_mpi, METH_NOARGS,
     "mpi()\n--\n\n"
     "Returns [buffer, 1, datatype], which mpi4py sends and receives without a copy:\n"
     "comm.Bcast(view.mpi()). The elements go in C order, whatever the strides; see\n"
     "shmview.mpi.Link.datatype().\n\n"
     "Raises ImportError without mpi4py or libshmview-mpi; NotContiguous for suboffsets; "
     "Overflow."},
    {"__array__", WITH_KEYWORDS(view_as_array),
     "__array__(dtype=None, copy=None)\n--\n\n"
     "Returns an array of numpy: the same memory, or a copy if copy is true or if the dtype or\n"
     "suboffsets need one.\n\nRaises ValueError if copy is False and a copy is needed; the errors "
     "of dtype."},
    {"__bytes__", view_bytes, METH_NOARGS, NULL},
    {"__complex__", view_complex, METH_NOARGS, NULL},
    {"_repr_html_", view_html, METH_NOARGS,
     "_repr_html_()\n--\n\nReturns repr() and a picture of the segment's views as HTML, for\n"
     "notebooks. Sends a request to the daemon."},
    {"_brief", view_brief, METH_NOARGS, NULL},
    {"__deepcopy__", view_deepcopy, METH_O, "Raises TypeError: a view is not copied by copy."},
    {"_description", view_description, METH_NOARGS, NULL},
    {"__enter__", view_enter, METH_NOARGS, NULL},
    {"__exit__", view_exit, METH_VARARGS, "Releases the view."},
    {"__reduce__", view_reduce, METH_NOARGS, NULL},
    {"__dlpack__", WITH_KEYWORDS(view_dlpack),
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "Returns a capsule with a tensor. The tensor has the versioned form if max_version is (1, 0)\n"
     "or later; a read-only view needs that form. The segment cannot be closed while the tensor\n"
     "exists.\n\n"
     "Raises BufferError if DLPack has no such type or device, and for negative strides, unless\n"
     "copy is true."},
    {"__dlpack_device__", view_dlpack_device, METH_NOARGS,
     "__dlpack_device__()\n--\n\nReturns (1, 0), which stands for the CPU."},
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
    {Py_nb_int, view_int},
    {Py_nb_float, view_float},
    {Py_nb_index, view_as_index},
    {Py_nb_bool, view_bool},
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
