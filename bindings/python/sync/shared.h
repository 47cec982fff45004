/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h - the base of the objects of one process for shared memory: Event, Waiters, and the
 * monitors. Their first word is the kind, so that other memory is refused. */
#ifndef SYNC_SHARED_H
#define SYNC_SHARED_H

#include "sync.h"

struct shared {
    PyObject_HEAD struct state *state;
    void *memory;    /* in block */
    PyObject *block; /* owned; the Block of shmview._heap */
    uint32_t bytes;  /* of the memory */
    PyObject *weakrefs;
};

/* Makes an object. args: the Block, and for new memory, which is zeroed, its first words as a
 * tuple, which *ret_words borrows (NULL: the memory is another object's too). least: the bytes that
 * the kind needs. Returns NULL with an exception. */
struct shared *shared_new(PyTypeObject *type, PyObject *args, uint32_t kind, uint32_t least,
                          PyObject **ret_words);
void shared_dealloc(PyObject *op);
extern PyMemberDef shared_members[];

/* Each kind of object has the members and the end of struct shared. */
#define SHARED_SPEC(prefix, name_, object)                                                         \
    static PyType_Slot slots[] = {{Py_tp_new, prefix##_new},                                       \
                                  {Py_tp_dealloc, shared_dealloc},                                 \
                                  {Py_tp_methods, methods},                                        \
                                  {Py_tp_members, shared_members},                                 \
                                  {0, NULL}};                                                      \
    PyType_Spec prefix##_spec = {.name = "shmview._sync." name_,                                   \
                                 .basicsize = sizeof(object),                                      \
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,                \
                                 .slots = slots}

#endif
