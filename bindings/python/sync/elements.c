/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a plain type of ctypes by index and by slice. The results are those of ctypes: an
 * element, a list, or bytes for c_char; a wrong index raises IndexError with its text. */
#include <string.h>

#include "sync.h"

/* --- Finding them -------------------------------------------------------- */

int elements_find(struct state *state, PyObject *obj, bool is_array, struct elements *ret)
{
    Py_buffer buffer;
    *ret = (struct elements){.length = 1};
    PyObject *type = is_array ? PyObject_GetAttrString((PyObject *)Py_TYPE(obj), "_type_")
                              : Py_NewRef((PyObject *)Py_TYPE(obj));
    if (!type)
        return -1;
    PyObject *code = PyDict_GetItemWithError(state->codes, type);
    Py_DECREF(type);
    if (is_array && (ret->length = PyObject_Length(obj)) < 0)
        return -1;
    if (!code || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    if (PyObject_GetBuffer(obj, &buffer, PyBUF_WRITABLE))
        return -1;
    ret->data = buffer.buf;
    ret->itemsize = buffer.itemsize; /* that of an element, also for an array without any */
    ret->code[0] = (char)PyUnicode_READ_CHAR(code, 0);
    PyBuffer_Release(&buffer);
    return 0;
}

/* --- Index --------------------------------------------------------------- */

/* Returns the address of the element with the index key, or NULL with an exception. */
static char *find_element(const struct elements *e, PyObject *key)
{
    Py_ssize_t i = LIKELY(PyLong_CheckExact(key)) ? PyLong_AsSsize_t(key) : -1;
    if (UNLIKELY(i == -1)) { /* the index -1, an int that does not fit, or another class */
        PyErr_Clear();
        i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    }
    if (UNLIKELY(i == -1) && PyErr_Occurred())
        return NULL;
    if (i < 0)
        i += e->length;
    if (LIKELY(i >= 0 && i < e->length))
        return e->data + i * e->itemsize;
    PyErr_SetString(PyExc_IndexError, "invalid index");
    return NULL;
}

/* --- Slice --------------------------------------------------------------- */

/* The elements that a slice selects. */
struct part {
    char *first;
    Py_ssize_t n, step; /* elements; bytes from one to the next, which may be negative */
};

/* Finds them. Returns 0, or -1 with an exception. */
static int find_part(const struct elements *e, PyObject *slice, struct part *ret)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return -1;
    ret->n = PySlice_AdjustIndices(e->length, &start, &stop, step);
    ret->first = e->data + start * e->itemsize;
    ret->step = step * e->itemsize;
    return 0;
}

/* Returns characters as bytes. */
static PyObject *get_bytes(const struct part *part)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, part->n);
    for (Py_ssize_t i = 0; bytes && i < part->n; i++)
        PyBytes_AS_STRING(bytes)[i] = part->first[i * part->step];
    return bytes;
}

static PyObject *get_part(char code, const struct part *part)
{
    if (code == 'c')
        return get_bytes(part);
    PyObject *list = PyList_New(part->n);
    const char *p = part->first;
    for (Py_ssize_t i = 0; list && i < part->n; i++, p += part->step) {
        PyObject *element = element_get(code, p);
        if (element)
            PyList_SET_ITEM(list, i, element);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Copies from an object that exports a buffer of the same type and size: array.array, numpy,
 * another array of this module. memmove(), because the buffer may overlap the part. Returns 1, or 0
 * for another buffer. */
static int set_from_buffer(const struct elements *e, const struct part *part, PyObject *value)
{
    Py_buffer from;
    if (PyObject_GetBuffer(value, &from, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        return 0;
    }
    bool same = from.ndim == 1 && from.format && strcmp(from.format, e->code) == 0 &&
                from.len == part->n * e->itemsize;
    if (same)
        memmove(part->first, from.buf, (size_t)from.len);
    PyBuffer_Release(&from);
    return same;
}

/* Sets the elements from a list or a tuple. element_set() runs no Python code, so the list cannot
 * change in between. Returns like elements_set(). */
static int set_from_items(const struct elements *e, const struct part *part, PyObject *value)
{
    if (PySequence_Fast_GET_SIZE(value) != part->n)
        return 0;
    char *p = part->first;
    for (Py_ssize_t i = 0; i < part->n; i++, p += part->step) {
        int r = element_set(e->code[0], p, PySequence_Fast_GET_ITEM(value, i));
        if (r <= 0)
            return r;
    }
    return 1;
}

/* Sets the elements of a slice. Returns like elements_set(). */
static int set_part(const struct elements *e, PyObject *slice, PyObject *value)
{
    struct part part;
    if (find_part(e, slice, &part))
        return -1;
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
        return part.step == e->itemsize && PyObject_CheckBuffer(value)
                   ? set_from_buffer(e, &part, value)
                   : 0;
    int r;
    Py_BEGIN_CRITICAL_SECTION(value); /* other threads may change a list if there is no GIL */
    r = set_from_items(e, &part, value);
    Py_END_CRITICAL_SECTION();
    return r;
}

/* --- By key -------------------------------------------------------------- */

int elements_get(const struct elements *e, PyObject *key, PyObject **ret)
{
    if (LIKELY(PyLong_CheckExact(key)) || PyIndex_Check(key)) {
        const char *p = find_element(e, key);
        *ret = LIKELY(p) ? element_get(e->code[0], p) : NULL;
    } else if (PySlice_Check(key)) {
        struct part part;
        *ret = find_part(e, key, &part) ? NULL : get_part(e->code[0], &part);
    } else {
        return 0;
    }
    return *ret ? 1 : -1;
}

int elements_set(const struct elements *e, PyObject *key, PyObject *value)
{
    if (LIKELY(PyLong_CheckExact(key)) || PyIndex_Check(key)) {
        char *p = find_element(e, key);
        return LIKELY(p) ? element_set(e->code[0], p, value) : -1;
    }
    return PySlice_Check(key) ? set_part(e, key, value) : 0;
}
