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
/* Takes the GIL again. Returns r, or -SHMVIEW_ERR_INTERRUPTED with an exception that a handler
 * raised. */
int unlocked_end(PyThreadState **thread, int r);

#endif
