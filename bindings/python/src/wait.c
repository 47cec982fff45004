/* SPDX-License-Identifier: Apache-2.0 */
/* Timeouts in seconds, as Python's own calls take them, converted to deadlines of libshmview. */
#include "core.h"

#include <math.h>

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
    /* 0 tries once. About a hundred years and more become no deadline, because the product with 1e9
     * must fit into an int64_t */
    *ret_deadline = seconds == 0    ? 0
                    : seconds > 3e9 ? SHMVIEW_FOREVER
                                    : shmview_deadline((int64_t)(seconds * 1e9));
    return 0;
}
