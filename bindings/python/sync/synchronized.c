/* SPDX-License-Identifier: Apache-2.0 */
/* A ctypes object in shared memory with its lock, like the wrappers of
 * multiprocessing.sharedctypes: every access to an element takes the lock.
 *
 * Two cases are fast. The lock is usually an RLock of this module, whose mutex is then used without
 * a method call. The elements are usually of a plain type, and are then accessed without ctypes.
 * Other locks and types work through their methods. */
#include "sync.h"

/* --- The lock ------------------------------------------------------------ */

static int call(PyObject *method)
{
    PyObject *done = PyObject_CallNoArgs(method);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int synchronized_enter_slowly(struct synchronized *s, int r)
{
    return s->fast ? lock_take_slowly(s->fast, r, SHMVIEW_FOREVER) : call(s->acquire);
}

/* If an exception is already set, it stays, and an error of release() is dropped. */
int synchronized_leave_slowly(struct synchronized *s)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int r = call(s->release);
    if (type) {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
    return r;
}

static PyObject *get_obj(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(((struct synchronized *)op)->obj);
}

static PyObject *get_lock(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(((struct synchronized *)op)->lock);
}

static PyObject *get_owner_died(PyObject *op, void *Py_UNUSED(closure))
{
    struct synchronized *self = (struct synchronized *)op;
    if (!self->fast)
        Py_RETURN_NONE;
    return PyObject_GetAttrString(self->lock, "owner_died");
}

static PyObject *reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct synchronized *self = (struct synchronized *)op;
    return PyObject_CallMethod(self->state->helpers, "_reduce_synchronized", "OOO", op, self->obj,
                               self->lock);
}

static PyObject *repr(PyObject *op)
{
    return PyUnicode_FromFormat("<%s wrapper for %R>", _PyType_Name(Py_TYPE(op)),
                                ((struct synchronized *)op)->obj);
}

/* --- Elements ------------------------------------------------------------ */

/* Access through ctypes, for other types than the plain ones and for unusual keys and values. key
 * NULL stands for the attribute value of a single object. */
static PyObject *get_by_object(struct synchronized *s, PyObject *key)
{
    return key ? PyObject_GetItem(s->obj, key) : PyObject_GetAttrString(s->obj, "value");
}
static int set_by_object(struct synchronized *s, PyObject *key, PyObject *value)
{
    return key ? PyObject_SetItem(s->obj, key, value)
               : PyObject_SetAttrString(s->obj, "value", value);
}

static PyObject *get(struct synchronized *s, PyObject *key)
{
    PyObject *got = NULL;
    if (UNLIKELY(synchronized_enter(s)))
        return NULL;
    if (!LIKELY(s->elements.code[0]))
        got = get_by_object(s, key);
    else if (!key)
        got = element_get(s->elements.code[0], s->elements.data);
    else if (!elements_get(&s->elements, key, &got))
        got = get_by_object(s, key);
    if (UNLIKELY(synchronized_leave(s)))
        Py_CLEAR(got);
    return got;
}

static int set(struct synchronized *s, PyObject *key, PyObject *value)
{
    int r = 0;
    if (UNLIKELY(synchronized_enter(s)))
        return -1;
    if (LIKELY(s->elements.code[0]))
        r = key ? elements_set(&s->elements, key, value)
                : element_set(s->elements.code[0], s->elements.data, value);
    if (r <= 0)
        r = r < 0 ? -1 : set_by_object(s, key, value);
    return UNLIKELY(synchronized_leave(s)) || r < 0 ? -1 : 0;
}

/* --- As a sequence ------------------------------------------------------- */

static Py_ssize_t array_length(PyObject *op)
{
    return ((struct synchronized *)op)->elements.length;
}

static PyObject *array_item(PyObject *op, Py_ssize_t i)
{
    struct synchronized *self = (struct synchronized *)op;
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *got = key ? get(self, key) : NULL;
    Py_XDECREF(key);
    return got;
}

static PyObject *array_subscript(PyObject *op, PyObject *key)
{
    return get((struct synchronized *)op, key);
}

static int array_ass_subscript(PyObject *op, PyObject *key, PyObject *value)
{
    if (LIKELY(value))
        return set((struct synchronized *)op, key, value);
    PyErr_SetString(PyExc_TypeError, "Array does not support item deletion");
    return -1;
}

static PyObject *value_get(PyObject *op, void *Py_UNUSED(closure))
{
    return get((struct synchronized *)op, NULL);
}

static int value_set(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    if (LIKELY(value))
        return set((struct synchronized *)op, NULL, value);
    PyErr_SetString(PyExc_AttributeError, "value cannot be deleted");
    return -1;
}

/* --- As a buffer --------------------------------------------------------- */

/* Exports the memory itself. For plain elements the format is their letter: numpy reads it faster
 * than the format of ctypes, which has a byte order. Other elements have the buffer of ctypes. */
static int getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct synchronized *self = (struct synchronized *)op;
    struct elements *e = &self->elements;
    bool plain = e->code[0] && PyObject_TypeCheck(op, self->state->array_type);
    if (!plain)
        return PyObject_GetBuffer(self->obj, buffer, flags);
    *buffer = (Py_buffer){
        .buf = e->data,
        .obj = Py_NewRef(op),
        .len = e->length * e->itemsize,
        .itemsize = e->itemsize,
        .ndim = 1,
        .format = flags & PyBUF_FORMAT ? e->code : NULL,
        .shape = flags & PyBUF_ND ? &e->length : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &e->itemsize : NULL,
    };
    return 0;
}

/* --- Making one ---------------------------------------------------------- */

/* Binds the methods of the lock once, because the object offers them as its own. Binding two at
 * each with statement would make it take half as long again. Returns 0, or -1 with an exception. */
static int find_methods(struct synchronized *s)
{
    if (!(s->acquire = PyObject_GetAttrString(s->lock, "acquire")) ||
        !(s->release = PyObject_GetAttrString(s->lock, "release")))
        return -1;
    s->enter = PyObject_GetAttrString(s->lock, "__enter__");
    s->exit = s->enter ? PyObject_GetAttrString(s->lock, "__exit__") : NULL;
    if (!s->exit && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear(); /* a lock that has only acquire() and release() */
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *synchronized_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"obj", "lock", "ctx", NULL};
    struct state *state = state_of(type);
    PyObject *obj, *lock = Py_None, *ctx;
    if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:synchronized", keywords, &obj,
                                               &lock, &ctx))
        return NULL;
    lock = lock == Py_None ? PyObject_CallNoArgs((PyObject *)state->rlock_type) : Py_NewRef(lock);
    struct synchronized *self = lock ? (struct synchronized *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        Py_XDECREF(lock);
        return NULL;
    }
    self->state = state;
    self->obj = Py_NewRef(obj);
    self->lock = lock;
    if (Py_IS_TYPE(lock, state->lock_type) || Py_IS_TYPE(lock, state->rlock_type))
        self->mutex = (self->fast = (struct lock *)lock)->mutex;
    bool is_array = PyObject_TypeCheck((PyObject *)self, state->array_type);
    if (find_methods(self) || elements_find(state, obj, is_array, &self->elements))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* Does nothing. synchronized_new() has initialised the object, and the __init__() of
 * multiprocessing's class, which the subclasses in sharedctypes.py inherit too, has nothing to add.
 */
static int synchronized_init(PyObject *Py_UNUSED(op), PyObject *Py_UNUSED(args),
                             PyObject *Py_UNUSED(kwargs))
{
    return 0;
}

static int traverse(PyObject *op, visitproc visit, void *arg)
{
    struct synchronized *self = (struct synchronized *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->obj);
    Py_VISIT(self->lock);
    Py_VISIT(self->acquire);
    Py_VISIT(self->release);
    Py_VISIT(self->enter);
    Py_VISIT(self->exit);
    return 0;
}

static void synchronized_dealloc(PyObject *op)
{
    struct synchronized *self = (struct synchronized *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(op);
    Py_XDECREF(self->acquire);
    Py_XDECREF(self->release);
    Py_XDECREF(self->enter);
    Py_XDECREF(self->exit);
    Py_XDECREF(self->obj);
    Py_XDECREF(self->lock);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"get_obj", get_obj, METH_NOARGS,
     "get_obj()\n--\n\nReturns the ctypes object itself, whose accesses take no lock."},
    {"get_lock", get_lock, METH_NOARGS, "get_lock()\n--\n\nReturns the lock."},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"owner_died", get_owner_died, NULL,
     "The attribute owner_died of its lock, see RLock; None for a lock of another module.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"acquire", T_OBJECT_EX, offsetof(struct synchronized, acquire), READONLY,
     "acquire(block=True, timeout=None): takes the lock, see RLock.acquire()."},
    {"release", T_OBJECT_EX, offsetof(struct synchronized, release), READONLY,
     "release(): gives the lock back."},
    {"__enter__", T_OBJECT_EX, offsetof(struct synchronized, enter), READONLY, NULL},
    {"__exit__", T_OBJECT_EX, offsetof(struct synchronized, exit), READONLY, NULL},
    {"_obj", T_OBJECT, offsetof(struct synchronized, obj), READONLY, NULL},
    {"_lock", T_OBJECT, offsetof(struct synchronized, lock), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct synchronized, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot base_slots[] = {
    {Py_tp_doc, "SynchronizedBase(obj, lock=None, ctx=None)\n--\n\nA ctypes object with a lock."},
    {Py_tp_new, synchronized_new},
    {Py_tp_init, synchronized_init},
    {Py_tp_dealloc, synchronized_dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_bf_getbuffer, getbuffer},
    {0, NULL},
};
PyType_Spec base_spec = {
    .name = "shmview._sync.SynchronizedBase",
    .basicsize = sizeof(struct synchronized),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = base_slots,
};

static PyGetSetDef value_getset[] = {
    {"value", value_get, value_set, "The value; reading and setting it takes the lock.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot value_slots[] = {
    {Py_tp_doc, "Synchronized(obj, lock=None, ctx=None)\n--\n\n"
                "A ctypes number with a lock. x.value += 1 takes the lock twice, so another\n"
                "process may write in between. Hold the lock, with x:, for steps that belong\n"
                "together."},
    {Py_tp_getset, value_getset},
    {0, NULL},
};
PyType_Spec value_spec = {
    .name = "shmview._sync.Synchronized",
    .basicsize = sizeof(struct synchronized),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = value_slots,
};

/* bytes() would take the buffer otherwise, which the class of multiprocessing does not have: there
 * it makes a byte of each element. */
static PyObject *array_bytes(PyObject *op, PyObject *Py_UNUSED(unused))
{
    PyObject *all = PySequence_List(op);
    PyObject *bytes = all ? PyBytes_FromObject(all) : NULL;
    Py_XDECREF(all);
    return bytes;
}

static PyMethodDef array_methods[] = {
    {"__bytes__", array_bytes, METH_NOARGS,
     "Returns a byte for each element, as for an array of multiprocessing."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot array_slots[] = {
    {Py_tp_doc, "SynchronizedArray(obj, lock=None, ctx=None)\n--\n\n"
                "A ctypes array with a lock. An element or a slice is read or set with the lock\n"
                "held. As a buffer, for example in numpy.asarray(arr), the array is the memory\n"
                "itself: hold the lock while you use it."},
    {Py_tp_methods, array_methods},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_subscript},
    {Py_mp_ass_subscript, array_ass_subscript},
    {Py_sq_length, array_length},
    {Py_sq_item, array_item},
    {0, NULL},
};
PyType_Spec array_spec = {
    .name = "shmview._sync.SynchronizedArray",
    .basicsize = sizeof(struct synchronized),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = array_slots,
};
