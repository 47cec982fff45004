/* SPDX-License-Identifier: Apache-2.0 */
/* Quick: a second base class for arrays of ctypes, by which elements are read and set here.
 *
 * shmview/sharedctypes.py makes a class with the bases Quick and an array of ctypes. Its instances
 * are still arrays of ctypes, so they can be passed to C functions and cast. Only [] goes through
 * this file, because the mapping slots of Quick come first. The address of the elements is in a
 * separate object, a Place, in a slot of the instance. Accesses to an instance without a Place, and
 * unusual keys and values, go to the functions of ctypes. */
#include <stdatomic.h>

#include "sync.h"

/* --- Places -------------------------------------------------------------- */

/* Does not keep the elements: the array whose slot it is in does. */
struct place {
    PyObject_HEAD struct elements elements;
};

static void place_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyType_Slot place_slots[] = {
    {Py_tp_dealloc, place_dealloc},
    {0, NULL},
};
PyType_Spec place_spec = {
    .name = "shmview._sync.Place",
    .basicsize = sizeof(struct place),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = place_slots,
};

/* _place(array): a new Place for the elements of the array. The array must keep it. */
PyObject *module_place(PyObject *module, PyObject *array)
{
    struct state *state = PyModule_GetState(module);
    struct place *place = PyObject_New(struct place, state->place_type);
    if (place && elements_find(state, array, true, &place->elements))
        Py_CLEAR(place);
    return (PyObject *)place;
}

/* --- Arrays -------------------------------------------------------------- */

/* The offset of the slot _place in an instance, and the functions of ctypes. They are the same in
 * every interpreter of the process. module_is_quick() sets them. */
static _Atomic Py_ssize_t slot_offset;
static _Atomic(binaryfunc) ctypes_get;
static _Atomic(objobjargproc) ctypes_set;

/* Returns the elements of an instance, or NULL if ctypes must do the access. */
static const struct elements *elements_of(PyObject *op)
{
    Py_ssize_t offset = atomic_load_explicit(&slot_offset, memory_order_relaxed);
    const struct place *place = *(struct place **)((char *)op + offset);
    return LIKELY(place && place->elements.code[0]) ? &place->elements : NULL;
}

static PyObject *quick_subscript(PyObject *op, PyObject *key)
{
    const struct elements *elements = elements_of(op);
    PyObject *got = NULL;
    int r = LIKELY(elements) ? elements_get(elements, key, &got) : 0;
    return LIKELY(r) ? got : atomic_load(&ctypes_get)(op, key);
}

static int quick_ass_subscript(PyObject *op, PyObject *key, PyObject *value)
{
    const struct elements *elements = elements_of(op);
    int r = LIKELY(elements && value) ? elements_set(elements, key, value) : 0;
    if (LIKELY(r))
        return r > 0 ? 0 : -1;
    return atomic_load(&ctypes_set)(op, key, value);
}

static PyType_Slot quick_slots[] = {
    {Py_mp_subscript, quick_subscript},
    {Py_mp_ass_subscript, quick_ass_subscript},
    {0, NULL},
};
PyType_Spec quick_spec = {
    .name = "shmview._sync.Quick",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = quick_slots,
};

/* _is_quick(cls, array): whether a class with the bases Quick and an array of ctypes works as this
 * file expects; array is ctypes.Array. The slot must be a plain member at the same offset as in the
 * classes before. If a version of CPython lays out classes in another way, this returns False, and
 * sharedctypes uses the class of ctypes alone. */
PyObject *module_is_quick(PyObject *module, PyObject *args)
{
    PyTypeObject *cls, *array;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyType_Type, &cls, &PyType_Type, &array))
        return NULL;
    PyObject *slot = PyObject_GetAttrString((PyObject *)cls, "_place");
    if (!slot)
        return NULL;
    Py_ssize_t offset =
        Py_IS_TYPE(slot, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)slot)->d_member->offset : 0;
    Py_DECREF(slot);
    const PyMappingMethods *theirs = array->tp_as_mapping;
    if (offset <= 0 || !theirs || cls->tp_as_mapping->mp_subscript != quick_subscript)
        Py_RETURN_FALSE;
    atomic_store(&ctypes_get, theirs->mp_subscript);
    atomic_store(&ctypes_set, theirs->mp_ass_subscript);
    Py_ssize_t known = 0;
    return PyBool_FromLong(atomic_compare_exchange_strong(&slot_offset, &known, offset) ||
                           known == offset);
}
