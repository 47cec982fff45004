/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the type Guard, which holds the lock of a segment for a block. */
#ifndef GUARD_H
#define GUARD_H

#include "core.h"

extern PyType_Spec guard_spec;

/* Guard.__enter__() and Guard.__exit__(), which module.c adds as in special.h. */
PyObject *guard_enter(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *guard_exit(PyObject *self, PyObject *const *args, Py_ssize_t n);

#endif
