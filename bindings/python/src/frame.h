/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - the object Frame. Its end and its views are in frame.c, its attributes and its table in
 * frame_type.c. */
#ifndef FRAME_H
#define FRAME_H

#include "stream.h"

struct frame {
    PyObject_HEAD struct stream *stream; /* owned */
    struct hold *hold;                   /* owned; NULL: over */
    struct segment *memory;              /* owned; of its views; NULL: there were none */
    uint64_t sequence, missed;
    int64_t time_ns;
    bool is_loaned;
};

/* Returns the frame of libshmview, or NULL with ValueError if it is over. */
struct shmview_frame *frame_use(struct frame *self);
/* Like frame_use(), for a call that needs a loaned frame. */
struct shmview_frame *frame_use_loaned(struct frame *self);

PyObject *frame_publish(PyObject *self, PyObject *unused);
PyObject *frame_discard(PyObject *self, PyObject *unused);
PyObject *frame_release(PyObject *self, PyObject *unused);
PyObject *frame_subscript(PyObject *self, PyObject *name);
PyObject *frame_set_length(PyObject *self, PyObject *args);
PyObject *frame_pass_on(PyObject *self, PyObject *stage);
void frame_dealloc(PyObject *self);

#endif
