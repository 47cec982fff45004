/* SPDX-License-Identifier: Apache-2.0 */
/* sync.h - what the files of the extension module shmview._sync share: drop-ins for the locks and
 * the shared ctypes objects of multiprocessing. They live in the memory of a family, that is, of
 * processes that inherit it or pass it on, and need no daemon. shmview/family.h has the memory and
 * the mutexes; this module makes them objects of Python.
 *
 *   arena.c          Arena: memory of a family
 *   lock.c           Lock and RLock
 *   synchronized.c   Value and Array with a lock: each access to an element takes it
 *   element.c        one element of a plain type of ctypes, without ctypes
 *   elements.c       elements by index and slice
 *   quick.c          RawArray: an array of ctypes whose elements are accessed without ctypes
 *   shared.c         the base of the following objects
 *   event.c          Event
 *   condition.c      the waiters of a Condition
 *   monitor.c        state that several processes change and wait for; monitor.h has the rules
 *   semaphore.c      Semaphore, on a monitor
 *   barrier.c        Barrier, on a monitor
 *   queue.c, ring.c  what a Queue has in shared memory, on a monitor
 *
 * Why elements are handled here: access through ctypes makes an object for each step and costs more
 * than the lock. This module handles the usual values of the plain types itself. It leaves every
 * other case to ctypes, so that conversions and errors stay those of the standard library.
 *
 * Threads: the module works without a GIL. Data that several threads change is in shared memory,
 * where it is atomic or guarded by the lock. The members of the objects do not change after the
 * objects were made. */
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

/* Before CPython 3.13 the GIL alone protects a list. */
#if PY_VERSION_HEX < 0x030d0000
#define Py_BEGIN_CRITICAL_SECTION(op) {
#define Py_END_CRITICAL_SECTION()     }
#endif

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The state of one module object; each interpreter has its own. The references are owned. */
struct state {
    PyTypeObject *arena_type, *lock_type, *rlock_type;
    PyTypeObject *base_type, *value_type, *array_type;
    PyTypeObject *place_type, *quick_type;
    PyTypeObject *waiting_types[5]; /* of the specs in module.c */
    PyObject *helpers;              /* the module shmview._shared */
    PyObject *codes;                /* dict of a plain ctypes type: its letter */
};
/* Returns the state of the module for a type of the module or a subclass of one; borrowed. NULL
 * with an exception for another type. */
struct state *state_of(PyTypeObject *type);

/* --- arena.c ------------------------------------------------------------- */

extern PyType_Spec arena_spec;

/* --- shared.c and its users ---------------------------------------------- */

/* Returns the address of the memory of a Block, which has at least that many bytes and exists as
 * long as the Block, and its size; or NULL with an exception. */
void *block_address(PyObject *block, Py_ssize_t least, Py_ssize_t *ret_bytes);
extern PyType_Spec event_spec, waiters_spec, semaphore_spec, barrier_spec, queue_spec;

/* --- lock.c -------------------------------------------------------------- */

/* A Lock or an RLock. Each process that has the lock has its own object for the same mutex. */
struct lock {
    PyObject_HEAD struct state *state;
    struct shmview_mutex *mutex; /* in shared memory */
    PyObject *block;             /* owned; the Block of shmview._heap that keeps this memory */
    bool recursive;              /* an RLock */
    PyObject *weakrefs;
};
extern PyType_Spec lock_spec, rlock_spec;

/* Does the rest of lock_take() after shmview_mutex_trylock() has returned r. Waits without the
 * GIL. */
int lock_take_slowly(struct lock *lock, int r, int64_t deadline);
/* Raises the exception for r, the error of a call on the mutex. The classes and texts are those of
 * multiprocessing. Returns -1. */
int lock_fail(const struct lock *lock, int r);

/* Parses the arguments of acquire() by the rules of multiprocessing: a negative timeout counts as
 * 0, and block=False ignores the timeout. Returns 0, or -1 with an exception. */
int parse_deadline(PyObject *args, PyObject *kwargs, int64_t *ret_deadline);
/* The deadline that is timeout seconds from now; None is forever. Returns 0, or -1 with an
 * exception. */
int deadline_of(PyObject *timeout, int64_t *ret_deadline);

/* Takes the lock; a deadline of 0 tries once. Returns 0; 1 if the deadline has passed; or -1 with
 * an exception, and without the lock. If the last owner died inside, issues OwnerDiedWarning. */
static inline int lock_take(struct lock *lock, int64_t deadline)
{
    int r = shmview_mutex_trylock(lock->mutex);
    return LIKELY(r == 0) ? 0 : lock_take_slowly(lock, r, deadline);
}

/* Gives the lock back. Returns 0, or -1 with an exception. */
static inline int lock_give(struct lock *lock)
{
    int r = shmview_mutex_unlock(lock->mutex);
    return LIKELY(r == 0) ? 0 : lock_fail(lock, r);
}

/* --- element.c ----------------------------------------------------------- */

/* Returns the element at p; code is the letter of its type. */
PyObject *element_get(char code, const char *p);
/* Sets the element at p. Returns 1; 0 for a value that is not a usual one of the type, so that the
 * caller must let ctypes set it; or -1 with an exception. */
int element_set(char code, char *p, PyObject *value);

/* --- elements.c ---------------------------------------------------------- */

/* The elements of a plain type, without gaps. */
struct elements {
    char *data;
    Py_ssize_t length, itemsize;
    char code[2]; /* letter of the type, as a string; "": not a plain type */
};
/* Finds the elements of a ctypes object, whose memory they stay in. is_array is false for a single
 * value. Sets code to "" for other types than the plain ones; then only length is valid. Returns 0,
 * or -1 with an exception. */
int elements_find(struct state *state, PyObject *obj, bool is_array, struct elements *ret);

/* Get or set elements by the key of [], an index or a slice. Return 1; 0 if the caller must leave
 * the access to ctypes; or -1 with an exception. If elements_set() returns 0 for a slice, the
 * elements before an unusual value are already set, and ctypes sets them again. */
int elements_get(const struct elements *elements, PyObject *key, PyObject **ret);
int elements_set(const struct elements *elements, PyObject *key, PyObject *value);

/* --- quick.c ------------------------------------------------------------- */

extern PyType_Spec place_spec, quick_spec;

/* quick.c explains both. */
PyObject *module_is_quick(PyObject *module, PyObject *args);
PyObject *module_place(PyObject *module, PyObject *array);

/* --- synchronized.c ------------------------------------------------------ */

/* A ctypes object with its lock. References are owned. */
struct synchronized {
    PyObject_HEAD struct state *state;
    PyObject *obj;               /* the ctypes object */
    PyObject *lock;              /* its lock: any object with acquire() and release() */
    struct lock *fast;           /* the lock if it is a Lock or RLock of this module; borrowed */
    struct shmview_mutex *mutex; /* of fast, to save a step; or NULL */
    /* the bound methods of the lock; enter and exit are both NULL if it has not both */
    PyObject *acquire, *release, *enter, *exit;
    struct elements elements; /* of obj */
    PyObject *weakrefs;
};
extern PyType_Spec base_spec, value_spec, array_spec;

/* Take and give back the lock. A mutex of this module is used directly, and another lock by its
 * methods. r is the result of the attempt on the mutex. Return 0, or -1 with an exception. */
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
