/* SPDX-License-Identifier: Apache-2.0 */
/* One element as a Python object and back. The common types have a function each, which the
 * view knows from its beginning; an element need not be aligned (packed structs). */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "view.h"

int item_fail(struct view *view, PyObject *value)
{
    char text[300];
    PyObject *said = PyObject_Repr(value);
    const char *utf8 = said ? PyUnicode_AsUTF8(said) : NULL;
    if (utf8) {
        PyOS_snprintf(text, sizeof text, "%.120s is no value of format '%.100s'", utf8,
                      view->v.format);
        raise_text(view->segment->state, SHMVIEW_ERR_CONVERSION, text);
    }
    Py_XDECREF(said);
    return -1;
}

/* An integer as Python has it: an int, or what has __index__; no float. Returns 0; 1 if it is
 * out of the range of long long; or -1 with an exception. */
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

/* Returns 0 or -1. */
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

/* --- Text ---------------------------------------------------------------- */

static int set_text(struct view *view, char *p, uint32_t n, PyObject *value, bool exact)
{
    char *bytes;
    Py_ssize_t length;
    if (PyByteArray_Check(value)) {
        bytes = PyByteArray_AS_STRING(value);
        length = PyByteArray_GET_SIZE(value);
    } else if (PyBytes_AsStringAndSize(value, &bytes, &length)) {
        return -1;
    }
    if (length > (Py_ssize_t)n || (exact && length != (Py_ssize_t)n))
        return item_fail(view, value);
    memcpy(p, bytes, (size_t)length);
    memset(p + length, 0, n - (size_t)length);
    return 0;
}

/* A length byte, then the text; what a peer wrote there is cut to what there is. */
static PyObject *load_pascal(uint32_t n, const char *p)
{
    uint32_t length = n ? (unsigned char)*p : 0;
    if (length + 1 > n)
        length = n ? n - 1 : 0;
    return PyBytes_FromStringAndSize(n ? p + 1 : p, (Py_ssize_t)length);
}
static int store_pascal(struct view *view, uint32_t n, char *p, PyObject *value)
{
    uint32_t room = n > 256 ? 255 : n ? n - 1 : 0;
    Py_ssize_t length = PyObject_Length(value);
    if (length < 0)
        return -1;
    if (length > (Py_ssize_t)room)
        return item_fail(view, value);
    if (n == 0)
        return 0;
    if (set_text(view, p + 1, n - 1, value, false))
        return -1;
    *p = (char)length;
    return 0;
}

/* --- The others ---------------------------------------------------------- */

static PyObject *load_complex(const double z[2])
{
    return PyComplex_FromDoubles(z[0], z[1]);
}

/* What is left to libshmview: an element of one byte, for its alignment. */
static int make_single(struct view *view, uint32_t dtype, const char *p, struct shmview_view *ret)
{
    static const char *const names[] = {
        "float8_e3m4",     "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
        "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",    "float8_e8m0fnu",
    };
    struct shmview_segment *handle = view->segment->handle;
    struct shmview_view_spec spec = {.format = names[dtype - SHMVIEW_FLOAT8_E3M4]};
    spec.offset = (uint64_t)(p - (const char *)shmview_data(handle));
    int r = shmview_view_make(handle, &spec, ret);
    if (r)
        raise_error(view->segment->state, r, NULL);
    return r ? -1 : 0;
}

static PyObject *load_float8(struct view *view, uint32_t dtype, const char *p)
{
    struct shmview_view single;
    double x;
    if (make_single(view, dtype, p, &single) || shmview_get_double(&single, NULL, &x))
        return NULL;
    return PyFloat_FromDouble(x);
}
static int store_float8(struct view *view, uint32_t dtype, char *p, PyObject *value)
{
    struct shmview_view single;
    double x;
    if (to_double(value, &x) || make_single(view, dtype, p, &single))
        return -1;
    return shmview_set_double(&single, NULL, x) ? item_fail(view, value) : 0;
}

static PyObject *load_bfloat16(const char *p)
{
    uint16_t half;
    float x;
    memcpy(&half, p, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&x, &bits, sizeof x);
    return PyFloat_FromDouble((double)x);
}

/* To the nearest, ties to even. The double is cut to 24 bits first with the lost ones kept in
 * the last, so that it is rounded only once. */
static int store_bfloat16(struct view *view, char *p, PyObject *value)
{
    double d;
    if (to_double(value, &d))
        return -1;
    float x = (float)d;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isfinite(x) && (double)x != d) {
        if (fabs((double)x) > fabs(d))
            bits--;
        bits |= 1;
    }
    uint16_t half = isnan(x) ? (uint16_t)(bits >> 16 | 0x40)
                             : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    if ((half & 0x7f80) == 0x7f80 && isfinite(d))
        return item_fail(view, value);
    memcpy(p, &half, sizeof half);
    return 0;
}

static PyObject *load_float16(const char *p)
{
#if PY_VERSION_HEX >= 0x030b0000
    double x = PyFloat_Unpack2(p, PY_LITTLE_ENDIAN);
#else
    double x = _PyFloat_Unpack2((const unsigned char *)p, PY_LITTLE_ENDIAN);
#endif
    return x == -1 && PyErr_Occurred() ? NULL : PyFloat_FromDouble(x);
}
static int store_float16(struct view *view, char *p, PyObject *value)
{
    double x;
    if (to_double(value, &x))
        return -1;
#if PY_VERSION_HEX >= 0x030b0000
    int r = PyFloat_Pack2(x, p, PY_LITTLE_ENDIAN);
#else
    int r = _PyFloat_Pack2(x, (unsigned char *)p, PY_LITTLE_ENDIAN);
#endif
    if (r == 0)
        return 0;
    PyErr_Clear();
    return item_fail(view, value);
}

static PyObject *load_wide(uint32_t dtype, const char *p)
{
    double z[2];
    float f[2];
    long double g;
    void *pointer;
    switch (dtype) {
    case SHMVIEW_COMPLEX64:
        memcpy(f, p, sizeof f);
        z[0] = (double)f[0];
        z[1] = (double)f[1];
        return load_complex(z);
    case SHMVIEW_COMPLEX128:
        memcpy(z, p, sizeof z);
        return load_complex(z);
    case SHMVIEW_LONGDOUBLE:
        memcpy(&g, p, sizeof g);
        return PyFloat_FromDouble((double)g);
    default: /* SHMVIEW_POINTER */
        memcpy(&pointer, p, sizeof pointer);
        return PyLong_FromVoidPtr(pointer);
    }
}

static int store_wide(struct view *view, uint32_t dtype, char *p, PyObject *value)
{
    Py_complex z = {0, 0};
    double d = 0;
    if (dtype == SHMVIEW_LONGDOUBLE) {
        if (to_double(value, &d))
            return -1;
        /* its padding is not what happens to lie on the stack */
        long double g = (long double)d;
        memset(p, 0, sizeof g);
        memcpy(p, &g, LDBL_MANT_DIG == 64 ? 10 : sizeof g);
        return 0;
    }
    z = PyComplex_AsCComplex(value);
    if (z.real == -1 && PyErr_Occurred())
        return -1;
    if (dtype == SHMVIEW_COMPLEX128) {
        memcpy(p, &z, sizeof z);
        return 0;
    }
    float f[2] = {(float)z.real, (float)z.imag};
    if ((isinf(f[0]) && !isinf(z.real)) || (isinf(f[1]) && !isinf(z.imag)))
        return item_fail(view, value);
    memcpy(p, f, sizeof f);
    return 0;
}

/* --- By type ------------------------------------------------------------- */

static const struct {
    item_get *get;
    item_set *set;
} common[] = {
    [SHMVIEW_INT8] = {get_int8, set_int8},          [SHMVIEW_UINT8] = {get_uint8, set_uint8},
    [SHMVIEW_INT16] = {get_int16, set_int16},       [SHMVIEW_UINT16] = {get_uint16, set_uint16},
    [SHMVIEW_INT32] = {get_int32, set_int32},       [SHMVIEW_UINT32] = {get_uint32, set_uint32},
    [SHMVIEW_INT64] = {get_int64, set_int64},       [SHMVIEW_UINT64] = {get_uint64, set_uint64},
    [SHMVIEW_FLOAT32] = {get_float32, set_float32}, [SHMVIEW_FLOAT64] = {get_float64, set_float64},
    [SHMVIEW_BOOL] = {get_bool, set_bool},          [SHMVIEW_POINTER] = {NULL, set_uint64},
};
#define N_COMMON (sizeof common / sizeof common[0])

static PyObject *load_native(struct view *view, uint32_t dtype, uint32_t itemsize, const char *p)
{
    if (dtype < N_COMMON && common[dtype].get)
        return common[dtype].get(view, p);
    switch (dtype) {
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        return PyBytes_FromStringAndSize(p, (Py_ssize_t)itemsize);
    case SHMVIEW_PASCAL:
        return load_pascal(itemsize, p);
    case SHMVIEW_FLOAT16:
        return load_float16(p);
    case SHMVIEW_BFLOAT16:
        return load_bfloat16(p);
    default:
        return dtype >= SHMVIEW_FLOAT8_E3M4 ? load_float8(view, dtype, p) : load_wide(dtype, p);
    }
}

static int store_native(struct view *view, uint32_t dtype, uint32_t itemsize, char *p,
                        PyObject *value)
{
    if (dtype < N_COMMON && common[dtype].set)
        return common[dtype].set(view, p, value);
    switch (dtype) {
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        return set_text(view, p, itemsize, value, dtype == SHMVIEW_CHAR);
    case SHMVIEW_PASCAL:
        return store_pascal(view, itemsize, p, value);
    case SHMVIEW_FLOAT16:
        return store_float16(view, p, value);
    case SHMVIEW_BFLOAT16:
        return store_bfloat16(view, p, value);
    default:
        return dtype >= SHMVIEW_FLOAT8_E3M4 ? store_float8(view, dtype, p, value)
                                            : store_wide(view, dtype, p, value);
    }
}

#define SWAPPED_MAX 32

/* Each of its one or two numbers backwards. */
static void swap_bytes(uint32_t dtype, uint32_t itemsize, const char *from, char *to)
{
    uint32_t parts = dtype == SHMVIEW_COMPLEX64 || dtype == SHMVIEW_COMPLEX128 ? 2 : 1;
    uint32_t n = itemsize / parts;
    for (uint32_t part = 0; part < parts; part++)
        for (uint32_t i = 0; i < n; i++)
            to[part * n + i] = from[part * n + n - 1 - i];
}

PyObject *item_load(struct view *view, uint32_t dtype, uint32_t itemsize, const char *p)
{
    char native[SWAPPED_MAX];
    if (!(dtype & SHMVIEW_SWAPPED))
        return load_native(view, dtype, itemsize, p);
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    swap_bytes(dtype, itemsize, p, native);
    return load_native(view, dtype, itemsize, native);
}

int item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, PyObject *value)
{
    char native[SWAPPED_MAX];
    if (!(dtype & SHMVIEW_SWAPPED))
        return store_native(view, dtype, itemsize, p, value);
    dtype &= ~(uint32_t)SHMVIEW_SWAPPED;
    if (store_native(view, dtype, itemsize, native, value))
        return -1;
    swap_bytes(dtype, itemsize, native, p);
    return 0;
}

static PyObject *get_any(struct view *view, const char *p)
{
    return item_load(view, view->v.dtype, view->v.itemsize, p);
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
