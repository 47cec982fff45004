/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - what the files of the extension module shmview._core share: named segments, their locks,
 * and views. The package shmview/ adds the parts that need no speed: errors, layouts, asyncio.
 *
 *   connection.c                  Connection, and the one that the process uses by default
 *   segment.c segment_type.c      Segment: creating, attaching; the table of methods
 *   closing.c                     the end of its use
 *   lock.c guard.c reading.c      its lock; the with statement that holds it; reads without it
 *   phase.c layouts.c             its phases and changes; its layouts
 *   creation.c events.c           waiting for a segment to be created; events of the daemon
 *   access.c                      the users who may use a segment
 *   segment_view.c view.c         views of a segment; the type View and its table (view_type.c)
 *   index.c assign.c item*.c      reading and setting elements
 *   shape.c                       other views of the same elements
 *   buffer.c dlpack.c arrow.c     exports to other libraries
 *   foreign.c wrap.c              buffers of other objects: to copy from, to compare with; as views
 *   scalar.c sequence.c stats.c   a view of one element as a number, a view as a sequence; figures
 *   stream.c take.c stream_*.c    Stream: creating, opening, closing; taking and loaning; its table
 *   frame.c frame_type.c          Frame: its views; publishing and releasing it
 *   forward.c                     methods that are written in Python
 *   special.c unlocked.c wait.c   fast __enter__ and __exit__; calls without the GIL; timeouts
 *
 * The module uses only the public headers <shmview/...>, so it works with every libshmview of the
 * same ABI. It is written for CPython 3.9 to 3.14.
 *
 * Ownership: a view has a reference to its segment, and a segment to its connection, so nothing
 * ends while something that needs it exists. Every object points to the module's state, which its
 * type keeps.
 *
 * Threads: the GIL guards the members of all objects. A free-threaded interpreter enables its GIL
 * for this module (see module.c). A user can force it off, so counts are atomic in such a build. */
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
#if PY_VERSION_HEX < 0x030d0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* For counts that another thread may change. With a GIL they are plain, because each access to an
 * element would otherwise pay for two atomic instructions. */
#ifdef Py_GIL_DISABLED
#define COUNT_ADD(count, n) ((void)__atomic_fetch_add(&(count), (n), __ATOMIC_SEQ_CST))
#define COUNT(count)        __atomic_load_n(&(count), __ATOMIC_SEQ_CST)
#else
#define COUNT_ADD(count, n) ((void)((count) += (n)))
#define COUNT(count)        (count)
#endif

/* The state of one module object; each interpreter has its own. module_exec() fills it, and the
 * references are owned. */
struct state {
    PyTypeObject *connection_type;
    PyTypeObject *segment_type;
    PyTypeObject *guard_type, *reading_type, *monitor_type;
    PyTypeObject *view_type, *lease_type;
    PyTypeObject *stream_type, *frame_type;
    PyTypeObject *special_type, *bound_type; /* special.c */
    PyObject *make_error;                    /* shmview._errors.make */
    PyObject *make_death;                    /* shmview._errors.make_death */
    PyObject *format_text;                   /* shmview._formats.format_text */
    PyObject *misaligned;                    /* shmview._errors.Misaligned */
    PyObject *types;                         /* the module shmview._types */
    PyObject *default_connection;            /* of the process; NULL: not needed yet */
};
/* Returns the state of the module that made the type; borrowed. NULL with an exception for another
 * type. */
struct state *state_of_type(PyTypeObject *type);
/* tp_new for types whose objects only functions of the module make. Raises TypeError. Without it
 * such a type would inherit object's tp_new, which makes an object without a handle. */
PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

/* --- error.c ------------------------------------------------------------- */

/* Raises the exception for r, a negated SHMVIEW_ERR_*, with the error text of this thread's last
 * failed call. format and the arguments after it are those of Py_BuildValue() for a dict of facts,
 * which become attributes of the exception; NULL for none. If r is SHMVIEW_ERR_INTERRUPTED and a
 * signal handler has raised an exception, that exception stays instead. Returns NULL. */
PyObject *raise_error(struct state *state, int r, const char *format, ...);
/* Like raise_error(), but takes a positive SHMVIEW_ERR_*, a text, which is borrowed, and no facts.
 * For errors that this module finds itself. */
PyObject *raise_text(struct state *state, int error, const char *text);

/* Raises NoLayout for a view of this name. Takes over the text, which may be NULL with an
 * exception. Returns NULL. */
PyObject *raise_no_view(struct state *state, PyObject *view, PyObject *text);

/* Like raise_error() without facts, but turns errors other than MemoryError into BufferError,
 * because consumers and producers of buffers expect only these. Returns NULL. */
PyObject *raise_as_buffer_error(struct state *state, int r);

/* --- connection.c -------------------------------------------------------- */

struct connection {
    PyObject_HEAD struct state *state;
    struct shmview_connection *handle; /* NULL: closed */
    /* close() is refused unless both counts are 0, because what they count uses the handle */
    Py_ssize_t n_attached; /* segments and streams */
    Py_ssize_t n_calls;    /* calls that run without the GIL now */
    unsigned forks;        /* n_forks when n_calls was counted */
};
extern PyType_Spec connection_spec;

/* r = call, without the GIL. In the main thread, Python's signal handlers run while the call waits.
 * If a handler raises, r becomes -SHMVIEW_ERR_INTERRUPTED and the handler's exception is set. The
 * call may have succeeded nevertheless: then the caller must release what the call returned.
 *
 * Every call that may send a request to the daemon must use this macro. Otherwise two threads can
 * deadlock: a handler waits for the GIL while its thread holds mutexes of the library, and another
 * thread that holds the GIL waits for these mutexes. */
#define UNLOCKED_CALL(r, call)                                                                     \
    do {                                                                                           \
        PyThreadState *unlocked_thread;                                                            \
        unlocked_begin(&unlocked_thread);                                                          \
        (r) = (call);                                                                              \
        (r) = unlocked_end(&unlocked_thread, r);                                                   \
    } while (0)
/* Like UNLOCKED_CALL(), but another thread cannot close the connection before the call returns. */
#define CONNECTION_CALL(connection, r, call)                                                       \
    do {                                                                                           \
        count_begins(&(connection)->n_calls, &(connection)->forks);                                \
        UNLOCKED_CALL(r, call);                                                                    \
        count_ends(&(connection)->n_calls, &(connection)->forks);                                  \
    } while (0)

/* Returns the argument connection= of a call, or the default connection of the process if the
 * argument is None or NULL. Making the default connection may start a daemon. Returns a new
 * reference, or NULL with an exception. */
struct connection *connection_take(struct state *state, PyObject *argument);
/* Returns the handle of the connection, or NULL with ValueError if it is closed. */
struct shmview_connection *connection_use(struct connection *connection);
/* _default_connection(start): the default connection, which is made if there is none. */
PyObject *module_default_connection(PyObject *module, PyObject *start);
/* _own_connection(): the default connection, or None if there is none yet. */
PyObject *module_own_connection(PyObject *module, PyObject *unused);
/* _forget_connections(): drops the default connection, so that the next call makes a new one. */
PyObject *module_forget_connections(PyObject *module, PyObject *unused);

/* --- calls.c ------------------------------------------------------------- */

/* How many forks lie between this process and the one that loaded the module. A member that stores
 * it is out of date in a child. */
extern unsigned n_forks;
/* Increments n_forks; a handler of pthread_atfork() for the child. A signal handler may fork during
 * calls of its thread, which go on in the child: it counts them again. */
void count_fork(void);
/* Count a call that the thread begins, or end that. *forks is n_forks when *n_calls was counted; a
 * count of the parent begins again at 0. */
void count_begins(Py_ssize_t *n_calls, unsigned *forks);
void count_ends(Py_ssize_t *n_calls, unsigned *forks);

/* --- segment.c ----------------------------------------------------------- */

struct segment {
    PyObject_HEAD struct state *state;
    struct connection *connection;  /* owned; NULL: memory of another object (wrap.c) */
    struct shmview_segment *handle; /* NULL: closed */
    struct shmview_segment *parked; /* that of one closed early or being frozen, or NULL */
    PyObject *name;                 /* a str, also of a closed segment */
    Py_ssize_t n_out;               /* views and buffers that need the mapping */
    Py_ssize_t n_calls;             /* calls that use the handle without the GIL now */
    unsigned forks;                 /* n_forks when n_calls was counted; see calls_of() */
    unsigned entered;               /* n_forks when its lock was known to need no daemon */
    unsigned closing;               /* 1 + n_forks during the detach of close(), else 0 */
    PyObject *watch;                /* the Watch of shmview._aio for this segment, or NULL */
    PyObject *layouts;              /* dict of view name: list of layouts declared here, or NULL */
    PyObject *weakrefs;
    struct guard *spare_guard; /* memory for its next guard, or NULL */
    bool is_frame;             /* the memory of a frame (frame.c) */
    struct view *frame_views;  /* the views of such memory */
};
extern PyType_Spec segment_spec;

/* Returns how many calls of this process use the handle without the GIL. A child starts again from
 * the calls of the thread that forked, because the other threads of its parent do not exist in it.
 */
static inline Py_ssize_t calls_of(struct segment *segment)
{
    if (UNLIKELY(segment->forks != n_forks)) {
        segment->forks = n_forks;
        segment->n_calls = 0;
    }
    return COUNT(segment->n_calls);
}
/* Call these before and after a call without the GIL. In between, close() raises Busy. */
static inline void call_begins(struct segment *segment)
{
    count_begins(&segment->n_calls, &segment->forks);
}
static inline void call_ends(struct segment *segment)
{
    count_ends(&segment->n_calls, &segment->forks);
}
/* Like UNLOCKED_CALL(), but another thread cannot close the segment before the call returns. */
#define SEGMENT_CALL(segment, r, call)                                                             \
    do {                                                                                           \
        call_begins(segment);                                                                      \
        UNLOCKED_CALL(r, call);                                                                    \
        call_ends(segment);                                                                        \
    } while (0)

/* Whether calls on the lock that do not wait may be made with the GIL held. In a forked child the
 * first call on the lock attaches the segment again. That is a request to the daemon, so the call
 * must be made without the GIL (see UNLOCKED_CALL()). */
static inline bool is_entered(const struct segment *segment)
{
    return LIKELY(segment->entered == n_forks);
}

/* While close() of another thread detaches the segment, there is no handle; but the detach may be
 * refused, and then the segment has its handle again. Gives the GIL away until it is known. */
void segment_settle(struct segment *segment);

/* Returns the handle, or NULL with ValueError if the segment is closed. May give the GIL away
 * before it looks at the handle (segment_settle()). */
static inline struct shmview_segment *segment_use(struct segment *segment)
{
    if (UNLIKELY(!segment->handle)) {
        segment_settle(segment);
        if (!segment->handle)
            PyErr_SetString(PyExc_ValueError, "the segment is closed");
    }
    return segment->handle;
}

/* Returns SHMVIEW_PEEK, _READ or _WRITE for 'peek', 'read' or 'write', or 0 with ValueError. */
int access_called(const char *name);
/* Returns SHMVIEW_ATTACHED, _MANUAL or _CREATOR for 'attached', 'manual' or 'creator', or 0 with
 * ValueError. */
int lifetime_called(const char *name);
/* Returns the enum shmview_backing that is called name, 0 for NULL; or -1 with a ValueError. */
int backing_called(const char *name);
/* Removes the segment called name. Returns None, or NULL with an exception. */
PyObject *remove_name(struct state *state, struct connection *connection, const char *name);
/* Makes the Segment for a handle, and takes over the handle. connection is NULL for the memory of
 * another object. Returns NULL with an exception if memory is short; then the caller still owns the
 * handle. */
PyObject *segment_wrap(struct state *state, struct connection *connection,
                       struct shmview_segment *handle);
/* Returns a new text with the owner of the memory, for messages; or NULL with an exception. */
PyObject *segment_whose(const struct segment *segment);
/* Returns the handle of the connection for a request about the segment. Returns NULL with
 * ValueError if the segment is closed, or with Invalid if it has no connection. */
struct shmview_connection *segment_connection(struct segment *segment);

/* Returns the handle for a view or a buffer, which need it also after the segment was closed early
 * (see segment_exit()). */
static inline struct shmview_segment *segment_mapped(const struct segment *segment)
{
    return LIKELY(segment->handle != NULL) ? segment->handle : segment->parked;
}

/* The functions of the module, which shmview/_open.py wraps. */
PyObject *module_create(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *module_attach(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *module_trim(PyObject *module, PyObject *unused);
PyObject *module_attach_many(PyObject *module, PyObject *args);
PyObject *module_remove(PyObject *module, PyObject *args, PyObject *kwargs);

/* --- closing.c ----------------------------------------------------------- */

/* Lets the event loops stop polling for a segment or a stream that is about to be closed. watch is
 * its attribute _watch, or NULL. The loops must not poll a descriptor that is closed, because the
 * next file of the process may get its number. watch_go_on() follows in any case. Returns 0, or -1
 * with an exception. */
int watch_pause(PyObject *watch);
/* Ends the waits of asyncio of `op`, which is closed if r is 0. Continues them if it is refused: r
 * is -1 with an exception. Returns r, or -1 with another exception. */
int watch_go_on(PyObject *watch, PyObject *op, int r);
/* Ends the use of the mapping by a view or a buffer, which n_out has counted. */
void segment_out_ends(struct segment *segment);

/* --- creation.c ---------------------------------------------------------- */

PyObject *module_await_creation(PyObject *module, PyObject *args);

/* --- layouts.c ----------------------------------------------------------- */

/* Returns a new list of the names of the layouts that have a view of this name, or NULL with an
 * exception. Sends a request to the daemon. */
PyObject *layouts_with(struct segment *segment, PyObject *view);

/* --- segment_view.c ------------------------------------------------------ */

/* Converts a format in any form that users may pass (text, dtype, type of ctypes) to a text that
 * libshmview parses. Returns a new str, or NULL with an exception. */
PyObject *format_text(struct state *state, PyObject *format);
/* format_size(format): the text for libshmview, the item size and the alignment. The text is not
 * the canonical one, which lacks the mark that permits unaligned elements. */
PyObject *module_format_size(PyObject *module, PyObject *format);
PyObject *module_adopt(PyObject *module, PyObject *args);

/* --- wait.c -------------------------------------------------------------- */

/* Converts a timeout in seconds to a deadline of libshmview. None and NULL are SHMVIEW_FOREVER; 0
 * stays 0, which tries once. Returns 0, or -1 with an exception. */
int parse_timeout(PyObject *timeout, int64_t *ret_deadline);

/* --- wrap.c -------------------------------------------------------------- */

/* Like shmview_detach() and shmview_detach_later(), for memory of another object. The caller holds
 * the GIL, and any code of Python may run. */
int wrap_detach(struct shmview_segment *handle);
void wrap_detach_later(struct shmview_segment *handle);
/* wrap(object, readonly) and from_dlpack(capsule). */
PyObject *module_wrap(PyObject *module, PyObject *args);
PyObject *module_from_dlpack(PyObject *module, PyObject *capsule);

/* --- lock.c -------------------------------------------------------------- */

/* A result of lock_take() that is no result of libshmview. */
#define LOCK_TIMED_OUT (1 + SHMVIEW_OWNER_DIED)
/* Takes the lock; mode is SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED. Returns one of
 *   0                    the caller holds the lock
 *   SHMVIEW_OWNER_DIED   the caller holds the lock exclusively, also in shared mode; *ret_died is
 *                        a new OwnerDied, which is not raised
 *   LOCK_TIMED_OUT       the deadline has passed; nothing is held or raised
 *   -1                   an exception is set; nothing is held */
int lock_take(struct segment *segment, int mode, int64_t deadline, PyObject **ret_died);
/* Gives the lock back. If repaired is false, the next owner gets OwnerDied. Returns 0, or -1 with
 * an exception. */
int lock_give(struct segment *segment, bool repaired);
/* Whether a thread of this process holds the lock through this handle. Needs no GIL, and must not
 * be called with it. */
bool lock_is_held_here(struct shmview_segment *handle);
/* Takes the lock for a caller that does not repair. Returns 0, or -1 with an exception and without
 * the lock: OwnerDied if the last owner died inside, TimedOut after the deadline. */
int lock_hold(struct segment *segment, int mode, int64_t deadline);

/* --- stats.c ------------------------------------------------------------- */

/* stats(name, connection): figures as tuples, for shmview._stats. */
PyObject *module_stats(PyObject *module, PyObject *args);

#endif
