/* SPDX-License-Identifier: Apache-2.0 */
/* Exports views of one dimension as arrays of Apache Arrow, by its C data interface, for pyarrow
 * and polars.
 *
 * As with DLPack, a consumer may keep the array longer than any object of Python and release it on
 * any thread. So the array keeps the memory through a buffer of libshmview, and its release needs
 * no interpreter. */
#include <stdlib.h>

#include "view.h"

/* The ABI of the interface (arrow.apache.org/docs/format/CDataInterface.html), which every user of
 * it defines itself. */
struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *);
    void *context;
};
struct arrow_array {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *);
    void *context;
};

static const char schema_name[] = "arrow_schema", array_name[] = "arrow_array";

/* What an array of Arrow owns. Arrow has the validity of the elements first; NULL means that all
 * are valid. */
struct kept {
    struct shmview_buffer buffer;
    const void *buffers[2];
};

static void release_schema(struct arrow_schema *schema)
{
    free(schema->context);
    schema->release = NULL;
}

static void release_array(struct arrow_array *array)
{
    struct kept *kept = array->context;
    shmview_buffer_release(&kept->buffer);
    free(kept);
    array->release = NULL;
}

/* Destructors of the capsules. A consumer that takes a struct copies it and sets its release to
 * NULL; otherwise it ends here. */
static void schema_end(PyObject *capsule)
{
    struct arrow_schema *schema = PyCapsule_GetPointer(capsule, schema_name);
    if (schema->release)
        schema->release(schema);
    free(schema);
}
static void array_end(PyObject *capsule)
{
    struct arrow_array *array = PyCapsule_GetPointer(capsule, array_name);
    if (array->release)
        array->release(array);
    free(array);
}

/* Writes Arrow's format of the elements to text. Returns whether it has one. Arrow's truth values
 * are single bits, and it has no complex numbers and only the byte order of the machine. */
static bool arrow_format(const struct shmview_view *v, char text[16])
{
    static const char letters[] = {
        [SHMVIEW_INT8] = 'c',    [SHMVIEW_UINT8] = 'C',   [SHMVIEW_INT16] = 's',
        [SHMVIEW_UINT16] = 'S',  [SHMVIEW_INT32] = 'i',   [SHMVIEW_UINT32] = 'I',
        [SHMVIEW_INT64] = 'l',   [SHMVIEW_UINT64] = 'L',  [SHMVIEW_FLOAT16] = 'e',
        [SHMVIEW_FLOAT32] = 'f', [SHMVIEW_FLOAT64] = 'g',
    };
    if (v->dtype == SHMVIEW_BYTES) {
        PyOS_snprintf(text, 16, "w:%u", v->itemsize);
        return true;
    }
    if (v->dtype >= sizeof letters || !letters[v->dtype])
        return false;
    text[0] = letters[v->dtype];
    text[1] = '\0';
    return true;
}

/* Returns a capsule with the schema, or NULL with an exception. */
static PyObject *export_schema(const char *format)
{
    struct arrow_schema *schema = calloc(1, sizeof *schema);
    char *copy = strdup(format);
    if (!schema || !copy) {
        free(copy);
        free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, schema_name, schema_end);
    if (!capsule) {
        free(copy);
        free(schema);
        return NULL;
    }
    schema->format = schema->context = copy;
    schema->name = "";
    schema->release = release_schema;
    return capsule;
}

/* Whether the first element lies where a pointer to its type may point to. Consumers rely on that,
 * and a view of a packed struct's field need not have it. */
static bool is_aligned(const struct shmview_view *v)
{
    return v->dtype == SHMVIEW_BYTES || (uintptr_t)v->data % v->itemsize == 0;
}

/* Opens a buffer of the elements, aligned and without gaps: of the view itself, or of a copy.
 * Returns 0, or -1 with an exception. */
static int open_elements(struct view *view, struct shmview_buffer *ret)
{
    struct shmview_segment *segment;
    struct shmview_view copy;
    int r = is_aligned(&view->v) ? shmview_buffer_get(&view->v, SHMVIEW_BUFFER_SIMPLE, ret)
                                 : -SHMVIEW_ERR_CONTIGUOUS;
    if (r == -SHMVIEW_ERR_CONTIGUOUS) {
        if (view_copy(view, &segment, &copy))
            return -1;
        r = shmview_buffer_get(&copy, SHMVIEW_BUFFER_SIMPLE, ret);
        shmview_detach_later(segment); /* the release of the buffer detaches it */
    }
    if (r)
        view_raise(view, r);
    return r ? -1 : 0;
}

/* Returns a capsule with the array, or NULL with an exception. */
static PyObject *export_array(struct view *view)
{
    struct arrow_array *array = calloc(1, sizeof *array);
    struct kept *kept = calloc(1, sizeof *kept);
    PyObject *capsule = NULL;
    if (!array || !kept)
        PyErr_NoMemory();
    else if (open_elements(view, &kept->buffer) == 0)
        capsule = PyCapsule_New(array, array_name, array_end);
    if (!capsule) {
        if (kept)
            shmview_buffer_release(&kept->buffer);
        free(kept);
        free(array);
        return NULL;
    }
    kept->buffers[1] = kept->buffer.buf;
    array->length = view->v.shape[0];
    array->n_buffers = 2;
    array->buffers = kept->buffers;
    array->context = kept;
    array->release = release_array;
    return capsule;
}

/* requested_schema is a wish, which the protocol allows to ignore. */
static PyObject *export(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"requested_schema", NULL};
    struct view *self = (struct view *)op;
    PyObject *requested = Py_None;
    char format[16];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__arrow_c_array__", keywords, &requested) ||
        view_check(self))
        return NULL;
    COUNT_ADD(self->n_exports, 1);
    PyObject *schema = arrow_format(&self->v, format) ? export_schema(format) : NULL;
    PyObject *array = schema ? export_array(self) : NULL;
    PyObject *both = array ? PyTuple_Pack(2, schema, array) : NULL;
    COUNT_ADD(self->n_exports, -1);
    Py_XDECREF(schema);
    Py_XDECREF(array);
    return both;
}

PyObject *view_get_arrow(PyObject *op, void *Py_UNUSED(closure))
{
    static PyMethodDef method = {"__arrow_c_array__", (PyCFunction)(void (*)(void)) export,
                                 METH_VARARGS | METH_KEYWORDS,
                                 "__arrow_c_array__(requested_schema=None)\n--\n\n"
                                 "Returns two capsules: the type and the elements."};
    struct view *self = (struct view *)op;
    char format[16];
    if (!self->segment) {
        view_complain(self);
        return NULL;
    }
    if (self->v.ndim == 1 && arrow_format(&self->v, format))
        return PyCFunction_New(&method, op);
    return PyErr_Format(PyExc_AttributeError,
                        "Arrow has no arrays of format '%s' with %u dimensions", self->v.format,
                        self->v.ndim);
}
