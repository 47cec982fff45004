/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the type Monitor, a subscription to events of the daemon. */
#ifndef EVENTS_H
#define EVENTS_H

#include "core.h"

extern PyType_Spec monitor_spec;

/* events(names, kinds, after, connection). */
PyObject *module_events(PyObject *module, PyObject *args);

#endif
