/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - views: the object, and what its files share. Each method is in the file of its noun;
 * view_type.c has the table.
 *
 * A View wraps a struct shmview_view of libshmview, which has checked that every index within the
 * shape leads to bytes of the segment. So reading an element is an address and a conversion. The
 * functions for the conversion are chosen once, when the view is made (item_choose()).
 *
 * Code that uses the elements of a view must not let Python code release the view. It therefore
 * increments n_exports while it calls anything that may run Python code: __index__ of an index,
 * methods of a value. release() raises BufferError then. */
#ifndef VIEW_H
#define VIEW_H

#include "core.h"

struct view;

/* Converts the element at p to a Python object. p need not be aligned. Returns a new reference, or
 * NULL with an exception. */
typedef PyObject *item_get(struct view *view, const char *p);
/* Converts value and writes it to p. Returns 0, or -1 with an exception; then a scalar is
 * unchanged, and a struct may be half written. */
typedef int item_set(struct view *view, char *p, PyObject *value);

/* v does not change after view_new() and item_choose(), so buffers may point into it, and reading
 * it needs no lock. release() only removes the reference to the segment. */
struct view {
    PyObject_HEAD struct segment *segment; /* owned; NULL: released */
    struct segment *kept; /* owned; of a released view whose address is known, else NULL */
    item_get *get;
    item_set *set;
    PyObject *weakrefs;
    struct components *components; /* owned; parts of a struct; NULL: not needed yet */
    Py_ssize_t n_exports;          /* buffers that exist, and calls that use the elements */
    bool address_is_known;         /* an object that keeps only this view may use the address */
    struct view *later, **place;   /* of a view of a frame: the next in its list, and its link */
    struct shmview_view v;
};
extern PyType_Spec view_spec;

/* Whether the view has no suboffsets: the address of an element is data plus index times stride. */
static inline bool view_is_direct(const struct view *view)
{
    return !(view->v.flags & SHMVIEW_VIEW_INDIRECT);
}

/* --- view.c -------------------------------------------------------------- */

/* Makes a View with a copy of v and a reference to the segment. Returns NULL with an exception if
 * memory is short. */
PyObject *view_new(struct segment *segment, const struct shmview_view *v);

/* Raises ValueError for a released view, and StaleViewError for a view of another phase than the
 * current one. Returns -1; or 0 if the view may be used. */
int view_complain(struct view *view);

/* Checks that the elements may be read. Returns 0, or -1 with an exception. A view without a layout
 * (UINT32_MAX) never becomes stale, and needs no call. */
static inline int view_check(struct view *view)
{
    if (LIKELY(view->segment && view->v.layout == UINT32_MAX))
        return 0;
    return view_complain(view);
}

/* Like view_check(), but also raises ReadOnly for a read-only view. */
int view_check_writable(struct view *view);

/* Returns a new tuple of n numbers, or NULL with an exception. */
PyObject *view_tuple(const ptrdiff_t *numbers, uint32_t n);
/* Converts a sequence of at most SHMVIEW_MAX_NDIM numbers, or one number. `what` is the name of the
 * argument in the error text. Returns how many there are, or -1 with an exception. */
int parse_numbers(const char *what, PyObject *sequence, int64_t *ret);
/* Raises the error r of a call on the view, which must not be released. Returns NULL. */
PyObject *view_raise(struct view *view, int r);
/* Like view_raise(), but by raise_as_buffer_error(). */
PyObject *view_raise_as_buffer_error(struct view *view, int r);

PyObject *view_release(PyObject *self, PyObject *unused);
PyObject *view_enter(PyObject *self, PyObject *unused);
PyObject *view_exit(PyObject *self, PyObject *args);
PyObject *view_reduce(PyObject *self, PyObject *unused);
PyObject *view_description(PyObject *self, PyObject *unused);
/* Returns a text of one line without the elements, for messages. Works for every view. */
PyObject *view_brief(PyObject *self, PyObject *unused);
/* _none: a new view of no elements of the same format, which is never stale. */
PyObject *view_get_none(PyObject *self, void *closure);
void view_dealloc(PyObject *self);
extern PyGetSetDef view_getset[];

/* --- item.c -------------------------------------------------------------- */

/* Sets get and set for the type of the view's elements. */
void item_choose(struct view *view);
/* Raises ConversionError for a value that the type of the elements cannot hold without loss.
 * Returns -1. */
int item_fail(struct view *view, PyObject *value);
/* Like item_get and item_set, for an element or a part of any scalar type. view is for errors. */
PyObject *item_load(uint32_t dtype, uint32_t itemsize, const char *p);
int item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, PyObject *value);

/* --- item_struct.c ------------------------------------------------------- */

/* item_get and item_set for structs, and for arrays within an element. */
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

/* --- sequence.c ---------------------------------------------------------- */

PyObject *view_index_of(PyObject *self, PyObject *args);
PyObject *view_count_of(PyObject *self, PyObject *value);

/* --- assign.c ------------------------------------------------------------ */

int view_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *view_fill(PyObject *self, PyObject *value);

/* --- foreign.c ----------------------------------------------------------- */

/* The buffer of another object as a read-only view of libshmview, so that the calls of libshmview
 * can copy from it and compare with it. Lives on the stack of one call. */
struct foreign {
    Py_buffer buffer;                /* keeps the bytes */
    struct shmview_segment *segment; /* wraps the bytes; NULL for a View, which has a segment */
    void *copy;                      /* the elements in C order, if the bytes cannot be used */
    struct shmview_view v;
};
/* Opens the buffer of object. Returns 0, and the caller owes foreign_close(); or -1 with an
 * exception. */
int foreign_open(struct state *state, PyObject *object, struct foreign *ret);
void foreign_close(struct foreign *foreign);

/* Wraps the memory of a buffer without suboffsets as shmview_wrap() does, with its last three
 * arguments, and makes a view of its elements. Returns 0, or -1 with an exception. If *ret_segment
 * is not NULL then, the memory was wrapped nevertheless, and the caller must detach it. */
int foreign_wrap(struct state *state, const Py_buffer *buffer, unsigned flags,
                 void (*release)(void *), void *arg, struct shmview_segment **ret_segment,
                 struct shmview_view *ret_view);

PyObject *view_richcompare(PyObject *self, PyObject *other, int op);
PyObject *view_tobytes(PyObject *self, PyObject *args, PyObject *kwargs);
/* __bytes__(). Without it, bytes() would take a view with __index__ for a number of zeros. */
PyObject *view_bytes(PyObject *self, PyObject *unused);
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
/* Copies the elements to private memory, in C order, and *ret is a view of the copy. The caller
 * prevents the release of the view, and owes *ret_segment a shmview_detach_later(), which frees the
 * memory after the last export of *ret. Returns 0, or -1 with an exception. */
int view_copy(struct view *view, struct shmview_segment **ret_segment, struct shmview_view *ret);

/* --- arrow.c ------------------------------------------------------------- */

PyObject *view_get_arrow(PyObject *self, void *closure);

/* --- scalar.c ------------------------------------------------------------ */

PyObject *view_int(PyObject *self);
PyObject *view_float(PyObject *self);
PyObject *view_complex(PyObject *self, PyObject *unused);
PyObject *view_as_index(PyObject *self);
int view_bool(PyObject *self);
PyObject *view_item_of(PyObject *self, PyObject *args);
PyObject *view_deepcopy(PyObject *self, PyObject *memo);

/* --- forward.c ----------------------------------------------------------- */

PyObject *view_repr(PyObject *self);
PyObject *view_html(PyObject *self, PyObject *unused);
PyObject *view_mpi(PyObject *self, PyObject *unused);
PyObject *view_get_dtype(PyObject *self, void *closure);
PyObject *view_get_array(PyObject *self, void *closure);
PyObject *view_as_array(PyObject *self, PyObject *args, PyObject *kwargs);

#endif
