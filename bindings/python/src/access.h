/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - the users who may use a segment, in terms of libshmview. */
#ifndef ACCESS_H
#define ACCESS_H

#include "core.h"

#include <shmview/access.h>

/* More entries are refused here; libshmview refuses more than it knows, and names its limit. */
#define ENTRIES_MAX 64

/* A change with the memory for its entries, whose names are borrowed from the parsed tuple. */
struct access {
    struct shmview_access_change change;
    struct shmview_access_entry entries[ENTRIES_MAX];
};

/* Converts (mode, owner, group, entries), as change() of shmview._access returns it. None stands
 * for a member that does not change. Returns 0, or -1 with an exception. */
int access_parse(PyObject *tuple, struct access *ret);

/* set_access(name, tuple, connection) and get_access(name, connection). */
PyObject *module_set_access(PyObject *module, PyObject *args);
PyObject *module_get_access(PyObject *module, PyObject *args);

#endif
