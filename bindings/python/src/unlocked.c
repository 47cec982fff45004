/* SPDX-License-Identifier: Apache-2.0 */
/* Waits without the GIL, and which thread runs signal handlers in them. */
#include "unlocked.h"

#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <shmview/shmview.h>

/* CPython has no public call for this question, and the main thread is not always the first one of
 * the process: a program may embed Python in another, and fork() makes the forking thread the main
 * one. signal.signal() checks the thread before the handler. None is no handler, so the call
 * changes nothing, and raises TypeError in the main thread only. */
static bool ask_python(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *done = module ? PyObject_CallMethod(module, "signal", "iO", SIGINT, Py_None) : NULL;
    bool is_main = PyErr_ExceptionMatches(PyExc_TypeError);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyErr_Restore(type, value, trace);
    return is_main;
}

/* Whether the calling thread runs signal handlers. Remembers the answer, because it changes only
 * with the interpreter and in a child. */
static bool runs_handlers(void)
{
    static __thread PyInterpreterState *interpreter;
    static __thread pid_t process;
    static __thread bool is_main;
    if (interpreter != PyInterpreterState_Get() || process != getpid()) {
        is_main = ask_python();
        interpreter = PyInterpreterState_Get();
        process = getpid();
    }
    return is_main;
}

/* The function that ends waits (shmview_on_wait()). It holds the GIL only while it runs. A wait
 * that must first give something back may call it again after an exception; handlers run only while
 * no exception is set. */
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
    bool is_main = runs_handlers();
    *ret_thread = PyEval_SaveThread();
    if (is_main)
        shmview_on_wait(run_handlers, ret_thread);
}

/* Like run_handlers(), for unlocked_begin_until(). */
static int run_or_stop(void *arg)
{
    struct unlocked_wait *wait = arg;
    if (wait->is_main && run_handlers(&wait->thread))
        return 1;
    return __atomic_load_n(wait->stop, __ATOMIC_RELAXED);
}

void unlocked_begin_until(struct unlocked_wait *wait, const int *stop)
{
    wait->stop = stop;
    wait->is_main = runs_handlers();
    wait->thread = PyEval_SaveThread();
    shmview_on_wait(run_or_stop, wait);
}

int unlocked_end(PyThreadState **thread, int r)
{
    shmview_on_wait(NULL, NULL);
    PyEval_RestoreThread(*thread);
    return PyErr_Occurred() ? -SHMVIEW_ERR_INTERRUPTED : r;
}
