/* SPDX-License-Identifier: Apache-2.0 */
/* Makes views of a segment: from any bytes (cast, buf), or from a layout (view, define).
 *
 * A conversion of an argument may run Python code, which may close the segment. So each function
 * first converts its arguments and then calls segment_use(). */
#include <string.h>

#include "segment.h"
#include "view.h"
#include "view_specs.h"

/* Names without a size mean types of Python or of C, as they do for numpy. */
static bool is_name_of_numpy(const char *text)
{
    static const char *const names[] = {"float", "int", "uint", "complex", "double", "single"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

PyObject *format_text(struct state *state, PyObject *format)
{
    if (PyUnicode_CheckExact(format)) {
        /* Names of numpy need Python code: short ones ("f4"), which are a letter and digits and no
         * format of struct, and names without a size. libshmview parses every other text itself. */
        const char *text = PyUnicode_AsUTF8(format);
        if (!text)
            return NULL;
        bool is_short = text[0] != '\0' && text[1] >= '0' && text[1] <= '9';
        if (!is_short && !is_name_of_numpy(text))
            return Py_NewRef(format);
    }
    return PyObject_CallFunctionObjArgs(state->format_text, format, NULL);
}

/* Makes a view from a description. Returns NULL with an exception that has the format as a fact. */
static PyObject *make(struct segment *self, const struct shmview_view_spec *spec)
{
    struct shmview_segment *handle = segment_use(self);
    struct shmview_view v;
    if (!handle)
        return NULL;
    int r = shmview_view_make(handle, spec, &v);
    return r ? raise_error(self->state, r, "{s:s}", "format", spec->format) : view_new(self, &v);
}

/* Like parse_numbers(), but the argument may be None. Returns how many numbers there are; -1 for
 * None; or -2 with an exception. */
static int parse_optional(const char *what, PyObject *argument, int64_t *ret)
{
    if (argument == Py_None)
        return -1;
    int n = parse_numbers(what, argument, ret);
    return n < 0 ? -2 : n;
}

/* Makes a view of one dimension of all bytes from offset on. They must divide into elements. */
static PyObject *cast_rest(struct segment *self, const char *format, uint64_t offset, bool readonly)
{
    struct shmview_segment *handle = segment_use(self);
    struct shmview_view v;
    if (!handle)
        return NULL;
    int r = shmview_view_cast(handle, format, offset, SHMVIEW_REST, &v);
    if (r)
        return raise_error(self->state, r, "{s:s}", "format", format);
    if (readonly)
        v.flags |= SHMVIEW_VIEW_READ_ONLY;
    return view_new(self, &v);
}

/* Makes the view for Segment.cast(), whose last three arguments may be None. */
static PyObject *cast(struct segment *self, const char *format, uint64_t offset, bool readonly,
                      PyObject *shape_arg, PyObject *strides_arg, PyObject *suboffsets_arg)
{
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
    int n = parse_optional("shape", shape_arg, shape);
    int n_strides = parse_optional("strides", strides_arg, strides);
    int n_suboffsets = parse_optional("suboffsets", suboffsets_arg, suboffsets);
    if (n == -2 || n_strides == -2 || n_suboffsets == -2)
        return NULL;
    if (n == -1 && n_strides == -1 && n_suboffsets == -1)
        return cast_rest(self, format, offset, readonly);
    if ((n_strides != -1 && n_strides != n) || (n_suboffsets != -1 && n_suboffsets != n)) {
        PyErr_SetString(
            PyExc_ValueError,
            "strides and suboffsets need a shape, and one number for each of its lengths");
        return NULL;
    }
    struct shmview_view_spec spec = {
        .format = format,
        .offset = offset,
        .ndim = (uint32_t)n,
        .flags = readonly ? SHMVIEW_VIEW_READ_ONLY : 0,
        .shape = shape,
        .strides = n_strides == -1 ? NULL : strides,
        .suboffsets = n_suboffsets == -1 ? NULL : suboffsets,
    };
    return make(self, &spec);
}

PyObject *segment_cast(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"format",     "shape",    "offset", "strides",
                               "suboffsets", "readonly", NULL};
    struct segment *self = (struct segment *)op;
    PyObject *format = NULL, *shape = Py_None, *strides = Py_None, *suboffsets = Py_None;
    Py_ssize_t offset = 0;
    int readonly = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$nOOp:cast", keywords, &format, &shape,
                                     &offset, &strides, &suboffsets, &readonly))
        return NULL;
    if (offset < 0) {
        PyErr_Format(PyExc_ValueError, "offset is a byte of the segment, not %zd", offset);
        return NULL;
    }
    PyObject *text = format_text(self->state, format);
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    PyObject *view =
        utf8 ? cast(self, utf8, (uint64_t)offset, readonly, shape, strides, suboffsets) : NULL;
    Py_XDECREF(text);
    return view;
}

PyObject *segment_get_buf(PyObject *op, void *Py_UNUSED(closure))
{
    return cast_rest((struct segment *)op, "B", 0, false);
}

/* --- Layouts ------------------------------------------------------------- */

/* Finds the only layout that has the view. Looks at the layouts that were declared through this
 * object, which needs no request; only if none of them has the view, at all that the daemon knows.
 * Returns a new str, or NULL with an exception if there is no such layout or more than one. */
static PyObject *layout_with(struct segment *self, PyObject *view)
{
    PyObject *names = self->layouts ? PyDict_GetItemWithError(self->layouts, view) : NULL;
    if (!names && PyErr_Occurred())
        return NULL;
    names = names ? Py_NewRef(names) : layouts_with(self, view);
    PyObject *found = NULL;
    Py_ssize_t n = names ? PyList_GET_SIZE(names) : 1;
    if (names && n == 1)
        found = Py_NewRef(PyList_GET_ITEM(names, 0));
    else if (n == 0)
        raise_no_view(self->state, view,
                      PyUnicode_FromFormat("no layout has a view %R; see Segment.layouts", view));
    else if (names)
        raise_no_view(self->state, view,
                      PyUnicode_FromFormat("no phase is current, and %zd layouts have a view %R, "
                                           "%R: use view(%R, layout=...)",
                                           n, view, names, view));
    Py_XDECREF(names);
    return found;
}

/* Chooses the layout for Segment.view(): the argument, unless it is None; otherwise the current
 * one; before the first phase, layout_with(). Returns a new str, or NULL with an exception. */
static PyObject *choose_layout(struct segment *self, PyObject *view, PyObject *layout)
{
    struct shmview_phase phase;
    int r;
    if (layout != Py_None)
        return Py_NewRef(layout);
    SEGMENT_CALL(self, r, shmview_phase_get(self->handle, &phase));
    if (r && r != -SHMVIEW_ERR_NO_LOCK)
        return raise_error(self->state, r, NULL);
    return r == 0 && phase.generation ? PyUnicode_FromString(phase.name) : layout_with(self, view);
}

PyObject *segment_view(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "layout", NULL};
    struct segment *self = (struct segment *)op;
    PyObject *name_arg, *layout_arg = Py_None;
    struct shmview_view v;
    int r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O:view", keywords, &name_arg, &layout_arg))
        return NULL;
    if (layout_arg != Py_None && !PyUnicode_Check(layout_arg)) {
        PyErr_SetString(PyExc_TypeError, "layout: a name, or None for the current phase");
        return NULL;
    }
    const char *name = segment_use(self) ? PyUnicode_AsUTF8(name_arg) : NULL;
    PyObject *chosen = name ? choose_layout(self, name_arg, layout_arg) : NULL;
    const char *layout = chosen ? PyUnicode_AsUTF8(chosen) : NULL;
    struct shmview_segment *handle =
        layout ? segment_use(self) : NULL; /* another thread may have closed it during a call */
    if (!handle) {
        Py_XDECREF(chosen);
        return NULL;
    }
    SEGMENT_CALL(self, r, shmview_view_open(handle, layout, name, &v));
    PyObject *view =
        r ? raise_error(self->state, r, "{s:O,s:O}", "layout", chosen, "view", name_arg)
          : view_new(self, &v);
    Py_DECREF(chosen);
    return view;
}

PyObject *segment_subscript(PyObject *op, PyObject *key)
{
    if (!PyUnicode_Check(key))
        return PyErr_Format(PyExc_TypeError,
                            "seg['A'] is the view called A; seg.buf[...] are bytes: not %.200s",
                            Py_TYPE(key)->tp_name);
    PyObject *args = PyTuple_Pack(1, key);
    PyObject *view = args ? segment_view(op, args, NULL) : NULL;
    Py_XDECREF(args);
    return view;
}

/* The arrays to which a struct shmview_view_spec points. */
struct numbers {
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
};

/* Converts one view of a layout, as resolve() of shmview._layouts returns it: (name, format,
 * offset, shape, strides or None, suboffsets or None, readonly). spec borrows the strings of the
 * tuple, and points into numbers. Returns 0, or -1 with an exception. */
static int parse_view(PyObject *tuple, struct shmview_view_spec *spec, struct numbers *numbers)
{
    PyObject *shape, *strides, *suboffsets;
    Py_ssize_t offset;
    int readonly;
    memset(spec, 0, sizeof *spec);
    if (!PyArg_ParseTuple(tuple, "ssnOOOp", &spec->name, &spec->format, &offset, &shape, &strides,
                          &suboffsets, &readonly))
        return -1;
    int n = parse_numbers("shape", shape, numbers->shape);
    int n_strides = parse_optional("strides", strides, numbers->strides);
    int n_suboffsets = parse_optional("suboffsets", suboffsets, numbers->suboffsets);
    if (n < 0 || n_strides == -2 || n_suboffsets == -2)
        return -1;
    if (offset < 0 || (n_strides != -1 && n_strides != n) ||
        (n_suboffsets != -1 && n_suboffsets != n)) {
        PyErr_Format(PyExc_ValueError,
                     "view '%s': offset below 0, or not as many strides as lengths", spec->name);
        return -1;
    }
    spec->offset = (uint64_t)offset;
    spec->ndim = (uint32_t)n;
    spec->flags = readonly ? SHMVIEW_VIEW_READ_ONLY : 0;
    spec->shape = numbers->shape;
    spec->strides = n_strides == -1 ? NULL : numbers->strides;
    spec->suboffsets = n_suboffsets == -1 ? NULL : numbers->suboffsets;
    return 0;
}

int view_specs_parse(PyObject *views, struct view_specs *ret)
{
    size_t n = (size_t)PyTuple_GET_SIZE(views);
    *ret = (struct view_specs){
        .specs = PyMem_Calloc(n + 1, sizeof *ret->specs),
        .numbers = PyMem_Calloc(n + 1, sizeof *ret->numbers),
        .n = n,
    };
    bool parsed = ret->specs && ret->numbers;
    if (!parsed)
        PyErr_NoMemory();
    for (size_t i = 0; parsed && i < n; i++)
        parsed = parse_view(PyTuple_GET_ITEM(views, (Py_ssize_t)i), &ret->specs[i],
                            &ret->numbers[i]) == 0;
    if (!parsed)
        view_specs_free(ret);
    return parsed ? 0 : -1;
}

void view_specs_free(struct view_specs *specs)
{
    PyMem_Free(specs->specs);
    PyMem_Free(specs->numbers);
}

PyObject *segment_define_views(PyObject *op, PyObject *args)
{
    struct segment *self = (struct segment *)op;
    struct view_specs parsed;
    const char *layout;
    PyObject *views;
    int r;
    if (!PyArg_ParseTuple(args, "sO!:_define", &layout, &PyTuple_Type, &views) ||
        view_specs_parse(views, &parsed))
        return NULL;
    /* looked at now, because __index__() of a number may close the segment */
    struct shmview_segment *handle = segment_use(self);
    if (handle) {
        SEGMENT_CALL(self, r, shmview_define(handle, layout, parsed.specs, parsed.n));
        if (r)
            raise_error(self->state, r, "{s:s}", "layout", layout);
    }
    view_specs_free(&parsed);
    if (!handle || r)
        return NULL;
    Py_RETURN_NONE;
}

/* _bind(view, layout, generation): a view like the given one that belongs to a phase. load_view()
 * of shmview._types uses it: a pickled view is cast first, and then bound to its phase, so that it
 * becomes stale with that phase. */
PyObject *segment_bind(PyObject *op, PyObject *args)
{
    struct segment *self = (struct segment *)op;
    PyObject *object;
    unsigned layout, generation;
    if (!PyArg_ParseTuple(args, "O!II:_bind", self->state->view_type, &object, &layout,
                          &generation))
        return NULL;
    struct shmview_view v = ((struct view *)object)->v;
    v.layout = layout;
    v.generation = generation;
    return view_new(self, &v);
}

/* --- For Cython ---------------------------------------------------------- */

/* _handle(): the handle in a capsule, for segment_of() in shmview.pxd. The caller must keep the
 * Segment, because the capsule does not. */
PyObject *segment_handle(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct shmview_segment *handle = segment_use((struct segment *)op);
    return handle ? PyCapsule_New(handle, "shmview.segment", NULL) : NULL;
}

/* _adopt(address, connection): the Segment for a handle that another library has attached through
 * the connection, for shmview.mpi. Takes over the handle. */
PyObject *module_adopt(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    PyObject *address, *connection;
    if (!PyArg_ParseTuple(args, "O!O!:_adopt", &PyLong_Type, &address, state->connection_type,
                          &connection))
        return NULL;
    struct shmview_segment *handle = PyLong_AsVoidPtr(address);
    if (!handle) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "there is no handle");
        return NULL;
    }
    return segment_wrap(state, (struct connection *)connection, handle);
}

/* --- Formats ------------------------------------------------------------- */

PyObject *module_format_size(PyObject *module, PyObject *format)
{
    struct state *state = PyModule_GetState(module);
    PyObject *text = format_text(state, format);
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    PyObject *told = NULL;
    struct shmview_format *parsed = utf8 ? PyMem_Malloc(sizeof *parsed) : NULL;
    if (parsed) {
        int r = shmview_format_parse(utf8, parsed, NULL, 0);
        told = r ? raise_error(state, r, "{s:O,s:I}", "format", text, "at", parsed->error_at)
                 : Py_BuildValue("OII", text, parsed->itemsize, parsed->align);
        PyMem_Free(parsed);
    } else if (utf8) {
        PyErr_NoMemory();
    }
    Py_XDECREF(text);
    return told;
}
