/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without the GIL. Python's signal handlers run in one thread, whose waits end for a moment
 * when a signal comes, and ten times a second, since one may come just before a wait. */
#include "core.h"

#include <math.h>
#include <unistd.h>

unsigned long first_thread;

/* Whether this thread runs signal handlers. Python's main thread is the process's, or where a
 * program has embedded Python in another one, that which imports this module. */
static bool runs_handlers(void)
{
    static __thread unsigned forks_known; /* n_forks + 1 when this was asked */
    static __thread bool is_main;
    if (forks_known != n_forks + 1) {
        is_main = gettid() == getpid() || PyThread_get_thread_ident() == first_thread;
        forks_known = n_forks + 1;
    }
    return is_main;
}

/* Called by waits. One that has something to give back may go on after an exception, and call once
 * more: handlers run without one only. */
static int run_handlers(void *arg)
{
    PyThreadState **thread = arg;
    PyEval_RestoreThread(*thread);
    int raised = PyErr_Occurred() || PyErr_CheckSignals();
    *thread = PyEval_SaveThread();
    return raised;
}

void unlocked_begin(PyThreadState **ret_thread)
{
    *ret_thread = PyEval_SaveThread();
    if (runs_handlers())
        shmview_on_wait(run_handlers, ret_thread);
}

int unlocked_end(PyThreadState **thread, int r)
{
    shmview_on_wait(NULL, NULL);
    PyEval_RestoreThread(*thread);
    return PyErr_Occurred() ? -SHMVIEW_ERR_INTERRUPTED : r;
}

int parse_timeout(PyObject *timeout, int64_t *ret_deadline)
{
    if (!timeout || timeout == Py_None) {
        *ret_deadline = SHMVIEW_FOREVER;
        return 0;
    }
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1 && PyErr_Occurred())
        return -1;
    if (isnan(seconds) || seconds < 0) {
        PyErr_Format(PyExc_ValueError, "a timeout is a number of seconds, 0 or more, or None: %R",
                     timeout);
        return -1;
    }
    /* 0 tries once; more than about a hundred years has no deadline */
    *ret_deadline = seconds == 0    ? 0
                    : seconds > 3e9 ? SHMVIEW_FOREVER
                                    : shmview_deadline((int64_t)(seconds * 1e9));
    return 0;
}
