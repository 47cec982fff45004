/* SPDX-License-Identifier: Apache-2.0 */
/* sync.h - what the files of the extension module shmview._sync share: locks, and objects
 * with a lock, in memory that a family of processes inherits or passes on. Needs neither
 * libshmview nor a daemon; the kernel counts who has the memory.
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

#include "word.h"

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
    struct word *word;
    PyObject *block; /* keeps the word's memory */
    bool recursive;
    PyObject *weakrefs;
};
extern PyType_Spec lock_spec, rlock_spec;

/* Takes one that is not free, waiting without the GIL. As lock_take(). */
int lock_take_slowly(struct lock *lock, int64_t deadline);
/* Tells, of a lock that was taken, that a holder died inside. Returns 0, or -1 with an
 * exception: then it is not held any more. */
int lock_tell_death(struct lock *lock);
/* Raises what the standard library raises for a lock that is not the caller's. */
int lock_refuse(const struct lock *lock);

#define FOREVER INT64_MAX

/* Takes it. Returns 0, 1 (the deadline has passed; 0 tries once), or -1 with an exception,
 * holding nothing. */
static inline int lock_take(struct lock *lock, int64_t deadline)
{
    struct word *w = lock->word;
    const struct self *me = self_get();
    if (LIKELY(word_try(w, self_owner(me, lock->recursive), me->pid))) {
        atomic_store_explicit(&w->depth, 1, memory_order_relaxed);
        return LIKELY(!atomic_load_explicit(&w->died, memory_order_relaxed))
                   ? 0
                   : lock_tell_death(lock);
    }
    return lock_take_slowly(lock, deadline);
}

/* Whether the calling thread, or for a lock of processes its process, holds it. */
static inline bool lock_is_mine(const struct lock *lock)
{
    return word_is_of(lock->word, self_owner(self_get(), lock->recursive));
}

/* Gives it back. Returns 0 or -1 with an exception. */
static inline int lock_give(struct lock *lock)
{
    struct word *w = lock->word;
    if (lock->recursive) {
        if (UNLIKELY(!lock_is_mine(lock)))
            return lock_refuse(lock);
        uint32_t depth = atomic_load_explicit(&w->depth, memory_order_relaxed);
        if (UNLIKELY(depth > 1)) {
            atomic_store_explicit(&w->depth, depth - 1, memory_order_relaxed);
            return 0;
        }
    }
    if (UNLIKELY(atomic_load_explicit(&w->died, memory_order_relaxed)) &&
        (atomic_load_explicit(&w->owner, memory_order_relaxed) & WORD_ID))
        atomic_store_explicit(&w->died, 0, memory_order_relaxed);
    return LIKELY(word_give(w)) ? 0 : lock_refuse(lock);
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
    PyObject *acquire, *release, *enter, *exit; /* of the lock; the last two or neither */
    struct elements elements;                   /* of obj */
    PyObject *weakrefs;
};
extern PyType_Spec base_spec, value_spec, array_spec;

/* Takes and gives back the lock, whatever it is. Return 0 or -1 with an exception. */
int synchronized_enter_slowly(struct synchronized *s);
int synchronized_leave_slowly(struct synchronized *s);
static inline int synchronized_enter(struct synchronized *s)
{
    return LIKELY(s->fast) ? lock_take(s->fast, FOREVER) : synchronized_enter_slowly(s);
}
static inline int synchronized_leave(struct synchronized *s)
{
    return LIKELY(s->fast) ? lock_give(s->fast) : synchronized_leave_slowly(s);
}
#endif
