/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without the GIL, for both extension modules: each compiles unlocked.c, because an
 * extension module exports nothing to another.
 *
 * Python runs signal handlers in one thread of one interpreter, the main thread. A wait that lets
 * handlers run takes the GIL when a signal comes, and ten times a second because a signal may come
 * just before the wait. Only waits of the main thread do, so that a hundred threads may wait at no
 * cost. */
#ifndef PYTHON_UNLOCKED_H
#define PYTHON_UNLOCKED_H

#include <Python.h>

/* Releases the GIL. Until unlocked_end(), a handler that raises ends the waits of this thread. */
void unlocked_begin(PyThreadState **ret_thread);

/* A wait that another thread may end. Lives on the stack of the call. */
struct unlocked_wait {
    PyThreadState *thread;
    const int *stop;
    int is_main;
};
/* Like unlocked_begin(), but the waits of this thread also end within 0.1 s after *stop has become
 * true, with -SHMVIEW_ERR_INTERRUPTED and without an exception. Ends with
 * unlocked_end(&wait->thread, r). */
void unlocked_begin_until(struct unlocked_wait *wait, const int *stop);

/* Takes the GIL again. Returns r, or -SHMVIEW_ERR_INTERRUPTED with an exception that a handler
 * raised. */
int unlocked_end(PyThreadState **thread, int r);

#endif
