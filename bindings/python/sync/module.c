/* SPDX-License-Identifier: Apache-2.0 */
/* The module shmview._sync: its state and its types. It is separate from shmview._core because its
 * objects need no daemon, and because the modules that use it import ctypes, which most programs
 * do not need. */
#include "sync.h"

#include <string.h>

static struct PyModuleDef definition;

struct state *state_of(PyTypeObject *type)
{
    for (; type; type = type->tp_base) {
        PyObject *module =
            PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? PyType_GetModule(type) : NULL;
        if (module && PyModule_GetDef(module) == &definition)
            return PyModule_GetState(module);
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_TypeError, "not a type of shmview._sync");
    return NULL;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name,
                              PyTypeObject *base)
{
    PyObject *bases = base ? PyTuple_Pack(1, base) : NULL;
    PyObject *type = base && !bases ? NULL : PyType_FromModuleAndSpec(module, spec, bases);
    Py_XDECREF(bases);
    if (type && PyModule_AddObject(module, name, Py_NewRef(type))) {
        Py_DECREF(type);
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

static PyType_Spec *const waiting_specs[] = {&event_spec, &waiters_spec, &semaphore_spec,
                                             &barrier_spec, &queue_spec};

static int module_exec(PyObject *module)
{
    struct state *s = PyModule_GetState(module);
    if (!(s->arena_type = add_type(module, &arena_spec, "Arena", NULL)) ||
        !(s->lock_type = add_type(module, &lock_spec, "Lock", NULL)) ||
        !(s->rlock_type = add_type(module, &rlock_spec, "RLock", NULL)) ||
        !(s->base_type = add_type(module, &base_spec, "SynchronizedBase", NULL)) ||
        !(s->value_type = add_type(module, &value_spec, "Synchronized", s->base_type)) ||
        !(s->array_type = add_type(module, &array_spec, "SynchronizedArray", s->base_type)) ||
        !(s->place_type = add_type(module, &place_spec, "Place", NULL)) ||
        !(s->quick_type = add_type(module, &quick_spec, "Quick", NULL)))
        return -1;
    for (size_t i = 0; i < sizeof waiting_specs / sizeof *waiting_specs; i++)
        if (!(s->waiting_types[i] = add_type(module, waiting_specs[i],
                                             strrchr(waiting_specs[i]->name, '.') + 1, NULL)))
            return -1;
    return 0;
}

/* _set_up(helpers, codes): stores the module shmview._shared, whose functions do the work that
 * needs no speed, and the letters of the plain types. _shared calls it when it is imported. */
static PyObject *set_up(PyObject *module, PyObject *args)
{
    struct state *s = PyModule_GetState(module);
    PyObject *helpers, *codes;
    if (!PyArg_ParseTuple(args, "OO!", &helpers, &PyDict_Type, &codes))
        return NULL;
    Py_XSETREF(s->helpers, Py_NewRef(helpers));
    Py_XSETREF(s->codes, Py_NewRef(codes));
    Py_RETURN_NONE;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct state *s = PyModule_GetState(module);
    Py_VISIT((PyObject *)s->arena_type);
    Py_VISIT((PyObject *)s->lock_type);
    Py_VISIT((PyObject *)s->rlock_type);
    Py_VISIT((PyObject *)s->base_type);
    Py_VISIT((PyObject *)s->value_type);
    Py_VISIT((PyObject *)s->array_type);
    Py_VISIT((PyObject *)s->place_type);
    Py_VISIT((PyObject *)s->quick_type);
    for (size_t i = 0; i < sizeof waiting_specs / sizeof *waiting_specs; i++)
        Py_VISIT((PyObject *)s->waiting_types[i]);
    Py_VISIT(s->helpers);
    Py_VISIT(s->codes);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct state *s = PyModule_GetState(module);
    Py_CLEAR(s->arena_type);
    Py_CLEAR(s->lock_type);
    Py_CLEAR(s->rlock_type);
    Py_CLEAR(s->base_type);
    Py_CLEAR(s->value_type);
    Py_CLEAR(s->array_type);
    Py_CLEAR(s->place_type);
    Py_CLEAR(s->quick_type);
    for (size_t i = 0; i < sizeof waiting_specs / sizeof *waiting_specs; i++)
        Py_CLEAR(s->waiting_types[i]);
    Py_CLEAR(s->helpers);
    Py_CLEAR(s->codes);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyMethodDef functions[] = {
    {"_set_up", set_up, METH_VARARGS, NULL},
    {"_is_quick", module_is_quick, METH_VARARGS, NULL},
    {"_place", module_place, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "shmview._sync",
    .m_doc = "The extension module that implements the drop-ins for multiprocessing.",
    .m_size = sizeof(struct state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__sync(void);
PyMODINIT_FUNC PyInit__sync(void)
{
    return PyModuleDef_Init(&definition);
}
