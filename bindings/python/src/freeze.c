/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing a segment, after which nobody can change its bytes. */
#include "segment.h"

#include <shmview/freeze.h>

/* Raises Busy if views or buffers are out, through which Python would still write: the process
 * would end by SIGSEGV. Returns 0, or -1 with the exception. */
static int check_no_views(struct segment *self)
{
    char text[160];
    if (!COUNT(self->n_out))
        return 0;
    PyOS_snprintf(text, sizeof text, "'%.80s' cannot be frozen: %zd views or buffers of it are out",
                  shmview_name(self->handle), COUNT(self->n_out));
    raise_text(self->state, SHMVIEW_ERR_BUSY, text);
    return -1;
}

/* While the library freezes all writing, the segment has no handle for other threads: one of them
 * could make a writable view in the meantime. The handle is parked, so that a thread that holds the
 * lock can give it back. A frozen segment may have views, and the end of the last one would detach
 * a parked handle, so freezing it again does nothing. */
PyObject *segment_freeze(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"future", NULL};
    struct segment *self = (struct segment *)op;
    int future = 0, r;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:freeze", keywords, &future))
        return NULL;
    struct shmview_segment *handle = segment_use(self);
    if (!handle)
        return NULL;
    if (shmview_is_frozen(handle))
        Py_RETURN_NONE;
    if (future) {
        SEGMENT_CALL(self, r, shmview_freeze(handle, SHMVIEW_FREEZE_FUTURE));
    } else {
        if (check_no_views(self) || segment_check_no_calls(self))
            return NULL;
        self->parked = handle;
        self->handle = NULL;
        UNLOCKED_CALL(r, shmview_freeze(handle, 0));
        self->handle = handle;
        self->parked = NULL;
    }
    if (r)
        return raise_error(self->state, r, "{s:s}", "name", shmview_name(handle));
    Py_RETURN_NONE;
}

PyObject *segment_get_frozen(PyObject *op, void *Py_UNUSED(closure))
{
    struct shmview_segment *handle = segment_use((struct segment *)op);
    return handle ? PyBool_FromLong(shmview_is_frozen(handle)) : NULL;
}
