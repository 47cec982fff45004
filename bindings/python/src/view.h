/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - views: the object, its elements, and the methods, each in the file of its noun;
 * view_type.c has the table. */
#ifndef VIEW_H
#define VIEW_H

#include "core.h"

struct view;

/* An element at p, which need not be aligned, as a Python object: new, or NULL. */
typedef PyObject *item_get(struct view *view, const char *p);
/* Writes value to p. Returns 0 or -1. */
typedef int item_set(struct view *view, char *p, PyObject *value);

/* v does not change; only release() takes the segment away. So buffers point into v, and no
 * lock is needed to read it. */
struct view {
    PyObject_HEAD struct segment *segment; /* NULL: released */
    struct segment *kept;                  /* of one that was released but is not gone, or NULL */
    item_get *get;
    item_set *set;
    PyObject *weakrefs;
    struct components *components; /* of a struct; NULL: not needed yet */
    Py_ssize_t n_exports;          /* buffers of it that are out */
    bool address_is_known;         /* to somebody who keeps nothing but this object */
    struct shmview_view v;
};
extern PyType_Spec view_spec;

/* Whether elements are at data plus strides: a pointer and an index are enough. */
static inline bool view_is_direct(const struct view *view)
{
    return !(view->v.flags & SHMVIEW_VIEW_INDIRECT);
}

/* --- view.c -------------------------------------------------------------- */

/* A new view of the segment. */
PyObject *view_new(struct segment *segment, const struct shmview_view *v);

/* Raises ValueError for one that was released, StaleViewError for one of a past phase. */
int view_complain(struct view *view);

/* Whether its elements may be looked at. Returns 0 or -1 with an exception. */
static inline int view_check(struct view *view)
{
    if (LIKELY(view->segment && view->v.layout == UINT32_MAX))
        return 0;
    return view_complain(view);
}

/* The same, and whether they may be changed. */
int view_check_writable(struct view *view);

/* A tuple of n numbers. */
PyObject *view_tuple(const ptrdiff_t *numbers, uint32_t n);
/* Numbers of a sequence, or one number; at most SHMVIEW_MAX_NDIM. Returns how many, or -1. */
int parse_numbers(const char *what, PyObject *sequence, int64_t *ret);
/* Raises the error r of a call on a view. Returns NULL. */
PyObject *view_raise(struct view *view, int r);
/* The same for a consumer of buffers, which expects nothing but a BufferError. */
PyObject *view_raise_as_buffer_error(struct view *view, int r);

PyObject *view_release(PyObject *self, PyObject *unused);
PyObject *view_enter(PyObject *self, PyObject *unused);
PyObject *view_exit(PyObject *self, PyObject *args);
PyObject *view_reduce(PyObject *self, PyObject *unused);
PyObject *view_description(PyObject *self, PyObject *unused);
PyObject *view_repr(PyObject *self);
void view_dealloc(PyObject *self);
extern PyGetSetDef view_getset[];

/* --- item.c -------------------------------------------------------------- */

/* Sets get and set by the view's type. */
void item_choose(struct view *view);
/* The value that the element's type cannot hold, or not without loss. Returns -1. */
int item_fail(struct view *view, PyObject *value);
/* An element of any scalar type at p. */
PyObject *item_load(uint32_t dtype, uint32_t itemsize, const char *p);
int item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, PyObject *value);

/* --- item_struct.c ------------------------------------------------------- */

PyObject *struct_get(struct view *view, const char *p);
int struct_set(struct view *view, char *p, PyObject *value);

/* --- index.c ------------------------------------------------------------- */

/* Applies a key of []: *ret is what is left; 1 if that is one element, 0 if a part, -1 with an
 * exception. */
int view_locate(struct view *view, PyObject *key, struct shmview_view *ret);
PyObject *view_subscript(PyObject *self, PyObject *key);
PyObject *view_item(PyObject *self, Py_ssize_t i);
Py_ssize_t view_length(PyObject *self);
PyObject *view_tolist(PyObject *self, PyObject *unused);
PyObject *view_iter(PyObject *self);

/* --- assign.c ------------------------------------------------------------ */

int view_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *view_fill(PyObject *self, PyObject *value);

/* --- foreign.c ----------------------------------------------------------- */

/* The buffer of another object as a view of libshmview, read-only. */
struct foreign {
    Py_buffer buffer;
    struct shmview_segment *segment; /* NULL: v is of a segment that somebody else keeps */
    void *copy;
    struct shmview_view v;
};
/* Returns 0 and owes foreign_close(), or -1 with an exception. */
int foreign_open(struct state *state, PyObject *object, struct foreign *ret);
void foreign_close(struct foreign *foreign);

PyObject *view_richcompare(PyObject *self, PyObject *other, int op);
PyObject *view_tobytes(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_hex(PyObject *self, PyObject *args, PyObject *kwargs);

/* --- shape.c ------------------------------------------------------------- */

PyObject *view_cast(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_reshape(PyObject *self, PyObject *args);
PyObject *view_transpose(PyObject *self, PyObject *args);
PyObject *view_broadcast(PyObject *self, PyObject *args);
PyObject *view_field(PyObject *self, PyObject *name);
PyObject *view_toreadonly(PyObject *self, PyObject *unused);
PyObject *view_summary(PyObject *self, PyObject *unused);
PyObject *view_get_T(PyObject *self, void *closure);

/* --- buffer.c ------------------------------------------------------------ */

int view_getbuffer(PyObject *self, Py_buffer *buffer, int flags);
extern PyType_Spec lease_spec;
PyObject *view_get_array_interface(PyObject *self, void *closure);

/* --- dlpack.c ------------------------------------------------------------ */

PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *view_dlpack_device(PyObject *self, PyObject *unused);

#endif
