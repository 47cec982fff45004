/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of ctypes' plain types, without ctypes: what is the usual value of a type is
 * handled here, all else is left to ctypes, so that it converts and refuses as ever. */
#include "sync.h"

#include <string.h>

#define LOAD(type, p)                                                                              \
    __extension__({                                                                                \
        type v_;                                                                                   \
        memcpy(&v_, (p), sizeof v_);                                                               \
        v_;                                                                                        \
    })

PyObject *element_get(char code, const char *p)
{
    switch (code) {
    case 'c':
        return PyBytes_FromStringAndSize(p, 1);
    case 'b':
        return PyLong_FromLong(LOAD(signed char, p));
    case 'B':
        return PyLong_FromLong(LOAD(unsigned char, p));
    case '?':
        return PyBool_FromLong(LOAD(char, p));
    case 'h':
        return PyLong_FromLong(LOAD(short, p));
    case 'H':
        return PyLong_FromLong(LOAD(unsigned short, p));
    case 'i':
        return PyLong_FromLong(LOAD(int, p));
    case 'I':
        return PyLong_FromUnsignedLong(LOAD(unsigned, p));
    case 'l':
    case 'q':
        return PyLong_FromLongLong(LOAD(long long, p));
    case 'L':
    case 'Q':
        return PyLong_FromUnsignedLongLong(LOAD(unsigned long long, p));
    case 'f':
        return PyFloat_FromDouble((double)LOAD(float, p));
    default:
        return PyFloat_FromDouble(LOAD(double, p));
    }
}

static int set_number(char *p, size_t bytes, PyObject *value)
{
    if (!PyLong_CheckExact(value))
        return 0;
    unsigned long long bits = PyLong_AsUnsignedLongLongMask(value); /* ctypes cuts off as well */
    if (bits == (unsigned long long)-1 && PyErr_Occurred())
        return -1;
    memcpy(p, &bits, bytes); /* little end first: see the assertion below */
    return 1;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "set_number() takes the low bytes");
_Static_assert(sizeof(long) == 8, "l and q are alike");

static int set_float(char code, char *p, PyObject *value)
{
    if (!PyFloat_CheckExact(value))
        return 0;
    double d = PyFloat_AS_DOUBLE(value);
    float f = (float)d;
    if (code == 'f')
        memcpy(p, &f, sizeof f);
    else
        memcpy(p, &d, sizeof d);
    return 1;
}

int element_set(char code, char *p, PyObject *value)
{
    switch (code) {
    case 'c':
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 1)
            return 0;
        *p = PyBytes_AS_STRING(value)[0];
        return 1;
    case '?':
        if (!PyBool_Check(value))
            return 0;
        *p = value == Py_True;
        return 1;
    case 'b':
    case 'B':
        return set_number(p, 1, value);
    case 'h':
    case 'H':
        return set_number(p, 2, value);
    case 'i':
    case 'I':
        return set_number(p, 4, value);
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
        return set_number(p, 8, value);
    default:
        return set_float(code, p, value);
    }
}
