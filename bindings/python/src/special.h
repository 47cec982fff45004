/* SPDX-License-Identifier: Apache-2.0 */
/* special.h - methods that are bound at little cost: __enter__ and __exit__. */
#ifndef SPECIAL_H
#define SPECIAL_H

#include "core.h"

/* The method: self is an object of the owner, args are the n others. */
typedef PyObject *special_call(PyObject *self, PyObject *const *args, Py_ssize_t n);

extern PyType_Spec bound_spec, special_spec;

/* Gives a type of the module a method of that name, which is a static string. Returns 0 or -1. */
int special_add(struct state *state, PyTypeObject *owner, const char *name, special_call *call);

#endif
