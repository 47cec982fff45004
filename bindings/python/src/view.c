/* SPDX-License-Identifier: Apache-2.0 */
/* A view: how it is made and released, when it may be used, and its attributes. */
#include "view.h"

/* --- Life ---------------------------------------------------------------- */

PyObject *view_new(struct segment *segment, const struct shmview_view *v)
{
    PyTypeObject *type = segment->state->view_type;
    struct view *self = PyObject_New(struct view, type);
    if (!self)
        return NULL;
    self->segment = (struct segment *)Py_NewRef((PyObject *)segment);
    self->kept = NULL;
    self->weakrefs = NULL;
    self->components = NULL;
    self->n_exports = 0;
    self->address_is_known = false;
    self->v = *v;
    item_choose(self);
    COUNT_ADD(segment->n_out, 1);
    if (UNLIKELY(segment->is_frame)) {
        self->place = &segment->frame_views;
        self->later = segment->frame_views;
        if (self->later)
            self->later->place = &self->later;
        segment->frame_views = self;
    }
    return (PyObject *)self;
}

/* Drops a reference of a view to its segment; *its may be NULL. The pointer is cleared first,
 * because the end of the segment may run Python code. */
static void let_go(struct view *self, struct segment **its)
{
    struct segment *segment = *its;
    *its = NULL;
    if (segment) {
        if (UNLIKELY(segment->is_frame)) {
            *self->place = self->later;
            if (self->later)
                self->later->place = self->place;
        }
        segment_out_ends(segment);
        Py_DECREF((PyObject *)segment);
    }
}

void view_dealloc(PyObject *op)
{
    struct view *self = (struct view *)op;
    PyTypeObject *type = Py_TYPE(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    let_go(self, &self->segment);
    let_go(self, &self->kept);
    PyMem_Free(self->components);
    PyObject_Free(op);
    Py_DECREF(type);
}

PyObject *view_release(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (self->n_exports) {
        PyErr_Format(PyExc_BufferError, "%zd buffers of the view are still out", self->n_exports);
        return NULL;
    }
    if (self->address_is_known && self->segment) { /* the memory must stay until the dealloc */
        self->kept = self->segment;
        self->segment = NULL;
    }
    let_go(self, &self->segment);
    Py_RETURN_NONE;
}

PyObject *view_enter(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return view_check((struct view *)op) ? NULL : Py_NewRef(op);
}

PyObject *view_exit(PyObject *op, PyObject *Py_UNUSED(args))
{
    return view_release(op, NULL);
}

/* --- Whether it may be used ---------------------------------------------- */

PyObject *view_raise(struct view *view, int r)
{
    return raise_error(view->segment->state, r, NULL);
}

PyObject *view_raise_as_buffer_error(struct view *view, int r)
{
    return raise_as_buffer_error(view->segment->state, r);
}

int view_complain(struct view *view)
{
    char text[240];
    struct shmview_phase phase = {0};
    if (!view->segment) {
        PyErr_SetString(PyExc_ValueError, "the view was released");
        return -1;
    }
    if (!shmview_view_is_stale(&view->v))
        return 0;
    shmview_phase_read(segment_mapped(view->segment),
                       &phase); /* sends no request: the GIL is held */
    PyOS_snprintf(text, sizeof text,
                  "the view is of phase %u of '%.80s', which is in phase %u%s%.64s%s now",
                  view->v.generation, shmview_name(segment_mapped(view->segment)), phase.generation,
                  phase.name[0] ? " ('" : "", phase.name, phase.name[0] ? "')" : "");
    raise_text(view->segment->state, SHMVIEW_ERR_STALE, text);
    return -1;
}

int view_check_writable(struct view *view)
{
    if (UNLIKELY(view_check(view)))
        return -1;
    if (LIKELY(!(view->v.flags & SHMVIEW_VIEW_READ_ONLY)))
        return 0;
    raise_text(view->segment->state, SHMVIEW_ERR_READ_ONLY, "the view is read-only");
    return -1;
}

/* --- Numbers ------------------------------------------------------------- */

PyObject *view_tuple(const ptrdiff_t *numbers, uint32_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (uint32_t d = 0; tuple && d < n; d++) {
        PyObject *number = PyLong_FromSsize_t(numbers[d]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)d, number);
    }
    return tuple;
}

static int parse_number(PyObject *object, int64_t *ret)
{
    *ret = PyLong_AsLongLong(object);
    return *ret == -1 && PyErr_Occurred() ? -1 : 0;
}

int parse_numbers(const char *what, PyObject *sequence, int64_t *ret)
{
    if (PyIndex_Check(sequence)) {
        PyObject *index = PyNumber_Index(sequence);
        int r = index ? parse_number(index, &ret[0]) : -1;
        Py_XDECREF(index);
        /* A view or an array of numpy has __index__, and refuses it unless it is one number. */
        if (index || !PyErr_ExceptionMatches(PyExc_TypeError) || !PySequence_Check(sequence))
            return r ? r : 1;
        PyErr_Clear();
    }
    PyObject *tuple = PySequence_Tuple(sequence);
    if (!tuple)
        return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (n > SHMVIEW_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "%s: %zd dimensions, the limit is %d", what, n,
                     SHMVIEW_MAX_NDIM);
        n = -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *index = PyNumber_Index(PyTuple_GET_ITEM(tuple, i));
        int r = index ? parse_number(index, &ret[i]) : -1;
        Py_XDECREF(index);
        if (r)
            n = -1;
    }
    Py_DECREF(tuple);
    return (int)n;
}

/* --- Attributes ---------------------------------------------------------- */

PyObject *view_brief(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (!self->segment)
        return PyUnicode_FromString("<shmview.View, released>");
    COUNT_ADD(self->n_exports, 1); /* a new tuple may start the garbage collector */
    PyObject *shape = view_tuple(self->v.shape, self->v.ndim);
    PyObject *whose = shape ? segment_whose(self->segment) : NULL;
    PyObject *said =
        whose ? PyUnicode_FromFormat("<shmview.View of %U, format '%s', shape %R%s%s>", whose,
                                     self->v.format, shape,
                                     self->v.flags & SHMVIEW_VIEW_READ_ONLY ? ", read-only" : "",
                                     shmview_view_is_stale(&self->v) ? ", stale" : "")
              : NULL;
    COUNT_ADD(self->n_exports, -1);
    Py_XDECREF(whose);
    Py_XDECREF(shape);
    return said;
}

PyObject *view_get_none(PyObject *op, void *Py_UNUSED(closure))
{
    struct view *self = (struct view *)op;
    if (!self->segment) {
        view_complain(self);
        return NULL;
    }
    struct shmview_view v = self->v;
    v.ndim = 1;
    v.shape[0] = 0;
    v.strides[0] = v.itemsize;
    v.nbytes = 0;
    v.flags &= ~(uint32_t)SHMVIEW_VIEW_INDIRECT;
    v.layout = UINT32_MAX;
    return view_new(self->segment, &v);
}

static ptrdiff_t offset_of(const struct view *self)
{
    return self->v.data - (unsigned char *)shmview_data(segment_mapped(self->segment));
}

/* Does the rest of view_reduce(), which prevents the release of the view. */
static PyObject *reduce(const struct view *self)
{
    const struct shmview_view *v = &self->v;
    PyObject *load = PyObject_GetAttrString(self->segment->state->types, "load_view");
    if (!load)
        return NULL;
    PyObject *suboffsets =
        view_is_direct(self) ? Py_NewRef(Py_None) : view_tuple(v->suboffsets, v->ndim);
    PyObject *phase = v->layout == UINT32_MAX ? Py_NewRef(Py_None)
                                              : Py_BuildValue("II", v->layout, v->generation);
    return Py_BuildValue("N(OsnNNNNN)", load, self->segment, v->format, (Py_ssize_t)offset_of(self),
                         view_tuple(v->shape, v->ndim), view_tuple(v->strides, v->ndim), suboffsets,
                         PyBool_FromLong(v->flags & SHMVIEW_VIEW_READ_ONLY), phase);
}

/* Pickles the view as the arguments of shmview._types.load_view(): its segment, which pickles
 * itself, and its description. */
PyObject *view_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1); /* new tuples may start the garbage collector */
    PyObject *reduced = reduce(self);
    COUNT_ADD(self->n_exports, -1);
    return reduced;
}

/* _description(): a capsule that points to v, for view_of() in shmview.pxd. The caller must keep
 * the View, because the capsule does not. */
PyObject *view_description(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct view *self = (struct view *)op;
    if (view_check(self))
        return NULL;
    self->address_is_known = true;
    return PyCapsule_New(&self->v, "shmview.view", NULL);
}

/* Defines a getter. Attributes of a stale view can be read, those of a released one cannot. */
#define GETTER(name, value)                                                                        \
    static PyObject *get_##name(PyObject *op, void *Py_UNUSED(closure))                            \
    {                                                                                              \
        struct view *self = (struct view *)op;                                                     \
        if (!self->segment) {                                                                      \
            view_complain(self);                                                                   \
            return NULL;                                                                           \
        }                                                                                          \
        return value;                                                                              \
    }

static PyObject *address_of(struct view *self)
{
    self->address_is_known = true;
    return PyLong_FromVoidPtr(self->v.data);
}

static PyObject *suboffsets_of(const struct view *self)
{
    return view_is_direct(self) ? PyTuple_New(0) : view_tuple(self->v.suboffsets, self->v.ndim);
}

static PyObject *generation_of(const struct view *self)
{
    if (self->v.layout == UINT32_MAX)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(self->v.generation);
}

static unsigned long long size_of(const struct view *self)
{
    unsigned long long n = 1;
    for (uint32_t d = 0; d < self->v.ndim; d++)
        n *= (unsigned long long)self->v.shape[d];
    return n;
}

GETTER(format, PyUnicode_FromString(self->v.format))
GETTER(itemsize, PyLong_FromUnsignedLong(self->v.itemsize))
GETTER(nbytes, PyLong_FromUnsignedLongLong(self->v.nbytes))
GETTER(ndim, PyLong_FromUnsignedLong(self->v.ndim))
GETTER(size, PyLong_FromUnsignedLongLong(size_of(self)))
GETTER(shape, view_tuple(self->v.shape, self->v.ndim))
GETTER(strides, view_tuple(self->v.strides, self->v.ndim))
GETTER(suboffsets, suboffsets_of(self))
GETTER(readonly, PyBool_FromLong(self->v.flags &SHMVIEW_VIEW_READ_ONLY))
GETTER(c_contiguous, PyBool_FromLong(shmview_view_is_contiguous(&self->v, 'C')))
GETTER(f_contiguous, PyBool_FromLong(shmview_view_is_contiguous(&self->v, 'F')))
GETTER(contiguous, PyBool_FromLong(shmview_view_is_contiguous(&self->v, 'A')))
GETTER(segment, Py_NewRef((PyObject *)self->segment))
GETTER(offset, PyLong_FromSsize_t(offset_of(self)))
GETTER(address, address_of(self))
GETTER(generation, generation_of(self))
GETTER(stale, PyBool_FromLong(shmview_view_is_stale(&self->v)))

PyGetSetDef view_getset[] = {
    {"format", get_format, NULL, "The canonical format of one element, as PEP 3118 writes it.",
     NULL},
    {"itemsize", get_itemsize, NULL, "The bytes of one element.", NULL},
    {"nbytes", get_nbytes, NULL, "The bytes of all elements: the product of shape, times itemsize.",
     NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions, 0 to 8.", NULL},
    {"size", get_size, NULL, "The number of elements.", NULL},
    {"shape", get_shape, NULL, "The lengths of the dimensions, in elements.", NULL},
    {"strides", get_strides, NULL, "The bytes from one element to the next in each dimension.",
     NULL},
    {"suboffsets", get_suboffsets, NULL,
     "The suboffsets in bytes, for a view of rows whose offsets are stored in the segment;\n"
     "otherwise an empty tuple.",
     NULL},
    {"readonly", get_readonly, NULL, "Whether elements cannot be set through this view.", NULL},
    {"c_contiguous", get_c_contiguous, NULL,
     "Whether the elements follow each other without gaps, last index fastest.", NULL},
    {"f_contiguous", get_f_contiguous, NULL,
     "Whether the elements follow each other without gaps, first index fastest.", NULL},
    {"contiguous", get_contiguous, NULL, "Whether c_contiguous or f_contiguous is true.", NULL},
    {"segment", get_segment, NULL, "The Segment whose bytes the view shows.", NULL},
    {"obj", get_segment, NULL, "Like segment; memoryview has this name for it.", NULL},
    {"offset", get_offset, NULL, "The byte of the segment at which element [0, ..., 0] begins.",
     NULL},
    {"address", get_address, NULL,
     "The address of element [0, ..., 0] in this process, for a C library. It is valid as long\n"
     "as the View object exists.",
     NULL},
    {"generation", get_generation, NULL,
     "The generation of the phase in which the view was opened; None for a view that belongs to\n"
     "no layout.",
     NULL},
    {"stale", get_stale, NULL, "Whether the view belongs to another phase than the current one.",
     NULL},
    {"array", view_get_array, NULL,
     "numpy.asarray(view): an array of numpy that is the same memory. Raises ImportError without\n"
     "numpy; TypeError for elements that numpy has no dtype for, and for suboffsets, which it\n"
     "cannot represent.",
     NULL},
    {"dtype", view_get_dtype, NULL,
     "The dtype of numpy for one element. Raises ImportError without numpy; TypeError if numpy\n"
     "has none: for bfloat16 and float8 without ml_dtypes, addresses ('P') and Pascal strings.",
     NULL},
    {"_none", view_get_none, NULL, NULL, NULL},
    {"__arrow_c_array__", view_get_arrow, NULL,
     "A method for Arrow, which pyarrow and polars call: returns a schema and an array, in\n"
     "capsules. A view without gaps is not copied. AttributeError for more than one dimension, and "
     "for\n"
     "elements that are no numbers of the machine's byte order and no strings of fixed length.",
     NULL},
    {"T", view_get_T, NULL, "The view with its dimensions reversed.", NULL},
    {"__array_interface__", view_get_array_interface, NULL, "numpy's array protocol, version 3.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
