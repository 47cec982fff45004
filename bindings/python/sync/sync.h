/* SPDX-License-Identifier: Apache-2.0 */
/* sync.h - what the files of the extension module shmview._sync share: locks, and objects
 * with a lock, in memory that a family of processes inherits or passes on. shmview/family.h has
 * the memory and the mutexes; here they become objects of Python.
 *
 * What several threads may touch is in shared memory and atomic, or under the lock there;
 * the rest is not changed once it is made. */
#ifndef SYNC_H
#define SYNC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <structmember.h>

#include <shmview/family.h>

#include "src/unlocked.h"

#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
#endif

#if PY_VERSION_HEX < 0x030d0000
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION()     }
#endif

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Of one module object. The references are owned. */
struct state {
    PyTypeObject *arena_type, *lock_type, *rlock_type;
    PyTypeObject *base_type, *value_type, *array_type;
    PyTypeObject *place_type, *quick_type;
    PyObject *helpers; /* the module shmview._shared */
    PyObject *codes;   /* dict of ctypes type: its letter, for those that are plain numbers */
};
/* The state of the module whose type, or a base of it, type is. */
struct state *state_of(PyTypeObject *type);

/* --- arena.c ------------------------------------------------------------- */

extern PyType_Spec arena_spec;

/* --- lock.c -------------------------------------------------------------- */

struct lock {
    PyObject_HEAD struct state *state;
    struct shmview_mutex *mutex;
    PyObject *block; /* keeps the mutex's memory */
    bool recursive;
    PyObject *weakrefs;
};
extern PyType_Spec lock_spec, rlock_spec;

/* What lock_take() does after shmview_mutex_trylock() has returned r. */
int lock_take_slowly(struct lock *lock, int r, int64_t deadline);
/* Raises the exception for r, which a call has returned. Returns -1. */
int lock_fail(const struct lock *lock, int r);

/* Takes it. Returns 0, 1 (the deadline has passed; 0 tries once), or -1 with an exception,
 * holding nothing. */
static inline int lock_take(struct lock *lock, int64_t deadline)
{
    int r = shmview_mutex_trylock(lock->mutex);
    return LIKELY(r == 0) ? 0 : lock_take_slowly(lock, r, deadline);
}

/* Gives it back. Returns 0 or -1 with an exception. */
static inline int lock_give(struct lock *lock)
{
    int r = shmview_mutex_unlock(lock->mutex);
    return LIKELY(r == 0) ? 0 : lock_fail(lock, r);
}

/* --- element.c ----------------------------------------------------------- */

/* The element at p, of a type by its letter. */
PyObject *element_get(char code, const char *p);
/* Sets it. Returns 1; 0: not a value for the short way, which the object itself must judge;
 * or -1 with an exception. */
int element_set(char code, char *p, PyObject *value);

/* --- elements.c ---------------------------------------------------------- */

/* Elements of a plain type, one after the other. */
struct elements {
    char *data;
    Py_ssize_t length, itemsize;
    char code[2]; /* letter of the type; "": not a plain one */
};
/* Finds those of a ctypes object, which keeps them; is_array: of an array. The code is "" if
 * they are of no plain type. Returns 0 or -1 with an exception. */
int elements_find(struct state *state, PyObject *obj, bool is_array, struct elements *ret);

/* By a key as in []: an index or a slice. Return 1; 0: what only the object itself can do; or
 * -1 with an exception. A slice of which elements_set() leaves one to the object may be half
 * set. */
int elements_get(const struct elements *elements, PyObject *key, PyObject **ret);
int elements_set(const struct elements *elements, PyObject *key, PyObject *value);

/* --- quick.c ------------------------------------------------------------- */

extern PyType_Spec place_spec, quick_spec;

PyObject *module_is_quick(PyObject *module, PyObject *args);
PyObject *module_place(PyObject *module, PyObject *array);

/* --- synchronized.c ------------------------------------------------------ */

struct synchronized {
    PyObject_HEAD struct state *state;
    PyObject *obj;                              /* the ctypes object */
    PyObject *lock;                             /* its lock, of whatever type */
    struct lock *fast;                          /* the same if it is one of ours, else NULL */
    struct shmview_mutex *mutex;                /* of fast, for speed; or NULL */
    PyObject *acquire, *release, *enter, *exit; /* of the lock; the last two or neither */
    struct elements elements;                   /* of obj */
    PyObject *weakrefs;
};
extern PyType_Spec base_spec, value_spec, array_spec;

/* Takes and gives back the lock, whatever it is. Return 0 or -1 with an exception. */
int synchronized_enter_slowly(struct synchronized *s, int r);
int synchronized_leave_slowly(struct synchronized *s);
static inline int synchronized_enter(struct synchronized *s)
{
    int r = LIKELY(s->mutex) ? shmview_mutex_trylock(s->mutex) : -1;
    return LIKELY(r == 0) ? 0 : synchronized_enter_slowly(s, r);
}
static inline int synchronized_leave(struct synchronized *s)
{
    return LIKELY(s->mutex && shmview_mutex_unlock(s->mutex) == 0) ? 0
                                                                   : synchronized_leave_slowly(s);
}
#endif
