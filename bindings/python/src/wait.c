/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without the GIL. libshmview goes on waiting when a signal comes, so a wait is cut
 * into slices, and Python's handlers have their turn between two of them. */
#include "core.h"

#include <math.h>

/* Asked now and then by a call that waits for the daemon. One that has something to give back may
 * go on after an exception, and ask once more: handlers run without one only. */
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
    /* 0 tries once; what is longer than a hundred years is for ever */
    *ret_deadline = seconds == 0    ? 0
                    : seconds > 3e9 ? SHMVIEW_FOREVER
                                    : shmview_deadline((int64_t)(seconds * 1e9));
    return 0;
}

int wait_sliced(struct segment *segment, wait_call *call, void *arg, int64_t deadline, int *ret)
{
    struct shmview_segment *handle = segment_use(segment);
    if (!handle)
        return -1;
    int raised = 0;
    call_begins(segment);
    for (;;) {
        int64_t slice = deadline;
        int r;
        if (deadline) {
            int64_t end = shmview_deadline(SLICE_NS);
            slice = end < deadline ? end : deadline;
        }
        UNLOCKED_CALL(r, call(handle, slice, arg));
        *ret = r;
        if (r != -SHMVIEW_ERR_TIMED_OUT || slice == deadline)
            break;
        if (PyErr_CheckSignals()) {
            raised = -1;
            break;
        }
    }
    call_ends(segment);
    return raised;
}
