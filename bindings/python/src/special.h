/* SPDX-License-Identifier: Apache-2.0 */
/* special.h - methods that cost little to bind; Segment uses them for __enter__ and __exit__.
 * special.c explains why. */
#ifndef SPECIAL_H
#define SPECIAL_H

#include "core.h"

/* The code of a method: self is an object of the owner, and args are the other n arguments. */
typedef PyObject *special_call(PyObject *self, PyObject *const *args, Py_ssize_t n);

extern PyType_Spec bound_spec, special_spec;

/* Adds a method to a type of the module. name is a static string. Returns 0, or -1 with an
 * exception. */
int special_add(struct state *state, PyTypeObject *owner, const char *name, special_call *call);

#endif
