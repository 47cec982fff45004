/* SPDX-License-Identifier: Apache-2.0 */
/* __enter__ and __exit__ for a type whose with statement must be fast.
 *
 * A with statement looks both methods up and binds them to the object before it calls them. For
 * methods of CPython this makes two objects that the garbage collector tracks, which costs more
 * than taking the lock. A descriptor of this file binds to a smaller object without tracking, and
 * keeps the memory of the last one for the next. It has references only to the object itself, which
 * the statement keeps anyway, and to the descriptor. */
#include <stddef.h>

#include "special.h"

/* The descriptor in the dict of the type. */
struct special {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyTypeObject *owner;      /* borrowed, because its dict keeps this object */
    PyTypeObject *bound_type; /* owned */
    special_call *call;
    const char *name;
    struct bound *spare; /* memory for the next bound method, or NULL */
};

/* The method after it was bound to an object. */
struct bound {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *self;          /* owned */
    struct special *special; /* owned */
};

static int refuse_keywords(PyObject *names)
{
    if (!names || PyTuple_GET_SIZE(names) == 0)
        return 0;
    PyErr_SetString(PyExc_TypeError, "no keyword arguments are taken");
    return -1;
}

/* --- Bound --------------------------------------------------------------- */

static PyObject *bound_vectorcall(PyObject *op, PyObject *const *args, size_t n, PyObject *names)
{
    struct bound *self = (struct bound *)op;
    if (UNLIKELY(names != NULL) && refuse_keywords(names))
        return NULL;
    return self->special->call(self->self, args, PyVectorcall_NARGS(n));
}

static void bound_dealloc(PyObject *op)
{
    struct bound *self = (struct bound *)op;
    PyTypeObject *type = Py_TYPE(op);
    struct special *special = self->special;
    Py_DECREF(self->self);
    if (special->spare)
        PyObject_Free(op);
    else
        special->spare = self;
    Py_DECREF((PyObject *)special);
    Py_DECREF(type);
}

static PyObject *bound_repr(PyObject *op)
{
    struct bound *self = (struct bound *)op;
    return PyUnicode_FromFormat("<method %s of %R>", self->special->name, self->self);
}

static PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct bound, vectorcall), READONLY, NULL},
    {"__self__", T_OBJECT, offsetof(struct bound, self), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyObject *get_name(PyObject *op, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(((struct bound *)op)->special->name);
}

static PyGetSetDef bound_getset[] = {
    {"__name__", get_name, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot bound_slots[] = {
    {Py_tp_getset, bound_getset},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, bound_dealloc},
    {Py_tp_repr, bound_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, bound_members},
    {0, NULL},
};
PyType_Spec bound_spec = {
    .name = "shmview._core.bound",
    .basicsize = sizeof(struct bound),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = bound_slots,
};

/* --- Not bound ----------------------------------------------------------- */

/* Raises TypeError for an object that is not of the owner or a subclass, because the method would
 * read it as one. Returns 0, or -1 with the exception. */
static int check_owner(const struct special *self, PyObject *object)
{
    if (LIKELY(PyObject_TypeCheck(object, self->owner)))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s of a %.100s, not of a %.100s", self->name,
                 self->owner->tp_name, Py_TYPE(object)->tp_name);
    return -1;
}

/* tp_descr_get: binds the method to an object. */
static PyObject *special_get(PyObject *op, PyObject *object, PyObject *Py_UNUSED(type))
{
    struct special *self = (struct special *)op;
    if (!object || object == Py_None)
        return Py_NewRef(op);
    if (check_owner(self, object))
        return NULL;
    struct bound *bound = self->spare;
    self->spare = NULL;
    bound = bound ? (struct bound *)PyObject_Init((PyObject *)bound, self->bound_type)
                  : PyObject_New(struct bound, self->bound_type);
    if (!bound)
        return NULL;
    bound->vectorcall = bound_vectorcall;
    bound->self = Py_NewRef(object);
    bound->special = (struct special *)Py_NewRef(op);
    return (PyObject *)bound;
}

/* Called without binding: type(object).__enter__(object), as contextlib.ExitStack does. */
static PyObject *special_vectorcall(PyObject *op, PyObject *const *args, size_t n, PyObject *names)
{
    struct special *self = (struct special *)op;
    Py_ssize_t given = PyVectorcall_NARGS(n);
    if (refuse_keywords(names))
        return NULL;
    if (given == 0) {
        PyErr_Format(PyExc_TypeError, "%s needs an argument", self->name);
        return NULL;
    }
    return check_owner(self, args[0]) ? NULL : self->call(args[0], args + 1, given - 1);
}

static void special_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_XDECREF((PyObject *)((struct special *)op)->bound_type);
    PyObject_Free(((struct special *)op)->spare);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *special_repr(PyObject *op)
{
    struct special *self = (struct special *)op;
    return PyUnicode_FromFormat("<method '%s' of '%s' objects>", self->name, self->owner->tp_name);
}

static PyMemberDef special_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct special, vectorcall), READONLY, NULL},
    {"__name__", T_STRING, offsetof(struct special, name), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot special_slots[] = {
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, special_dealloc},
    {Py_tp_repr, special_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, special_get},
    {Py_tp_members, special_members},
    {0, NULL},
};
PyType_Spec special_spec = {
    .name = "shmview._core.special",
    .basicsize = sizeof(struct special),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = special_slots,
};

int special_add(struct state *state, PyTypeObject *owner, const char *name, special_call *call)
{
    struct special *self = PyObject_New(struct special, state->special_type);
    if (!self)
        return -1;
    self->vectorcall = special_vectorcall;
    self->owner = owner;
    self->bound_type = (PyTypeObject *)Py_NewRef((PyObject *)state->bound_type);
    self->call = call;
    self->name = name;
    self->spare = NULL;
    int r = PyObject_SetAttrString((PyObject *)owner, name, (PyObject *)self);
    Py_DECREF((PyObject *)self);
    return r;
}
