/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h - the methods of the type Segment. Each is in the file of its noun; segment_type.c
 * has the table, and the docstrings, which are their documentation. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "core.h"

/* segment.c */
PyObject *segment_remove(PyObject *self, PyObject *unused);
PyObject *segment_entrust(PyObject *self, PyObject *number);
PyObject *segment_reduce(PyObject *self, PyObject *unused);
PyObject *segment_get_name(PyObject *self, void *closure);
PyObject *segment_get_size(PyObject *self, void *closure);
PyObject *segment_get_access(PyObject *self, void *closure);
PyObject *segment_get_closed(PyObject *self, void *closure);
PyObject *segment_get_connection(PyObject *self, void *closure);
PyObject *segment_repr(PyObject *self);
int segment_getbuffer(PyObject *self, Py_buffer *buffer, int flags);
void segment_releasebuffer(PyObject *self, Py_buffer *buffer);

/* closing.c */
PyObject *segment_close(PyObject *self, PyObject *unused);
PyObject *segment_enter(PyObject *self, PyObject *unused);
PyObject *segment_exit(PyObject *self, PyObject *args);
/* Raises Busy if a thread is in a call of the segment. Returns 0, or -1 with the exception. */
int segment_check_no_calls(struct segment *self);
int segment_traverse(PyObject *self, visitproc visit, void *arg);
int segment_clear(PyObject *self);
void segment_dealloc(PyObject *self);

/* freeze.c */
PyObject *segment_freeze(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_get_frozen(PyObject *self, void *closure);

/* guard.c */
PyObject *segment_locked(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *segment_shared(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *segment_recover(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);

/* lock.c */
PyObject *segment_lock(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_trylock(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_unlock(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_lock_status(PyObject *self, PyObject *unused);

/* reading.c */
PyObject *segment_reading(PyObject *self, PyObject *unused);
extern PyType_Spec reading_spec;

/* segment_view.c */
PyObject *segment_cast(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_get_buf(PyObject *self, void *closure);
PyObject *segment_view(PyObject *self, PyObject *args, PyObject *kwargs);
/* seg["A"]: segment_view() of the current phase. */
PyObject *segment_subscript(PyObject *self, PyObject *key);
PyObject *segment_define_views(PyObject *self, PyObject *args);
PyObject *segment_bind(PyObject *self, PyObject *args);
PyObject *segment_handle(PyObject *self, PyObject *unused);

/* forward.c */
PyObject *segment_define(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_changed(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_set_access(PyObject *self, PyObject *args, PyObject *kwargs);
/* closure: the name of a member of shmview.Access. */
PyObject *segment_get_right(PyObject *self, void *closure);
PyObject *segment_html(PyObject *self, PyObject *unused);

/* layouts.c */
PyObject *segment_get_layouts(PyObject *self, void *closure);

/* placement.c */
struct shmview_placement;
/* Reads the arguments huge= and numa= of create(). Returns 0, or -1 with a ValueError. */
int placement_parse(PyObject *huge, PyObject *numa, struct shmview_placement *ret);
PyObject *segment_get_placement(PyObject *self, void *closure);
PyObject *segment_populate(PyObject *self, PyObject *args, PyObject *kwargs);

/* phase.c */
PyObject *segment_get_change(PyObject *self, void *closure);
PyObject *segment_get_phase(PyObject *self, void *closure);
PyObject *segment_get_generation(PyObject *self, void *closure);
PyObject *segment_switch(PyObject *self, PyObject *layout);
PyObject *segment_notify(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *segment_change_fd(PyObject *self, PyObject *unused);
PyObject *segment_wait(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
