/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a segment to be created, for attach(timeout=...). The process monitors the events of
 * segments of that name, so it sleeps until the daemon reports one, and does not poll. */
#include <shmview/monitor.h>

#include "core.h"

#define KINDS (SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_CREATED) | SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_ACCESS))

/* Waits for the next event. Returns 0; 1 if the deadline has passed or the daemon has gone; or -1
 * with an exception, which may be that of a signal handler. */
static int next_event(struct state *state, struct shmview_monitor *monitor, int64_t deadline)
{
    const struct shmview_event *event;
    int r;
    UNLOCKED_CALL(r, shmview_monitor_next(monitor, deadline, &event));
    if (r == 0)
        return 0;
    if (r == -SHMVIEW_ERR_TIMED_OUT || r == -SHMVIEW_ERR_DISCONNECTED)
        return 1;
    raise_error(state, r, NULL);
    return -1;
}

/* await_creation(name, timeout, connection, attempt): calls attempt() until it returns something
 * other than None, and returns that. Calls it once at the beginning, and again after each event
 * that a segment of this name was created or that its access was changed. Returns None if the time
 * is over. The monitor is opened before the first attempt. Otherwise a segment that is created
 * between the two would be missed. */
PyObject *module_await_creation(PyObject *module, PyObject *args)
{
    struct state *state = PyModule_GetState(module);
    struct shmview_monitor_options options = {
        .struct_bytes = sizeof options, .kinds = KINDS, .n_names = 1};
    struct shmview_monitor *monitor = NULL;
    PyObject *timeout, *connection_arg, *attempt;
    const char *name;
    int64_t deadline;
    int r;
    if (!PyArg_ParseTuple(args, "sOOO:await_creation", &name, &timeout, &connection_arg,
                          &attempt) ||
        parse_timeout(timeout, &deadline))
        return NULL;
    struct connection *connection = connection_take(state, connection_arg);
    struct shmview_connection *handle = connection ? connection_use(connection) : NULL;
    PyObject *got = NULL;
    if (handle) {
        options.names = &name;
        CONNECTION_CALL(connection, r, shmview_monitor_open(handle, &options, &monitor));
        if (r)
            raise_error(state, r, "{s:s}", "name", name);
        while (r == 0) {
            Py_XDECREF(got);
            got = PyObject_CallNoArgs(attempt);
            r = got == Py_None ? next_event(state, monitor, deadline) : 1;
        }
        if (r < 0)
            Py_CLEAR(got);
    }
    shmview_monitor_close(monitor);
    Py_XDECREF((PyObject *)connection);
    return got;
}
