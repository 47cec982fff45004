/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/view.h - describing, making and changing views; elements whose type is known
 * only at run time; whole views at once; memory that is not shmview's.
 *
 * Terms and rules are those of PEP 3118 and of Python's struct module: a format describes
 * one element, shape counts elements, strides and offsets are in bytes.
 *
 * Nothing here copies elements unless it says so, nothing talks to the daemon but
 * shmview_define() and shmview_view_open(), and nothing takes a lock: hold the segment's.
 * Any thread; one view struct must not be written by two at once. After a fork everything
 * works in the child. In every call *ret may be the view that is asked. */
#ifndef SHMVIEW_VIEW_H
#define SHMVIEW_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmview_connection;

/* --- Formats ------------------------------------------------------------- */

#define SHMVIEW_FORMAT_BYTES 1024 /* of a canonical format, its NUL included */

/* One part of an element, in the order of their offsets; a struct comes before its own
 * fields, which are one level deeper. The offset of a part of an array of structs is that
 * in the first of them. */
struct shmview_component {
    uint32_t offset;   /* bytes from the beginning of the element */
    uint32_t itemsize; /* bytes of one, without repetition */
    uint32_t repeat;   /* how many of them: the product of shape */
    uint32_t dtype;    /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t depth;    /* 0: of the element itself */
    uint32_t ndim;
    uint32_t shape[SHMVIEW_MAX_NDIM];
    char name[64]; /* "" without one */
};

struct shmview_format {
    uint32_t itemsize;
    uint32_t align;
    uint32_t dtype; /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t n_components;
    uint32_t error_at; /* where parsing failed: the character, from 0 */
    uint32_t reserved;
    char text[SHMVIEW_FORMAT_BYTES]; /* canonical: two formats are the same if this is */
};

/* Tells what the format of one element means. text is borrowed:
 *
 *   b B h H i I l L q Q n N   integers, ? bool, c a byte of text, P an address
 *   e f d g Zf Zd             float16, 32, 64, long double; complex
 *   5s 5p                     strings, x a byte of padding
 *   @ = < > ! ^               native with alignment (the default); native, little, big
 *                             endian of standard size without; native without alignment.
 *                             A mark holds until the next one
 *   3h (2,3)f                 arrays within an element
 *   T{i:a:d:b:}               a struct, with names; padded at its end like C's with @
 *   int16 float32 complex64   numpy's and DLPack's names, as the whole text; also
 *   bfloat16 float8_e4m3fn    those that have no letter, and
 *   <i2 |u1 >f8 S5            numpy's typestrs
 *
 * In the canonical text sizes are standard ones, a mark stands only where it matters, and
 * within T{} all padding is written as x.
 * ret_components has room for n, ret->n_components says how many there are; it may be
 * NULL. Returns 0, or -SHMVIEW_ERR_FORMAT; then only ret->error_at is set, and the text
 * names the character. Sources: PEP 3118; docs.python.org, "struct"; numpy,
 * _dtype_from_pep3118; github.com/dmlc/dlpack. */
int shmview_format_parse(const char *text, struct shmview_format *ret,
                         struct shmview_component *ret_components, size_t n);

/* --- Making views -------------------------------------------------------- */

/* Every byte from the offset to the end of the segment. */
#define SHMVIEW_REST UINT64_MAX

/* Sees nbytes bytes from offset on as a one-dimensional array of format, without
 * a copy.
 *
 * nbytes must divide into whole elements; SHMVIEW_REST means to the end. format is
 * borrowed for the call. *ret_view is filled; it needs no release and is valid until the
 * segment is detached. It is read-only if the attachment is, and not bound to a phase.
 *
 * Returns 0 on success. On failure the text names the byte: -SHMVIEW_ERR_FORMAT,
 * _MISALIGNED, _ILL_SIZED, _BOUNDS, _NO_MEMORY. */
int shmview_view_cast(struct shmview_segment *segment, const char *format, uint64_t offset,
                      uint64_t nbytes, struct shmview_view *ret_view);

/* Describes a view. Zero is the default of every member but format. */
struct shmview_view_spec {
    const char *name;          /* only in a layout: 1 to 64 letters, digits, '.', '_', '-' */
    const char *format;        /* as in shmview_format_parse() */
    uint64_t offset;           /* byte of element [0, ..., 0] */
    uint32_t ndim;             /* 0 (one element) to SHMVIEW_MAX_NDIM */
    uint32_t flags;            /* SHMVIEW_VIEW_READ_ONLY: must not be written through this view */
    const int64_t *shape;      /* ndim lengths in elements, 0 or more */
    const int64_t *strides;    /* ndim steps in bytes, negative and zero allowed; NULL: C order */
    const int64_t *suboffsets; /* ndim, -1 for none; NULL: none at all. Needs strides */
};

/* Sees a part of a segment as spec says, without a copy. spec and all it points
 * to are borrowed for the call. *ret_view is as in shmview_view_cast().
 *
 * Returns 0 on success. On failure the text names the dimension and the byte:
 * -SHMVIEW_ERR_FORMAT, _MISALIGNED (offset or a stride is no multiple of the
 * element's alignment), _BOUNDS, _OVERFLOW, _INVALID or _NO_MEMORY. */
int shmview_view_make(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct shmview_view *ret_view);

/* Declares a layout: a named set of n views that hold at the same time. Layouts
 * of one segment may overlap each other, and so may views of one layout. Needs
 * SHMVIEW_WRITE. Everything is borrowed for the call. Blocks for one round trip.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_LAYOUT_EXISTS, _READ_ONLY, _LIMIT,
 * _QUOTA (of "layout_bytes": the segment's owner is charged for the layout's text), what
 * shmview_view_make() returns (the text names the view), or _DISCONNECTED, _PROTOCOL, _NO_MEMORY on
 * failure; then nothing is declared. */
int shmview_define(struct shmview_segment *segment, const char *layout,
                   const struct shmview_view_spec *views, size_t n);

/* Opens the view called view of the layout called layout. *ret_view is as in
 * shmview_view_cast(), and belongs to the phase that is current now: see
 * shmview_view_is_stale(). Blocks for one round trip if the layout was declared
 * after this attachment was made, else not at all.
 * Returns 0, -SHMVIEW_ERR_NO_LAYOUT, _NOT_FOUND, _INVALID (foreign memory has no layouts),
 * _DISCONNECTED, _PROTOCOL or _NO_MEMORY. */
int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view);

/* --- Asking -------------------------------------------------------------- */

/* Whether the elements follow each other without a gap: order 'C' (last index fastest),
 * 'F' (first index fastest) or 'A' (either). Returns 1 or 0; 0 for a view with suboffsets
 * or an unknown order. */
int shmview_view_is_contiguous(const struct shmview_view *view, char order);

/* Fills ret_strides with those of ndim dimensions without a gap, order 'C' or 'F'.
 * Returns 0, -SHMVIEW_ERR_OVERFLOW or _INVALID. */
int shmview_fill_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                         int64_t *ret_strides);

/* Address of the element at index[0..ndim-1], each of which is checked. Follows
 * suboffsets: what is stored there is checked too, each time.
 * Returns 0, or -SHMVIEW_ERR_BOUNDS or _MISALIGNED. */
int shmview_view_pointer(const struct shmview_view *view, const ptrdiff_t *index,
                         void **ret_pointer);

/* --- Other views of the same elements ------------------------------------ */

/* All of them: no copy, read-only stays, the phase stays. -SHMVIEW_ERR_INVALID where a
 * rule named here is broken, _OVERFLOW where a size would not fit; the text names the
 * dimension. */

/* The bytes of a C-contiguous view as another format: the last dimension grows or
 * shrinks. Also -SHMVIEW_ERR_FORMAT, _ILL_SIZED, _MISALIGNED, _NO_MEMORY. */
int shmview_view_recast(const struct shmview_view *view, const char *format,
                        struct shmview_view *ret_view);

/* The bytes of a C-contiguous view, one dimension of B. */
int shmview_view_bytes(const struct shmview_view *view, struct shmview_view *ret_view);

/* The same number of elements in another shape, in C order. One length may be -1: what is
 * left. Works on strided views too, wherever no copy is needed. Also -SHMVIEW_ERR_ILL_SIZED
 * if the counts differ. */
int shmview_view_reshape(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                         struct shmview_view *ret_view);

#define SHMVIEW_OMIT INT64_MIN /* a bound that Python's a[start:stop:step] leaves out */

/* Elements start, start + step, ... before stop of one dimension, as Python has it: bounds
 * below 0 count from the end, bounds outside are cut; step is not 0, and is 1 if it is
 * SHMVIEW_OMIT. */
int shmview_view_slice(const struct shmview_view *view, uint32_t dimension, int64_t start,
                       int64_t stop, int64_t step, struct shmview_view *ret_view);

/* Index i of one dimension, which goes away. i below 0 counts from the end. A dimension
 * with a suboffset must be the first one: its row is looked up now.
 * Also -SHMVIEW_ERR_BOUNDS. */
int shmview_view_index(const struct shmview_view *view, uint32_t dimension, int64_t i,
                       struct shmview_view *ret_view);

/* Dimension d is the old dimension axes[d]; NULL reverses them. Not with suboffsets. */
int shmview_view_transpose(const struct shmview_view *view, const uint32_t *axes,
                           struct shmview_view *ret_view);

/* Repeats elements by strides of 0, by numpy's rule: from the last dimension on, lengths
 * are the same or were 1. The result is read-only. */
int shmview_view_broadcast(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                           struct shmview_view *ret_view);

/* One field of a struct, by name; NULL is the only component of an element without names
 * ("3f"). An array field adds its dimensions. Also -SHMVIEW_ERR_NOT_FOUND, _MISALIGNED (in a
 * packed struct), _NO_MEMORY. */
int shmview_view_field(const struct shmview_view *view, const char *name,
                       struct shmview_view *ret_view);

/* --- One element --------------------------------------------------------- */

/* Reads or writes the element at index[0..ndim-1], converting from or to its type, in
 * either byte order. Both forms check the index and follow suboffsets.
 *
 * Integers are exact: what is no integer, or does not fit, is -SHMVIEW_ERR_CONVERSION and
 * changes nothing. A double is rounded to the nearest float of the element's type; one that
 * is too large for it is _CONVERSION. A complex is a real if its imaginary part is 0. Any
 * number but 0 is true. Structs and strings are only bytes.
 * Returns 0, -SHMVIEW_ERR_BOUNDS, _MISALIGNED, _CONVERSION or _READ_ONLY. */
int shmview_get_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t *ret);
int shmview_set_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t value);
int shmview_get_double(const struct shmview_view *view, const ptrdiff_t *index, double *ret);
#define shmview_get_double shmview_get_double_inline /* element.h; #undef it for the symbol */
int shmview_set_double(const struct shmview_view *view, const ptrdiff_t *index, double value);
/* Real part, imaginary part. */
int shmview_get_complex(const struct shmview_view *view, const ptrdiff_t *index, double ret[2]);
int shmview_set_complex(const struct shmview_view *view, const ptrdiff_t *index,
                        const double value[2]);
/* The bytes of the element as they are: itemsize of them. */
int shmview_get_bytes(const struct shmview_view *view, const ptrdiff_t *index, void *ret);
int shmview_set_bytes(const struct shmview_view *view, const ptrdiff_t *index, const void *bytes);

/* --- Whole views --------------------------------------------------------- */

/* Copies the elements of from to those of to, which has the same shape. Where the formats
 * differ each element is converted by the rules above. The two may overlap.
 * Returns 0; -SHMVIEW_ERR_INVALID (shapes), _READ_ONLY, _BOUNDS (a suboffset); or
 * _CONVERSION, with the element's index in the text: those before it, in C order, are
 * copied, or some more of them. -SHMVIEW_ERR_NO_MEMORY only where they overlap. */
int shmview_copy(const struct shmview_view *to, const struct shmview_view *from);

/* Sets every element to the one at bytes, itemsize of them.
 * Returns 0, -SHMVIEW_ERR_READ_ONLY or _BOUNDS. */
int shmview_fill(const struct shmview_view *view, const void *bytes);
/* The same with a number. Also -SHMVIEW_ERR_CONVERSION, and nothing is changed. */
int shmview_fill_int64(const struct shmview_view *view, int64_t value);
int shmview_fill_double(const struct shmview_view *view, double value);

/* Whether two views have the same shape and the same values. Numbers of different formats
 * are compared by their values; NaN is not equal to itself. Structs and strings compare as bytes,
 * and only with the same format. ret_index, of ndim entries, may be NULL: the first
 * difference, in C order.
 * Returns 1, 0, or -SHMVIEW_ERR_CONVERSION (a struct with a number) or _BOUNDS. */
int shmview_equal(const struct shmview_view *a, const struct shmview_view *b, ptrdiff_t *ret_index);

/* Of real numbers; of a view without one that is not NaN, min and max are NaN, sum is 0. */
struct shmview_summary {
    uint64_t n;     /* elements */
    uint64_t n_nan; /* of which NaN; they count for nothing else */
    double min, max;
    double sum; /* of integers: the exact sum, rounded once; of floats: within 70 * 2^-53 of the
                 * sum of their magnitudes, where that is a double */
    int64_t min_int64, max_int64; /* integers only, exact, cut to the range of int64 */
};

/* Reads every element once. Returns 0, -SHMVIEW_ERR_CONVERSION (not real numbers) or
 * _BOUNDS. */
int shmview_summarize(const struct shmview_view *view, struct shmview_summary *ret);

/* --- Foreign memory and consumers ---------------------------------------- */

/* Takes nbytes bytes at data, which are not shmview's, as a segment without name, lock and
 * daemon, so that views can be made of them. flags: SHMVIEW_WRAP_READ_ONLY. release, which
 * may be NULL, is called once with arg when the segment is detached, by the thread that
 * does it; not if this call fails. data is aligned as the formats of its views ask, else
 * they are refused. The caller owes shmview_detach().
 * Returns 0, -SHMVIEW_ERR_INVALID (data is NULL and nbytes is not 0) or _NO_MEMORY. */
#define SHMVIEW_WRAP_READ_ONLY 1u
int shmview_wrap(void *data, uint64_t nbytes, unsigned flags, void (*release)(void *arg), void *arg,
                 struct shmview_segment **ret_segment);

/* What a consumer gets: the members of Python's Py_buffer and of Ruby's MemoryView. */
struct shmview_buffer {
    void *buf; /* element [0, ..., 0] */
    struct shmview_segment *segment;
    uint64_t len; /* bytes: the product of shape times itemsize */
    uint64_t itemsize;
    int readonly;
    uint32_t ndim;
    const char *format;          /* NULL unless asked for: bytes */
    const ptrdiff_t *shape;      /* NULL unless asked for: one dimension of len bytes */
    const ptrdiff_t *strides;    /* NULL unless asked for: C-contiguous */
    const ptrdiff_t *suboffsets; /* NULL: none. Else of addresses, as PEP 3118 has them */
    void *internal;              /* of the library */
};

/* What a consumer can bear; the values are Python's PyBUF_*. */
#define SHMVIEW_BUFFER_SIMPLE         0u
#define SHMVIEW_BUFFER_WRITABLE       0x1u
#define SHMVIEW_BUFFER_FORMAT         0x4u
#define SHMVIEW_BUFFER_ND             0x8u
#define SHMVIEW_BUFFER_STRIDES        (0x10u | SHMVIEW_BUFFER_ND)
#define SHMVIEW_BUFFER_C_CONTIGUOUS   (0x20u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_F_CONTIGUOUS   (0x40u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_ANY_CONTIGUOUS (0x80u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_INDIRECT       (0x100u | SHMVIEW_BUFFER_STRIDES)

/* Exports a view to a consumer. Until shmview_buffer_release() the segment cannot be
 * unmapped: shmview_detach() fails with -SHMVIEW_ERR_BUSY and the number of buffers that are
 * out. Rows of a view with suboffsets are looked up now: the buffer has a table of their
 * addresses of its own.
 * Returns 0; or -SHMVIEW_ERR_INVALID (a flag), _READ_ONLY (asked for WRITABLE), _CONTIGUOUS
 * (the view's strides or suboffsets are more than the consumer can bear), _BOUNDS or
 * _MISALIGNED (a suboffset), or _NO_MEMORY. */
int shmview_buffer_get(const struct shmview_view *view, unsigned flags,
                       struct shmview_buffer *ret_buffer);

/* Gives it back and zeroes it, so that twice does no harm. Never fails. Any thread. Does
 * not block, unless it is the last of a segment that was detached meanwhile. */
void shmview_buffer_release(struct shmview_buffer *buffer);

/* Detaches now, or with the last buffer that is out: for a finalizer, which cannot refuse.
 * The handle must not be used any more. A lock that this thread holds is given back; one
 * that another thread holds is left as by a death. Returns 0. */
int shmview_detach_later(struct shmview_segment *segment);

/* --- DLPack -------------------------------------------------------------- */

/* DLPack's own structs, version 1.x and before it: github.com/dmlc/dlpack, dlpack.h. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Exports a view as a tensor in the memory of the CPU, strides in elements. Whoever takes
 * it calls its deleter once, by any thread; until then the segment cannot be unmapped, as
 * with a buffer. The versioned form carries the read-only flag; the old one cannot, and a
 * read-only view is refused there.
 * Returns 0; or -SHMVIEW_ERR_CONVERSION (no such type in DLPack: structs, strings, addresses,
 * the other byte order), _CONTIGUOUS (strides that are no whole elements, suboffsets),
 * _READ_ONLY or _NO_MEMORY. */
int shmview_dlpack_export(const struct shmview_view *view, struct DLManagedTensor **ret_tensor);
int shmview_dlpack_export_versioned(const struct shmview_view *view,
                                    struct DLManagedTensorVersioned **ret_tensor);

/* Takes a tensor: *ret_view sees its memory, *ret_segment owns it, as of shmview_wrap(); when
 * that is detached the tensor's deleter is called. On failure the tensor is still the
 * caller's. Returns 0; or -SHMVIEW_ERR_INVALID (a member is wrong; the text names it),
 * _CONVERSION (device or type), _UNSUPPORTED (a version from 2 on), _MISALIGNED, _OVERFLOW or
 * _NO_MEMORY. */
int shmview_dlpack_import(struct DLManagedTensor *tensor, struct shmview_segment **ret_segment,
                          struct shmview_view *ret_view);
int shmview_dlpack_import_versioned(struct DLManagedTensorVersioned *tensor,
                                    struct shmview_segment **ret_segment,
                                    struct shmview_view *ret_view);

#ifdef __cplusplus
}
#endif
#endif
