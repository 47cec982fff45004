/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - what the files of the extension module shmview._core share.
 *
 * Only <shmview/...> of libshmview is used. Every object keeps the module's state; a view
 * keeps its segment, a segment its connection. Written for CPython 3.9 to 3.14. What several
 * threads may touch is guarded by the GIL, which a free-threaded interpreter switches on for
 * this module; counts are kept so that they hold without it as well. */
#ifndef CORE_H
#define CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>
#include <shmview/view.h>

#include <structmember.h>

#include "unlocked.h"

#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
#endif

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Counts that another thread may change. */
#ifdef Py_GIL_DISABLED
#define COUNT_ADD(count, n) ((void)__atomic_fetch_add(&(count), (n), __ATOMIC_SEQ_CST))
#define COUNT(count)        __atomic_load_n(&(count), __ATOMIC_SEQ_CST)
#else
#define COUNT_ADD(count, n) ((void)((count) += (n)))
#define COUNT(count)        (count)
#endif

/* Of one module object. The references are owned. */
struct state {
    PyTypeObject *connection_type;
    PyTypeObject *segment_type;
    PyTypeObject *guard_type;
    PyTypeObject *view_type, *lease_type;
    PyTypeObject *special_type, *bound_type; /* special.c */
    PyObject *make_error;                    /* shmview._errors.make */
    PyObject *make_death;                    /* shmview._errors.make_death */
    PyObject *format_text;                   /* shmview._formats.format_text */
    PyObject *misaligned;                    /* shmview._errors.Misaligned */
    PyObject *types;                         /* the module shmview._types */
    PyObject *default_connection;            /* or NULL: not needed yet */
};
struct state *state_of_type(PyTypeObject *type);
/* tp_new of types whose objects only functions of the module make. */
PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* --- error.c ------------------------------------------------------------- */

/* Raises what belongs to r, a negated SHMVIEW_ERR_*, with the text of the last failed call
 * of this thread (for SHMVIEW_ERR_INTERRUPTED: what a signal handler has raised), and facts as
 * attributes: those of Py_BuildValue(format), a dict, or NULL. Returns NULL. */
PyObject *raise_error(struct state *state, int r, const char *format, ...);
/* Like raise_error(), but with a text of our own, which is borrowed, and no facts. */
PyObject *raise_text(struct state *state, int error, const char *text);

/* --- connection.c -------------------------------------------------------- */

struct connection {
    PyObject_HEAD struct state *state;
    struct shmview_connection *handle; /* NULL: closed */
    Py_ssize_t n_calls;                /* that run without the GIL now, and segments */
};
extern PyType_Spec connection_spec;

/* r = call, without the GIL. While it waits signal handlers run; where one
 * raises, r is -SHMVIEW_ERR_INTERRUPTED, and raise_error() leaves what it has raised. The call may
 * have succeeded all the same: the caller must give back what it got.
 *
 * Every call that may ask the daemon is made so, for the handlers run, and wait for the GIL, while
 * their thread has the library's mutexes: a thread that waited for those with the GIL would never
 * get them. */
#define UNLOCKED_CALL(r, call)                                                                     \
    do {                                                                                           \
        PyThreadState *unlocked_thread;                                                            \
        unlocked_begin(&unlocked_thread);                                                          \
        (r) = (call);                                                                              \
        (r) = unlocked_end(&unlocked_thread, r);                                                   \
    } while (0)
/* Like UNLOCKED_CALL(), but the connection cannot be closed before the call returns. */
#define CONNECTION_CALL(connection, r, call)                                                       \
    do {                                                                                           \
        COUNT_ADD((connection)->n_calls, 1);                                                       \
        UNLOCKED_CALL(r, call);                                                                    \
        COUNT_ADD((connection)->n_calls, -1);                                                      \
    } while (0)

/* The argument given as connection=, or the process's own where that is None or NULL. A new
 * reference, or NULL with an exception. */
struct connection *connection_take(struct state *state, PyObject *argument);
/* Its handle, or NULL with an exception where it is closed. */
struct shmview_connection *connection_use(struct connection *connection);
PyObject *module_default_connection(PyObject *module, PyObject *start);
PyObject *module_own_connection(PyObject *module, PyObject *unused);
PyObject *module_forget_connections(PyObject *module, PyObject *unused);

/* --- segment.c ----------------------------------------------------------- */

struct segment {
    PyObject_HEAD struct state *state;
    struct connection *connection;  /* NULL: foreign memory */
    struct shmview_segment *handle; /* NULL: closed */
    Py_ssize_t n_out;               /* views and buffers that need the mapping */
    Py_ssize_t n_calls;             /* that use the handle without the GIL now */
    unsigned forks;                 /* n_forks when n_calls was counted */
    unsigned entered;               /* n_forks when its lock was known to need no daemon */
    PyObject *watch;                /* what shmview._aio keeps of this segment, or NULL */
    PyObject *layouts;              /* dict of view name: list of layouts declared here, or NULL */
    PyObject *weakrefs;
};
extern PyType_Spec segment_spec;

extern unsigned n_forks; /* behind this process: a child has none of its parent's other threads */
void count_fork(void);   /* in the child */

/* How many calls of this process use the handle without the GIL. */
static inline Py_ssize_t calls_of(struct segment *segment)
{
    if (UNLIKELY(segment->forks != n_forks)) {
        segment->forks = n_forks;
        segment->n_calls = 0;
    }
    return COUNT(segment->n_calls);
}
/* Before and after such a call: while it runs, the segment cannot be closed. */
static inline void call_begins(struct segment *segment)
{
    calls_of(segment);
    COUNT_ADD(segment->n_calls, 1);
}
static inline void call_ends(struct segment *segment)
{
    COUNT_ADD(segment->n_calls, -1);
}
/* UNLOCKED_CALL(), between the two. */
#define SEGMENT_CALL(segment, r, call)                                                             \
    do {                                                                                           \
        call_begins(segment);                                                                      \
        UNLOCKED_CALL(r, call);                                                                    \
        call_ends(segment);                                                                        \
    } while (0)

/* Whether its lock can be touched with the GIL held. A forked child attaches again first, in the
 * call that needs it. */
static inline bool is_entered(const struct segment *segment)
{
    return LIKELY(segment->entered == n_forks);
}

/* The handle, or NULL with ValueError where the segment is closed. */
static inline struct shmview_segment *segment_use(struct segment *segment)
{
    if (UNLIKELY(!segment->handle))
        PyErr_SetString(PyExc_ValueError, "the segment is closed");
    return segment->handle;
}

PyObject *module_create(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *module_attach(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *module_remove(PyObject *module, PyObject *args, PyObject *kwargs);

/* --- creation.c ---------------------------------------------------------- */

PyObject *module_await_creation(PyObject *module, PyObject *args);

/* --- layouts.c ----------------------------------------------------------- */

/* A new list of the names of those that have a view of this name; or NULL. Asks the daemon. */
PyObject *layouts_with(struct segment *segment, PyObject *view);

/* --- segment_view.c ------------------------------------------------------ */

/* What a user gives as format, in a text that libshmview knows: a new str, or NULL. */
PyObject *format_text(struct state *state, PyObject *format);
PyObject *module_format_size(PyObject *module, PyObject *format);

/* --- wait.c -------------------------------------------------------------- */

/* timeout in seconds, or None, as a deadline. Returns 0 or -1 with an exception. */
int parse_timeout(PyObject *timeout, int64_t *ret_deadline);

/* --- lock.c -------------------------------------------------------------- */

/* Takes the lock, mode SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED. Returns 0; SHMVIEW_OWNER_DIED:
 * it is held exclusively and *ret_died is a new OwnerDied, not raised; 1 + SHMVIEW_OWNER_DIED:
 * the deadline passed, nothing is raised; or -1 with an exception. */
#define LOCK_TIMED_OUT (1 + SHMVIEW_OWNER_DIED)
int lock_take(struct segment *segment, int mode, int64_t deadline, PyObject **ret_died);
/* Gives it back. Returns 0 or -1 with an exception. */
int lock_give(struct segment *segment, bool repaired);

extern PyType_Spec guard_spec;
#endif
