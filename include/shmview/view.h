/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/view.h - views: how to make them, derive one from another, and work on elements.
 *
 * A view describes how to find elements in a segment: the format of one element, the number of
 * elements in each dimension (shape), the bytes from one element to the next in each dimension
 * (strides), and the byte at which element [0, ..., 0] begins (offset). Strides may be negative or
 * 0. Terms and rules are those of PEP 3118 and of Python's struct module.
 *
 *     const int64_t shape[] = {3, 4};
 *     const struct shmview_view_spec spec = {.format = "float32", .ndim = 2, .shape = shape};
 *     struct shmview_view m, column;
 *     shmview_view_make(seg, &spec, &m);
 *     shmview_view_index(&m, 1, 2, &column);
 *     SHMVIEW_AT1(float, &column, 0) = 1;       the element [0, 2] of m
 *
 * struct shmview_view (element.h) is plain data. Copy it freely; it needs no release and is valid
 * until its segment is detached. A call that fills one has checked that each index within the shape
 * leads to bytes inside the segment. They are aligned for the type of the element, except in a view
 * with SHMVIEW_VIEW_UNALIGNED. Therefore the inline calls of element.h need no further check.
 *
 * Suboffsets. If suboffsets[d] is 0 or more, index d leads not to elements but to 8 bytes, aligned
 * to 8, that store the byte of the segment at which the row begins, as a native uint64. The
 * suboffset is added to that byte. Rows can thus lie anywhere:
 *
 *     byte     0      8     16                512 ...         1024 ...
 *           [1024] [ 512] [2048]              row 1           row 0
 *     shape {3, 4}, strides {8, 8}, suboffsets {0, -1}, format "float64"
 *
 * PEP 3118 stores addresses there. shmview stores bytes of the segment, because the address of one
 * process means nothing in another. Other programs can change these offsets at any time, so the
 * calls of this header check them at each use, and the inline calls of element.h must not be used.
 *
 * Only the calls under "Whole views" and "One element" touch elements. shmview_define() and
 * shmview_view_open() may ask the daemon, and return its errors as shmview.h describes them
 * ("requests"); all other calls do not block. No call takes the lock: hold the segment's lock if
 * other programs write. Any thread may call; two threads must not fill the same struct at once.
 * Everything works in a forked child. The view that a call fills may be the one that it is given.
 * docs/VIEWS.md has examples beside Python's memoryview, Cython and Ruby's MemoryView.
 *
 * In lists of errors, _NAME is short for -SHMVIEW_ERR_NAME. Parameters are borrowed for the
 * call. */
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

/* Room for a canonical format, its NUL included. */
#define SHMVIEW_FORMAT_BYTES 1024

/* One part of an element. Parts are in the order of their offsets; a struct comes before its own
 * fields, which are one level deeper. In an array of structs, offsets are those in the first
 * struct. */
struct shmview_component {
    uint32_t offset;   /* bytes from the beginning of the element */
    uint32_t itemsize; /* bytes of one, without repetition */
    uint32_t repeat;   /* how many there are: the product of shape */
    uint32_t dtype;    /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t depth;    /* 0: a part of the element itself; 1: of a struct in it ... */
    uint32_t ndim;     /* dimensions of an array within the element */
    uint32_t shape[SHMVIEW_MAX_NDIM];
    char name[64]; /* "" without one */
};

/* What a format means. */
struct shmview_format {
    uint32_t itemsize;     /* bytes of one element */
    uint32_t align;        /* typed pointers need addresses that are multiples of this */
    uint32_t dtype;        /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t n_components; /* at most 64 */
    uint32_t error_at;     /* where parsing failed: the character, from 0 */
    uint32_t least_align;  /* addresses in a view must be multiples of this: align, or 1 if marks
                              other than @ say that there is no alignment */
    /* The canonical text. Two formats mean the same if these are equal. */
    char text[SHMVIEW_FORMAT_BYTES];
};

/* Parses the format of one element:
 *
 *   b B h H i I l L q Q n N   integers, ? bool, c a byte of text, P an address
 *   e f d g Zf Zd             float16, 32, 64, long double; complex
 *   5s 5p                     strings, x a byte of padding
 *   @ = < > ! ^               native with alignment (the default); native, little, big
 *                             endian of standard size without; native without alignment.
 *                             A mark holds until the next one
 *   3h (2,3)f                 arrays within an element
 *   T{i:a:d:b:}               a struct, with names; padded at its end as in C with @
 *   int16 float32 complex64   names of numpy and DLPack, as the whole text; also for
 *   bfloat16 float8_e4m3fn    types that have no letter, and
 *   <i2 |u1 >f8 S5            numpy's typestrs
 *
 * The canonical text uses standard sizes, has a mark only where it matters, and writes all padding
 * within T{} as x. The result describes n_components parts; as many of them as fit are stored in
 * ret_components, which has room for n and may be NULL. Sources: PEP 3118; docs.python.org,
 * "struct"; numpy, _dtype_from_pep3118; github.com/dmlc/dlpack.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_FORMAT if the text is no format: the error text names
 * the character and the reason, and of *ret only error_at is set. Returns _NO_MEMORY if memory is
 * short. */
int shmview_format_parse(const char *text, struct shmview_format *ret,
                         struct shmview_component *ret_components, size_t n);

/* --- Making views -------------------------------------------------------- */

/* As nbytes: every byte from the offset to the end of the segment. */
#define SHMVIEW_REST UINT64_MAX

/* Makes a one-dimensional view of nbytes bytes from offset on. nbytes must be a multiple of the
 * element's size, or SHMVIEW_REST. The view is read-only if the attachment is. It belongs to no
 * phase, so it never becomes stale.
 *
 * A format with alignment needs an offset that is a multiple of it. A format whose numbers all have
 * the marks ^ = < > ! may begin at any byte. If it is not aligned there, the view has
 * SHMVIEW_VIEW_UNALIGNED, and its format keeps a mark.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_FORMAT, _MISALIGNED if offset is not a multiple of the
 * element's alignment or foreign memory is itself misaligned, _ILL_SIZED if nbytes is not a
 * multiple of the element's size, _BOUNDS if the bytes lie outside the segment, or _NO_MEMORY. The
 * error text names the place. */
int shmview_view_cast(struct shmview_segment *segment, const char *format, uint64_t offset,
                      uint64_t nbytes, struct shmview_view *ret_view);

/* A description of a view to make. Every member but format may be 0, which is its default. */
struct shmview_view_spec {
    const char *name;          /* only in a layout: 1 to 64 letters, digits, '.', '_', '-' */
    const char *format;        /* as in shmview_format_parse() */
    uint64_t offset;           /* byte of element [0, ..., 0] */
    uint32_t ndim;             /* 0 (one element) to SHMVIEW_MAX_NDIM */
    uint32_t flags;            /* SHMVIEW_VIEW_READ_ONLY: nobody should write through this view */
    const int64_t *shape;      /* ndim lengths in elements, 0 or more */
    const int64_t *strides;    /* ndim steps in bytes, negative and zero allowed; NULL: C order */
    const int64_t *suboffsets; /* ndim, -1 for none; NULL: none at all. Needs strides */
};

/* Makes a view as spec describes it. Like shmview_view_cast() it copies nothing, belongs to no
 * phase, and is read-only if the attachment or the flag is.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_FORMAT, _MISALIGNED if the offset or a stride is no
 * multiple of the element's alignment (of 8, where it leads to stored offsets), _BOUNDS if an
 * element lies outside the segment, _OVERFLOW if a size does not fit into 63 bits, _INVALID for too
 * many dimensions, a negative length, an unknown flag, or suboffsets without strides, or
 * _NO_MEMORY. The error text names the dimension and the byte. */
int shmview_view_make(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct shmview_view *ret_view);

/* Declares a layout: a named set of n views that hold at the same time. Every program that attaches
 * the segment can open these views by name.
 *
 *     const struct shmview_view_spec audio[] = {
 *         {.name = "left", .format = "float32", .ndim = 1, .shape = n},
 *         {.name = "right", .format = "float32", .offset = 4096, .ndim = 1, .shape = n},
 *     };
 *     shmview_define(seg, "audio", audio, 2);
 *     shmview_view_open(seg, "audio", "right", &view);
 *
 * Layouts may overlap each other, and so may views of one layout: shmview_switch() makes one of the
 * layouts current. A layout cannot be changed or removed. Needs SHMVIEW_WRITE. Blocks as a request.
 *
 * Returns 0 on success. On failure nothing is declared: returns -SHMVIEW_ERR_LAYOUT_EXISTS if there
 * is a layout of this name, _READ_ONLY if the segment is attached with less than SHMVIEW_WRITE,
 * _DENIED if this user has lost the right to write, _LIMIT beyond 256 views or 64 layouts or
 * if the request would have more than 256 KiB, as of 256 views with formats of 1000 bytes each,
 * _QUOTA of "layout_bytes" (the segment's owner is charged for the text), _INVALID for a wrong name
 * or foreign memory, an error of shmview_view_make() (the text names the view), or an error of
 * requests. */
int shmview_define(struct shmview_segment *segment, const char *layout,
                   const struct shmview_view_spec *views, size_t n);

/* Opens a view of a layout, both by name. The view belongs to the phase that is current now; see
 * shmview_view_is_stale().
 *
 * A handle knows the layouts that the segment had when it was attached. If their text has more than
 * 4 KiB, some forty views, it knows only their names, and the call requests a layout when its first
 * view is opened. It also requests a layout that is new to the handle. In these two cases it blocks
 * as a request, otherwise not at all. Therefore open a view once before you open it under a lock.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LAYOUT if there is no such layout or view,
 * _NOT_FOUND if this user may not see the segment any longer, _INVALID for foreign memory, or an
 * error of requests. */
int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view);

/* --- Asking -------------------------------------------------------------- */

/* Returns 1 if the elements follow each other without gaps in the order 'C' (last index fastest),
 * 'F' (first index fastest) or 'A' (either), else 0. Returns 0 for a view with suboffsets and for
 * an unknown order. Never fails. */
int shmview_view_is_contiguous(const struct shmview_view *view, char order);

/* Computes the strides of ndim dimensions without gaps, in the order 'C' or 'F'.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_OVERFLOW if a stride does not fit into 63 bits, or
 * _INVALID for another order, items of no bytes, a negative length, or too many dimensions. */
int shmview_fill_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                         int64_t *ret_strides);

/* Finds the address of the element at index[0..ndim-1]. Checks the index, follows suboffsets, and
 * checks the offset that is stored there, each time.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BOUNDS if an index or a stored offset leads outside,
 * or _MISALIGNED if a stored offset leads to an address at which no such element can lie. An
 * element of a view with SHMVIEW_VIEW_UNALIGNED may lie at any address. */
int shmview_view_pointer(const struct shmview_view *view, const ptrdiff_t *index,
                         void **ret_pointer);

/* --- Other views of the same elements ------------------------------------ */

/* These calls derive a view from another one. They copy no element. The result is read-only if the
 * given view is, and belongs to the same phase. Beside numpy:
 *
 *     a.view("int16")         shmview_view_recast(&a, "int16", &b)
 *     a.reshape(2, -1)        shmview_view_reshape(&a, 2, (const int64_t[]){2, -1}, &b)
 *     a[:, 1:9:2]             shmview_view_slice(&a, 1, 1, 9, 2, &b)
 *     a[:, ::-1]              shmview_view_slice(&a, 1, SHMVIEW_OMIT, SHMVIEW_OMIT, -1, &b)
 *     a[:, -1]                shmview_view_index(&a, 1, -1, &b)
 *     a.T                     shmview_view_transpose(&a, NULL, &b)
 *     np.broadcast_to(a, s)   shmview_view_broadcast(&a, 2, s, &b)
 *     a["x"]                  shmview_view_field(&a, "x", &b)
 *
 * Each returns 0 on success. Each returns -SHMVIEW_ERR_INVALID if it breaks a rule that its comment
 * names, or leads to a suboffset below 0; _OVERFLOW if a size would not fit; and the errors that
 * the comment adds. The error text names the dimension. */

/* Shows the bytes of a C-contiguous view in another format. The last dimension grows or shrinks.
 * Also returns -SHMVIEW_ERR_FORMAT, _ILL_SIZED, _MISALIGNED or _NO_MEMORY. */
int shmview_view_recast(const struct shmview_view *view, const char *format,
                        struct shmview_view *ret_view);

/* Shows the bytes of a C-contiguous view as one dimension of format B. Also returns _NO_MEMORY. */
int shmview_view_bytes(const struct shmview_view *view, struct shmview_view *ret_view);

/* Gives the same elements another shape, in C order. One length may be -1 and is then computed.
 * Strided views work if no element needs to move; views with suboffsets do not. Also returns
 * -SHMVIEW_ERR_ILL_SIZED if the numbers of elements differ. */
int shmview_view_reshape(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                         struct shmview_view *ret_view);

#define SHMVIEW_OMIT INT64_MIN /* a bound that Python's a[start:stop:step] leaves out */

/* Selects the elements start, start + step, ... before stop of one dimension by Python's rules.
 * Bounds below 0 count from the end, and bounds outside are cut. step must not be 0; SHMVIEW_OMIT
 * as step is 1. */
int shmview_view_slice(const struct shmview_view *view, uint32_t dimension, int64_t start,
                       int64_t stop, int64_t step, struct shmview_view *ret_view);

/* Selects index i of one dimension, which the result does not have. i below 0 counts from the end.
 * A dimension with a suboffset must be the first one, because its row is looked up now. Also
 * returns -SHMVIEW_ERR_BOUNDS, or _MISALIGNED for a stored offset. */
int shmview_view_index(const struct shmview_view *view, uint32_t dimension, int64_t i,
                       struct shmview_view *ret_view);

/* Reorders the dimensions: dimension d of the result is dimension axes[d] of the view. If axes is
 * NULL, the order is reversed. Views with suboffsets are refused. */
int shmview_view_transpose(const struct shmview_view *view, const uint32_t *axes,
                           struct shmview_view *ret_view);

/* Repeats elements by strides of 0. By numpy's rule, counted from the last dimension, each length
 * is the same or was 1. The result is read-only, because one element lies at several indices. */
int shmview_view_broadcast(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                           struct shmview_view *ret_view);

/* Selects one field of a struct by its name. If name is NULL, selects the only component of an
 * element without names ("3f"). The dimensions of an array field come after those of the view. Also
 * returns -SHMVIEW_ERR_NOT_FOUND or _NO_MEMORY. A field of a packed struct may be unaligned; the
 * result then has SHMVIEW_VIEW_UNALIGNED. */
int shmview_view_field(const struct shmview_view *view, const char *name,
                       struct shmview_view *ret_view);

/* --- One element --------------------------------------------------------- */

/* Get or set the element at index[0..ndim-1], and convert it from or to its type, in either byte
 * order. They check the index and follow suboffsets. They are for types that only the run time
 * knows; element.h is faster for a type that the program knows.
 *
 *     double x;
 *     const ptrdiff_t index[] = {1, 2};
 *     shmview_get_double(&view, index, &x);
 *     shmview_set_double(&view, index, x / 2);
 *
 * A conversion to or from an integer type, and of an int64 to a float, must be exact. A double is
 * rounded to the nearest value of the element's type, and shmview_get_double() rounds to the
 * nearest double. A finite number that is too large for the type is refused. A complex counts as
 * real if its imaginary part is 0. As a bool, each number but 0 is true. Structs and strings have
 * only bytes.
 *
 * Each returns 0 on success. On failure the element and *ret are unchanged: returns
 * -SHMVIEW_ERR_CONVERSION if the type or the value cannot be converted, _BOUNDS or _MISALIGNED as
 * shmview_view_pointer() does, or, to set, _READ_ONLY. */
int shmview_get_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t *ret);
int shmview_set_int64(const struct shmview_view *view, const ptrdiff_t *index, int64_t value);
int shmview_get_double(const struct shmview_view *view, const ptrdiff_t *index, double *ret);
#define shmview_get_double shmview_get_double_inline /* element.h; #undef it for the symbol */
int shmview_set_double(const struct shmview_view *view, const ptrdiff_t *index, double value);
/* Like shmview_get_double() and shmview_set_double(); [0] is the real, [1] the imaginary part. */
int shmview_get_complex(const struct shmview_view *view, const ptrdiff_t *index, double ret[2]);
int shmview_set_complex(const struct shmview_view *view, const ptrdiff_t *index,
                        const double value[2]);
/* Like shmview_get_int64() and shmview_set_int64(), for the bytes of any element, unchanged. */
int shmview_get_bytes(const struct shmview_view *view, const ptrdiff_t *index, void *ret);
int shmview_set_bytes(const struct shmview_view *view, const ptrdiff_t *index, const void *bytes);

/* --- Whole views --------------------------------------------------------- */

/* Copies all elements of from to to, which must have the same shape. If the formats differ, it
 * converts each element as above. The two views may overlap.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID if the shapes differ; _READ_ONLY; _BOUNDS or
 * _MISALIGNED for a stored offset; _NO_MEMORY, only if the views overlap; or _CONVERSION, with the
 * index of the element in the text. All elements before it in C order have been copied then, and
 * perhaps some after it. */
int shmview_copy(const struct shmview_view *to, const struct shmview_view *from);

/* Sets every element to the one at bytes, which has itemsize bytes.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_READ_ONLY; or _BOUNDS or _MISALIGNED for a stored
 * offset, after which some elements may be set. */
int shmview_fill(const struct shmview_view *view, const void *bytes);
/* Like shmview_fill(), but with a number. Also return -SHMVIEW_ERR_CONVERSION and set nothing. */
int shmview_fill_int64(const struct shmview_view *view, int64_t value);
int shmview_fill_double(const struct shmview_view *view, double value);

/* Compares two views. Numbers of different formats are equal if their values are; NaN is not equal
 * to itself. Structs and strings are compared as bytes, and only with the same format. If the
 * shapes are equal and a value differs, ret_index (ndim entries; may be NULL) is set to the first
 * such index in C order.
 *
 *     ptrdiff_t at[SHMVIEW_MAX_NDIM];
 *     if (shmview_equal(&a, &b, at) == 0)
 *         printf("row %td differs\n", at[0]);
 *
 * Returns 1 if shapes and values are equal, else 0. Returns -SHMVIEW_ERR_CONVERSION for formats
 * that cannot be compared, such as a struct with a number; _BOUNDS or _MISALIGNED for a stored
 * offset. */
int shmview_equal(const struct shmview_view *a, const struct shmview_view *b, ptrdiff_t *ret_index);

/* Figures of a view of real numbers. If no element is a number, min and max are NaN and sum is
 * 0. */
struct shmview_summary {
    uint64_t n;     /* elements */
    uint64_t n_nan; /* how many of them are NaN, which nothing else counts */
    /* The least and the greatest number. */
    double min, max;
    /* Of integers: the exact sum, rounded once. Of floats: within 70 * 2^-53 of the sum of their
     * magnitudes, if that is a double. A long double is rounded to a double first. */
    double sum;
    int64_t min_int64, max_int64; /* integers only, exact, cut to the range of int64 */
};

/* Computes the figures in one pass over the elements.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_CONVERSION if the elements are no real numbers, or
 * _BOUNDS or _MISALIGNED for a stored offset. */
int shmview_summarize(const struct shmview_view *view, struct shmview_summary *ret);

/* --- Foreign memory and consumers ---------------------------------------- */

/* Makes a segment of nbytes bytes at data that the program already has, so that views of them can
 * be made.
 *
 *     float taps[64];
 *     shmview_wrap(taps, sizeof taps, 0, NULL, NULL, &foreign);
 *     shmview_view_cast(foreign, "float32", 0, SHMVIEW_REST, &view);
 *
 * Such a segment has no name, lock or daemon: calls that need one fail with _NO_LOCK or _INVALID.
 * flags is 0 or SHMVIEW_WRAP_READ_ONLY. The memory must stay valid until the segment is detached.
 * At that moment release (unless it is NULL) is called once with arg, by the thread that detaches;
 * also in a forked child that detaches its copy. Views are refused where data is not aligned for
 * their format. The caller must pass *ret_segment to shmview_detach().
 *
 * Returns 0 on success. On failure release is not called: returns -SHMVIEW_ERR_INVALID if data is
 * NULL and nbytes is not 0, if no memory is so large, or for an unknown flag; _NO_MEMORY or
 * _SYSTEM. */
#define SHMVIEW_WRAP_READ_ONLY 1u
int shmview_wrap(void *data, uint64_t nbytes, unsigned flags, void (*release)(void *arg), void *arg,
                 struct shmview_segment **ret_segment);

/* A view for a consumer, with the members of Python's Py_buffer and Ruby's MemoryView. Pointers are
 * valid until shmview_buffer_release(). */
struct shmview_buffer {
    /* Element [0, ..., 0]; with suboffsets the beginning of the table of rows. */
    void *buf;
    /* The segment that stays mapped; NULL after the release. */
    struct shmview_segment *segment;
    /* Bytes: the product of shape times itemsize. */
    uint64_t len;
    uint64_t itemsize;
    /* 1 if the consumer must not write, else 0. */
    int readonly;
    uint32_t ndim;
    const char *format;          /* NULL unless asked for: bytes */
    const ptrdiff_t *shape;      /* NULL unless asked for: one dimension of len bytes */
    const ptrdiff_t *strides;    /* NULL unless asked for: C-contiguous */
    const ptrdiff_t *suboffsets; /* NULL: none. Else of addresses, as PEP 3118 has them */
    void *internal;              /* for the library only */
};

/* What a consumer accepts, or-ed together. The values are those of Python's PyBUF_*.
 *
 *   SIMPLE           bytes without a shape: the view must be C-contiguous
 *   WRITABLE         the consumer writes: the view must not be read-only
 *   FORMAT           the format; needs ND, because without a shape there are only bytes
 *   ND               the shape: the view must be C-contiguous
 *   STRIDES          shape and strides: any view without suboffsets
 *   C_CONTIGUOUS     shape and strides, if the view has no gaps in C order
 *   F_CONTIGUOUS     shape and strides, if it has none in Fortran's order
 *   ANY_CONTIGUOUS   shape and strides, if it has none in one of the two
 *   INDIRECT         shape, strides and suboffsets: any view */
#define SHMVIEW_BUFFER_SIMPLE         0u
#define SHMVIEW_BUFFER_WRITABLE       0x1u
#define SHMVIEW_BUFFER_FORMAT         0x4u
#define SHMVIEW_BUFFER_ND             0x8u
#define SHMVIEW_BUFFER_STRIDES        (0x10u | SHMVIEW_BUFFER_ND)
#define SHMVIEW_BUFFER_C_CONTIGUOUS   (0x20u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_F_CONTIGUOUS   (0x40u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_ANY_CONTIGUOUS (0x80u | SHMVIEW_BUFFER_STRIDES)
#define SHMVIEW_BUFFER_INDIRECT       (0x100u | SHMVIEW_BUFFER_STRIDES)

/* Exports a view to a consumer.
 *
 *     struct shmview_buffer b;
 *     shmview_buffer_get(&view, SHMVIEW_BUFFER_SIMPLE, &b);
 *     write(fd, b.buf, b.len);
 *     shmview_buffer_release(&b);
 *
 * Until shmview_buffer_release() the segment stays mapped, and shmview_detach() fails with _BUSY.
 * Rows of a view with suboffsets are looked up now: the buffer has its own table of their
 * addresses, because PEP 3118 wants addresses and not offsets. A forked child releases its own copy
 * of a buffer.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_CONTIGUOUS if the consumer does not accept the view's
 * strides or suboffsets, _READ_ONLY if it wants to write and the view is read-only, _BOUNDS or
 * _MISALIGNED for a stored offset, _INVALID for wrong flags or a segment given to
 * shmview_detach_later(), or _NO_MEMORY, also beyond 2^27 rows. */
int shmview_buffer_get(const struct shmview_view *view, unsigned flags,
                       struct shmview_buffer *ret_buffer);

/* Releases a buffer and zeroes it, so that a second release does nothing. The last release of a
 * segment given to shmview_detach_later() detaches it. Does not wait for the daemon. Any thread.
 * Never fails. */
void shmview_buffer_release(struct shmview_buffer *buffer);

/* Detaches now, or when the last buffer or tensor is released: for finalizers, which cannot refuse.
 * The program must not use the handle any longer. If this thread holds the lock, it is released. If
 * another thread holds it exclusively, the next owner gets SHMVIEW_OWNER_DIED. Always returns 0. */
int shmview_detach_later(struct shmview_segment *segment);

/* --- DLPack -------------------------------------------------------------- */

/* The structs of DLPack 1.x and of versions before it: github.com/dmlc/dlpack, dlpack.h. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Exports a view as a tensor in the memory of the CPU. The consumer must call the tensor's deleter
 * once, in any thread; until then the segment stays mapped, as for a buffer. The versioned form has
 * a read-only flag. The old form has none, so it is refused for a read-only view.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_CONVERSION if DLPack has no such type (structs,
 * strings, addresses, long doubles, the other byte order), _CONTIGUOUS if a stride is no whole
 * number of elements or the view has suboffsets, _MISALIGNED for SHMVIEW_VIEW_UNALIGNED,
 * _READ_ONLY, _INVALID after shmview_detach_later(), or _NO_MEMORY. */
int shmview_dlpack_export(const struct shmview_view *view, struct DLManagedTensor **ret_tensor);
int shmview_dlpack_export_versioned(const struct shmview_view *view,
                                    struct DLManagedTensorVersioned **ret_tensor);

/* Imports a tensor: *ret_view shows its memory, and *ret_segment owns it, like a segment of
 * shmview_wrap(). When the segment is detached, the tensor's deleter is called.
 *
 * Returns 0 on success. On failure the caller still owns the tensor: returns -SHMVIEW_ERR_INVALID
 * if a member is wrong (the text names it), _CONVERSION for another device or an unknown type,
 * _UNSUPPORTED if the version is not 1, _MISALIGNED, _OVERFLOW, _NO_MEMORY or _SYSTEM. */
int shmview_dlpack_import(struct DLManagedTensor *tensor, struct shmview_segment **ret_segment,
                          struct shmview_view *ret_view);
int shmview_dlpack_import_versioned(struct DLManagedTensorVersioned *tensor,
                                    struct shmview_segment **ret_segment,
                                    struct shmview_view *ret_view);

#ifdef __cplusplus
}
#endif
#endif
