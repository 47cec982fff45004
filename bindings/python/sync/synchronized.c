/* SPDX-License-Identifier: Apache-2.0 */
/* A ctypes object in shared memory with its lock, as multiprocessing.sharedctypes has it:
 * every access to an element takes the lock. */
#include "sync.h"

#include <string.h>

/* --- The lock ------------------------------------------------------------ */

static int call(PyObject *method)
{
    PyObject *done = PyObject_CallNoArgs(method);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int synchronized_enter_slowly(struct synchronized *s)
{
    return call(s->acquire);
}

/* An exception that is on its way stays. */
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

/* --- One element --------------------------------------------------------- */

static char *element_at(struct synchronized *s, Py_ssize_t i)
{
    if (i >= 0 && i < s->length)
        return s->data + i * s->itemsize;
    PyErr_SetString(PyExc_IndexError, "invalid index");
    return NULL;
}

static PyObject *get_at(struct synchronized *s, Py_ssize_t i)
{
    const char *p = element_at(s, i);
    if (UNLIKELY(!p) || UNLIKELY(synchronized_enter(s)))
        return NULL;
    PyObject *element = element_get(s->code[0], p);
    if (UNLIKELY(synchronized_leave(s)))
        Py_CLEAR(element);
    return element;
}

/* What the short way cannot do, obj does. key NULL: its attribute value. */
static int set_by_object(struct synchronized *s, PyObject *key, PyObject *value)
{
    if (synchronized_enter(s))
        return -1;
    int r =
        key ? PyObject_SetItem(s->obj, key, value) : PyObject_SetAttrString(s->obj, "value", value);
    return synchronized_leave(s) ? -1 : r;
}

static PyObject *get_by_object(struct synchronized *s, PyObject *key)
{
    if (synchronized_enter(s))
        return NULL;
    PyObject *got = key ? PyObject_GetItem(s->obj, key) : PyObject_GetAttrString(s->obj, "value");
    if (synchronized_leave(s))
        Py_CLEAR(got);
    return got;
}

/* Returns as element_set(). */
static int set_at(struct synchronized *s, Py_ssize_t i, PyObject *value)
{
    char *p = element_at(s, i);
    if (UNLIKELY(!p) || UNLIKELY(synchronized_enter(s)))
        return -1;
    int r = element_set(s->code[0], p, value);
    return UNLIKELY(synchronized_leave(s)) ? -1 : r;
}

/* --- Slices -------------------------------------------------------------- */

static PyObject *get_slice(struct synchronized *s, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return NULL;
    Py_ssize_t n = PySlice_AdjustIndices(s->length, &start, &stop, step);
    if (synchronized_enter(s))
        return NULL;
    PyObject *got = elements_get(s->code[0], s->data + start * s->itemsize, n, step * s->itemsize);
    if (synchronized_leave(s))
        Py_CLEAR(got);
    return got;
}

/* From what has the very elements as a buffer: array.array, numpy, another of ours. Returns
 * as element_set(). */
static int set_slice_from_buffer(struct synchronized *s, Py_ssize_t start, Py_ssize_t n,
                                 PyObject *value)
{
    Py_buffer from;
    if (PyObject_GetBuffer(value, &from, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        return 0;
    }
    int r = 0;
    if (from.ndim == 1 && from.format && strcmp(from.format, s->code) == 0 &&
        from.len == n * s->itemsize) {
        r = synchronized_enter(s) ? -1 : 1;
        if (r > 0) {
            memmove(s->data + start * s->itemsize, from.buf, (size_t)from.len);
            r = synchronized_leave(s) ? -1 : 1;
        }
    }
    PyBuffer_Release(&from);
    return r;
}

static int set_slice(struct synchronized *s, PyObject *slice, PyObject *value)
{
    Py_ssize_t start, stop, step;
    int r = 0;
    if (PySlice_Unpack(slice, &start, &stop, &step))
        return -1;
    Py_ssize_t n = PySlice_AdjustIndices(s->length, &start, &stop, step);
    bool fast = PyList_CheckExact(value) || PyTuple_CheckExact(value);
    if (fast && PySequence_Fast_GET_SIZE(value) == n) {
        if (synchronized_enter(s))
            return -1;
        r = elements_set(s->code[0], s->data + start * s->itemsize, n, step * s->itemsize,
                         PySequence_Fast_ITEMS(value));
        if (r == 0) /* one of them is for obj to judge; it begins anew */
            r = PyObject_SetItem(s->obj, slice, value) ? -1 : 1;
        if (synchronized_leave(s))
            r = -1;
    } else if (!fast && step == 1 && PyObject_CheckBuffer(value)) {
        r = set_slice_from_buffer(s, start, n, value);
    }
    return r ? (r > 0 ? 0 : -1) : set_by_object(s, slice, value);
}

/* --- As a sequence ------------------------------------------------------- */

static Py_ssize_t array_length(PyObject *op)
{
    return ((struct synchronized *)op)->length;
}

static PyObject *array_item(PyObject *op, Py_ssize_t i)
{
    struct synchronized *self = (struct synchronized *)op;
    if (LIKELY(self->code[0]))
        return get_at(self, i);
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *got = key ? get_by_object(self, key) : NULL;
    Py_XDECREF(key);
    return got;
}

static int parse_index(struct synchronized *s, PyObject *key, Py_ssize_t *ret)
{
    *ret = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (UNLIKELY(*ret == -1) && PyErr_Occurred())
        return -1;
    if (*ret < 0)
        *ret += s->length;
    return 0;
}

static PyObject *array_subscript(PyObject *op, PyObject *key)
{
    struct synchronized *self = (struct synchronized *)op;
    Py_ssize_t i;
    if (LIKELY(self->code[0])) {
        if (LIKELY(PyIndex_Check(key)))
            return parse_index(self, key, &i) ? NULL : get_at(self, i);
        if (PySlice_Check(key))
            return get_slice(self, key);
    }
    return get_by_object(self, key);
}

static int array_ass_subscript(PyObject *op, PyObject *key, PyObject *value)
{
    struct synchronized *self = (struct synchronized *)op;
    Py_ssize_t i;
    if (UNLIKELY(!value)) {
        PyErr_SetString(PyExc_TypeError, "Array does not support item deletion");
        return -1;
    }
    if (LIKELY(self->code[0])) {
        if (LIKELY(PyIndex_Check(key))) {
            int r = parse_index(self, key, &i) ? -1 : set_at(self, i, value);
            if (LIKELY(r))
                return r > 0 ? 0 : -1;
        } else if (PySlice_Check(key)) {
            return set_slice(self, key, value);
        }
    }
    return set_by_object(self, key, value);
}

static PyObject *value_get(PyObject *op, void *Py_UNUSED(closure))
{
    struct synchronized *self = (struct synchronized *)op;
    return LIKELY(self->code[0]) ? get_at(self, 0) : get_by_object(self, NULL);
}

static int value_set(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    struct synchronized *self = (struct synchronized *)op;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "value cannot be deleted");
        return -1;
    }
    int r = LIKELY(self->code[0]) ? set_at(self, 0, value) : 0;
    return r ? (r > 0 ? 0 : -1) : set_by_object(self, NULL, value);
}

/* --- As a buffer --------------------------------------------------------- */

/* Plain elements under the letter that numpy reads without a detour; else as ctypes says. */
static int getbuffer(PyObject *op, Py_buffer *buffer, int flags)
{
    struct synchronized *self = (struct synchronized *)op;
    bool plain = self->code[0] && PyObject_TypeCheck(op, self->state->array_type);
    if (!plain)
        return PyObject_GetBuffer(self->obj, buffer, flags);
    *buffer = (Py_buffer){
        .buf = self->data,
        .obj = Py_NewRef(op),
        .len = self->length * self->itemsize,
        .itemsize = self->itemsize,
        .ndim = 1,
        .format = flags & PyBUF_FORMAT ? self->code : NULL,
        .shape = flags & PyBUF_ND ? &self->length : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &self->itemsize : NULL,
    };
    return 0;
}

/* --- Making one ---------------------------------------------------------- */

/* Finds the elements of obj, if they are of a plain type. */
static int find_elements(struct synchronized *s)
{
    Py_buffer buffer;
    bool is_array = PyObject_TypeCheck((PyObject *)s, s->state->array_type);
    PyObject *type = is_array ? PyObject_GetAttrString((PyObject *)Py_TYPE(s->obj), "_type_")
                              : Py_NewRef((PyObject *)Py_TYPE(s->obj));
    if (!type)
        return -1;
    PyObject *code = PyDict_GetItemWithError(s->state->codes, type);
    Py_DECREF(type);
    if (is_array && (s->length = PyObject_Length(s->obj)) < 0)
        return -1;
    if (!code || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    if (PyObject_GetBuffer(s->obj, &buffer, PyBUF_WRITABLE))
        return -1;
    if (!is_array)
        s->length = 1;
    s->data = buffer.buf;
    s->itemsize = s->length ? buffer.len / s->length : 1;
    s->code[0] = (char)PyUnicode_READ_CHAR(code, 0);
    PyBuffer_Release(&buffer);
    return 0;
}

/* The lock's methods are the object's. Made once: a with statement that must bind two anew
 * takes half as long again. */
static int find_methods(struct synchronized *s)
{
    if (!(s->acquire = PyObject_GetAttrString(s->lock, "acquire")) ||
        !(s->release = PyObject_GetAttrString(s->lock, "release")))
        return -1;
    s->enter = PyObject_GetAttrString(s->lock, "__enter__");
    s->exit = s->enter ? PyObject_GetAttrString(s->lock, "__exit__") : NULL;
    if (!s->exit && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear(); /* a lock for acquire() and release() only */
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
        self->fast = (struct lock *)lock;
    if (find_methods(self) || find_elements(self))
        Py_CLEAR(self);
    return (PyObject *)self;
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
     "get_obj()\n--\n\nThe ctypes object itself, which takes no lock."},
    {"get_lock", get_lock, METH_NOARGS, "get_lock()\n--\n\nIts lock."},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"owner_died", get_owner_died, NULL, "The same of its lock; see RLock.owner_died.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"acquire", T_OBJECT_EX, offsetof(struct synchronized, acquire), READONLY,
     "acquire(block=True, timeout=None): takes the lock; see RLock.acquire()."},
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
    .name = "shmview.sharedctypes.SynchronizedBase",
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
                "A ctypes number with a lock. x.value += 1 takes it twice: hold it yourself,\n"
                "with x:, for what belongs together."},
    {Py_tp_getset, value_getset},
    {0, NULL},
};
PyType_Spec value_spec = {
    .name = "shmview.sharedctypes.Synchronized",
    .basicsize = sizeof(struct synchronized),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = value_slots,
};

static PyType_Slot array_slots[] = {
    {Py_tp_doc, "SynchronizedArray(obj, lock=None, ctx=None)\n--\n\n"
                "A ctypes array with a lock: an element or a slice is read or set with the lock\n"
                "held. As a buffer, numpy.asarray(arr), it is the memory itself: hold the lock."},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_subscript},
    {Py_mp_ass_subscript, array_ass_subscript},
    {Py_sq_length, array_length},
    {Py_sq_item, array_item},
    {0, NULL},
};
PyType_Spec array_spec = {
    .name = "shmview.sharedctypes.SynchronizedArray",
    .basicsize = sizeof(struct synchronized),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = array_slots,
};
