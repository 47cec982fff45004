/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and sets one element of a plain type of ctypes, without ctypes. Values of the usual class
 * (an int for an integer, a float for a float) are handled here. For every other value the
 * functions return 0 and the caller lets ctypes convert or refuse it, so that the rules stay those
 * of ctypes. */
#include "sync.h"

#include <string.h>

/* Reads a value from p, which need not be aligned. */
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

/* Stores the lowest bytes of an int, as ctypes does without an error. Returns like element_set().
 */
static int set_number(char *p, size_t bytes, PyObject *value)
{
    if (!PyLong_CheckExact(value))
        return 0;
    unsigned long long bits = PyLong_AsUnsignedLongLongMask(value);
    if (bits == (unsigned long long)-1 && PyErr_Occurred())
        return -1;
    memcpy(p, &bits, bytes); /* the lowest bytes come first: see the assertion below */
    return 1;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "set_number() takes the low bytes");
_Static_assert(sizeof(long) == 8, "l and q are alike");

/* Stores a float. Returns like element_set(). */
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
