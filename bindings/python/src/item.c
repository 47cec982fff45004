/* SPDX-License-Identifier: Apache-2.0 */
/* Converts one element to a Python object and back.
 *
 * Each common type has its own pair of functions, and a view stores a pointer to its pair, so that
 * access to an element needs no switch over types. The other types go through struct shmview_value
 * of libshmview. Elements are copied with memcpy(), because an element of a packed struct need not
 * be aligned.
 *
 * A value is stored exactly or refused with ConversionError; only a float loses digits in a shorter
 * type, as it does in every array of Python. */
#include <math.h>
#include <string.h>

#include <shmview/value.h>

#include "view.h"

int item_fail(struct view *view, PyObject *value)
{
    char text[300];
    PyObject *said = PyObject_Repr(value);
    const char *utf8 = said ? PyUnicode_AsUTF8(said) : NULL;
    if (utf8) {
        if (PyBytes_Check(value) && PyBytes_GET_SIZE(value) > (Py_ssize_t)view->v.itemsize)
            PyOS_snprintf(text, sizeof text, "%.120s: %zd bytes do not fit in format '%.100s'",
                          utf8, PyBytes_GET_SIZE(value), view->v.format);
        else
            PyOS_snprintf(text, sizeof text, "%.120s is no value of format '%.100s'", utf8,
                          view->v.format);
        raise_text(view->segment->state, SHMVIEW_ERR_CONVERSION, text);
    }
    Py_XDECREF(said);
    return -1;
}

/* Converts an int, or an object with __index__(), which a float does not have. Returns 0; 1 if the
 * number is out of the range of long long; or -1 with an exception. */
static int to_longlong(PyObject *value, long long *ret)
{
    int overflow;
    if (LIKELY(PyLong_Check(value))) {
        *ret = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow != 0;
    }
    PyObject *index = PyNumber_Index(value);
    if (!index)
        return -1;
    *ret = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    return overflow != 0;
}

/* --- The common types ---------------------------------------------------- */

/* Defines get_NAME() and set_NAME() for an integer type; `from` makes an int of it. */
#define INTEGER(name, type, from, low, high)                                                       \
    static PyObject *get_##name(struct view *view, const char *p)                                  \
    {                                                                                              \
        type x;                                                                                    \
        (void)view;                                                                                \
        memcpy(&x, p, sizeof x);                                                                   \
        return from(x);                                                                            \
    }                                                                                              \
    static int set_##name(struct view *view, char *p, PyObject *value)                             \
    {                                                                                              \
        long long n;                                                                               \
        int r = to_longlong(value, &n);                                                            \
        if (UNLIKELY(r < 0))                                                                       \
            return -1;                                                                             \
        if (UNLIKELY(r || n < (low) || n > (high)))                                                \
            return item_fail(view, value);                                                         \
        type x = (type)n;                                                                          \
        memcpy(p, &x, sizeof x);                                                                   \
        return 0;                                                                                  \
    }

INTEGER(int8, int8_t, PyLong_FromLong, INT8_MIN, INT8_MAX)
INTEGER(uint8, uint8_t, PyLong_FromLong, 0, UINT8_MAX)
INTEGER(int16, int16_t, PyLong_FromLong, INT16_MIN, INT16_MAX)
INTEGER(uint16, uint16_t, PyLong_FromLong, 0, UINT16_MAX)
INTEGER(int32, int32_t, PyLong_FromLong, INT32_MIN, INT32_MAX)
INTEGER(uint32, uint32_t, PyLong_FromLongLong, 0, UINT32_MAX)
INTEGER(int64, int64_t, PyLong_FromLongLong, INT64_MIN, INT64_MAX)

static PyObject *get_uint64(struct view *Py_UNUSED(view), const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return PyLong_FromUnsignedLongLong(x);
}
static int set_uint64(struct view *view, char *p, PyObject *value)
{
    PyObject *index = PyNumber_Index(value);
    if (!index)
        return -1;
    uint64_t x = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (x == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        return item_fail(view, value);
    }
    memcpy(p, &x, sizeof x);
    return 0;
}

static PyObject *get_float32(struct view *Py_UNUSED(view), const char *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return PyFloat_FromDouble((double)x);
}
static PyObject *get_float64(struct view *Py_UNUSED(view), const char *p)
{
    double x;
    memcpy(&x, p, sizeof x);
    return PyFloat_FromDouble(x);
}

/* Converts a number as float() does, but not a string. Returns 0, or -1 with an exception. */
static inline int to_double(PyObject *value, double *ret)
{
    if (LIKELY(PyFloat_CheckExact(value))) {
        *ret = PyFloat_AS_DOUBLE(value);
        return 0;
    }
    *ret = PyLong_CheckExact(value) ? PyLong_AsDouble(value) : PyFloat_AsDouble(value);
    return *ret == -1 && PyErr_Occurred() ? -1 : 0;
}

static int set_float32(struct view *view, char *p, PyObject *value)
{
    double d;
    if (UNLIKELY(to_double(value, &d)))
        return -1;
    float x = (float)d;
    if (UNLIKELY(isinf(x) && !isinf(d)))
        return item_fail(view, value);
    memcpy(p, &x, sizeof x);
    return 0;
}
static int set_float64(struct view *Py_UNUSED(view), char *p, PyObject *value)
{
    double x;
    if (UNLIKELY(to_double(value, &x)))
        return -1;
    memcpy(p, &x, sizeof x);
    return 0;
}

static PyObject *get_bool(struct view *Py_UNUSED(view), const char *p)
{
    return PyBool_FromLong(*p != 0);
}
static int set_bool(struct view *Py_UNUSED(view), char *p, PyObject *value)
{
    int truth = PyObject_IsTrue(value);
    if (truth < 0)
        return -1;
    *p = (char)truth;
    return 0;
}

/* --- By type ------------------------------------------------------------- */

/* The functions of the common types, in native byte order. A type without an entry has NULL. */
static const struct {
    item_get *get;
    item_set *set;
} common[] = {
    [SHMVIEW_INT8] = {get_int8, set_int8},          [SHMVIEW_UINT8] = {get_uint8, set_uint8},
    [SHMVIEW_INT16] = {get_int16, set_int16},       [SHMVIEW_UINT16] = {get_uint16, set_uint16},
    [SHMVIEW_INT32] = {get_int32, set_int32},       [SHMVIEW_UINT32] = {get_uint32, set_uint32},
    [SHMVIEW_INT64] = {get_int64, set_int64},       [SHMVIEW_UINT64] = {get_uint64, set_uint64},
    [SHMVIEW_FLOAT32] = {get_float32, set_float32}, [SHMVIEW_FLOAT64] = {get_float64, set_float64},
    [SHMVIEW_BOOL] = {get_bool, set_bool},          [SHMVIEW_POINTER] = {get_uint64, set_uint64},
};
#define N_COMMON (sizeof common / sizeof common[0])

/* --- All types ----------------------------------------------------------- */

/* Makes the Python object of a value. */
static PyObject *object_of(const struct shmview_value *v)
{
    switch (v->kind) {
    case SHMVIEW_VALUE_BOOL:
        return PyBool_FromLong(v->i != 0);
    case SHMVIEW_VALUE_INT:
        return PyLong_FromLongLong(v->i);
    case SHMVIEW_VALUE_UINT:
        return PyLong_FromUnsignedLongLong(v->u);
    case SHMVIEW_VALUE_REAL:
        return PyFloat_FromDouble((double)v->z[0]);
    case SHMVIEW_VALUE_COMPLEX:
        return PyComplex_FromDoubles((double)v->z[0], (double)v->z[1]);
    default:
        return PyBytes_FromStringAndSize(v->bytes, (Py_ssize_t)v->n_bytes);
    }
}

PyObject *item_load(uint32_t dtype, uint32_t itemsize, const char *p)
{
    struct shmview_value v;
    if (dtype < N_COMMON && common[dtype].get)
        return common[dtype].get(NULL, p);
    shmview_value_load(dtype, itemsize, p, &v);
    return object_of(&v);
}

/* Sets *ret to the text of a bytes object or a bytearray, from which it borrows the bytes. Returns
 * 0; 1 if there are more bytes than any element has; or -1 with an exception. */
static int text_of(PyObject *value, struct shmview_value *ret)
{
    char *bytes;
    Py_ssize_t n;
    if (PyByteArray_Check(value)) {
        bytes = PyByteArray_AS_STRING(value);
        n = PyByteArray_GET_SIZE(value);
    } else if (PyBytes_AsStringAndSize(value, &bytes, &n)) {
        return -1;
    }
    ret->kind = SHMVIEW_VALUE_BYTES;
    ret->bytes = bytes;
    ret->n_bytes = (uint32_t)n;
    return n > INT32_MAX;
}

/* Sets *ret to the value that an element of dtype should get. A type in the other byte order is
 * converted by the function of the native type first, which also checks the range. Returns like
 * text_of(). */
static int value_of(struct view *view, uint32_t dtype, PyObject *object, struct shmview_value *ret)
{
    const uint32_t native = dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    char bytes[sizeof(uint64_t)];
    double x;
    *ret = (struct shmview_value){.kind = (uint32_t)shmview_dtype_kind(dtype)};
    if (native < N_COMMON && common[native].set) {
        if (common[native].set(view, bytes, object))
            return -1;
        shmview_value_load(native, sizeof bytes, bytes, ret);
        return 0;
    }
    if (ret->kind == SHMVIEW_VALUE_COMPLEX) {
        Py_complex z = PyComplex_AsCComplex(object);
        ret->z[0] = (long double)z.real;
        ret->z[1] = (long double)z.imag;
        return z.real == -1 && PyErr_Occurred() ? -1 : 0;
    }
    if (ret->kind != SHMVIEW_VALUE_REAL)
        return text_of(object, ret);
    if (to_double(object, &x))
        return -1;
    ret->z[0] = (long double)x;
    return 0;
}

int item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, PyObject *object)
{
    struct shmview_value v;
    if (dtype < N_COMMON && common[dtype].set)
        return common[dtype].set(view, p, object);
    int r = value_of(view, dtype, object, &v);
    if (r < 0)
        return -1;
    return r || shmview_value_store(dtype, itemsize, &v, p) ? item_fail(view, object) : 0;
}

static PyObject *get_any(struct view *view, const char *p)
{
    return item_load(view->v.dtype, view->v.itemsize, p);
}
static int set_any(struct view *view, char *p, PyObject *value)
{
    return item_store(view, view->v.dtype, view->v.itemsize, p, value);
}

void item_choose(struct view *view)
{
    uint32_t dtype = view->v.dtype;
    view->get = dtype < N_COMMON && common[dtype].get ? common[dtype].get : get_any;
    view->set = dtype < N_COMMON && common[dtype].set ? common[dtype].set : set_any;
    if (dtype == SHMVIEW_STRUCT) {
        view->get = struct_get;
        view->set = struct_set;
    }
}
