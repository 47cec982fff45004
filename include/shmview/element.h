/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/element.h - struct shmview_view, and element access at the speed of a raw pointer.
 *
 * A view is a window on a segment: an address, a format, a shape and strides. view.h makes views;
 * this header reads and writes their elements, for programs that know the type of the elements when
 * they are compiled. Use shmview_get_double() and similar calls of view.h for types that only the
 * run time knows.
 *
 * Everything here is inline, so that an access costs what a raw pointer costs and a compiler can
 * vectorise loops. libshmview exports the same functions as symbols for other languages. The calls
 * before "Checked access" check nothing: the call that filled the view has proved that every index
 * inside the shape leads to an element inside the segment, which is aligned unless the view has
 * SHMVIEW_VIEW_UNALIGNED. The program must keep its indices inside the shape and use the right
 * type. Access is not synchronised: hold the segment's lock.
 *
 * These are the ways to walk a view, fastest first:
 *   contiguous    float *a = SHMVIEW_DATA(float, &v);             a[i]
 *   rows          float *r = SHMVIEW_ROW(float, &v, i);           r[j]
 *   any strides   struct shmview_strided_row s = shmview_strided(&v, i); SHMVIEW_ELEM(float, s, j)
 *   one element   SHMVIEW_AT2(float, &v, i, j)
 *
 * The first three leave only a pointer and a step in the inner loop. The compiler can then
 * vectorise the first two, and replace the multiplication of the third by an addition. */
#ifndef SHMVIEW_ELEMENT_H
#define SHMVIEW_ELEMENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SHMVIEW_INLINE
#define SHMVIEW_INLINE static inline
#endif

/* The most dimensions of a view. A slice of Cython has as many. */
#define SHMVIEW_MAX_NDIM 8

/* Element types. The values are part of the ABI. Each comment has the canonical format of the type,
 * or from SHMVIEW_BFLOAT16 on the name that DLPack gives it, which has no letter in PEP 3118. A
 * number whose bytes are in the other order has SHMVIEW_SWAPPED as well. */
enum shmview_dtype {
    SHMVIEW_STRUCT = 0,              /* T{...}, and arrays within an element */
    SHMVIEW_INT8 = 1,                /* b */
    SHMVIEW_UINT8 = 2,               /* B */
    SHMVIEW_INT16 = 3,               /* h */
    SHMVIEW_UINT16 = 4,              /* H */
    SHMVIEW_INT32 = 5,               /* i */
    SHMVIEW_UINT32 = 6,              /* I */
    SHMVIEW_INT64 = 7,               /* q */
    SHMVIEW_UINT64 = 8,              /* Q */
    SHMVIEW_FLOAT32 = 9,             /* f */
    SHMVIEW_FLOAT64 = 10,            /* d */
    SHMVIEW_FLOAT16 = 11,            /* e */
    SHMVIEW_COMPLEX64 = 12,          /* Zf */
    SHMVIEW_COMPLEX128 = 13,         /* Zd */
    SHMVIEW_LONGDOUBLE = 14,         /* g */
    SHMVIEW_BOOL = 15,               /* ? */
    SHMVIEW_CHAR = 16,               /* c: one byte of text */
    SHMVIEW_POINTER = 17,            /* P: an address, as a number */
    SHMVIEW_BYTES = 18,              /* 5s: a string of fixed length */
    SHMVIEW_PASCAL = 19,             /* 5p: a length byte and a string */
    SHMVIEW_BFLOAT16 = 20,           /* 8 bits of exponent, 7 of fraction */
    SHMVIEW_FLOAT8_E3M4 = 21,        /* like IEEE 754: infinities and NaNs */
    SHMVIEW_FLOAT8_E4M3 = 22,        /* like IEEE 754 */
    SHMVIEW_FLOAT8_E4M3B11FNUZ = 23, /* bias 11, finite, no negative zero */
    SHMVIEW_FLOAT8_E4M3FN = 24,      /* finite: NaN, no infinity */
    SHMVIEW_FLOAT8_E4M3FNUZ = 25,    /* finite, no negative zero */
    SHMVIEW_FLOAT8_E5M2 = 26,        /* like IEEE 754 */
    SHMVIEW_FLOAT8_E5M2FNUZ = 27,    /* finite, no negative zero */
    SHMVIEW_FLOAT8_E8M0FNU = 28,     /* a power of two; unsigned; NaN */
};
/* Or-ed to the type: the bytes of a number are reversed. Typed access refuses such elements,
 * because C cannot load them directly; calls of view.h convert them. */
#define SHMVIEW_SWAPPED 0x100

/* Flags of a view. READ_ONLY: the program must not write through it, and a write raises SIGSEGV if
 * the attachment is read-only. INDIRECT: it has suboffsets, so that only shmview_view_pointer() and
 * other calls of view.h find its elements. UNALIGNED: an element may begin at an address that is no
 * multiple of its type's alignment, as in a packed struct. C must not access such an element by a
 * pointer to its type: the calls of view.h and shmview_value_load() read and write it, and so does
 * memcpy() at the address of shmview_at(). */
#define SHMVIEW_VIEW_READ_ONLY 1u
#define SHMVIEW_VIEW_INDIRECT  2u
#define SHMVIEW_VIEW_UNALIGNED 4u

/* The flags of views that typed pointers must not access. */
#define SHMVIEW_VIEW_BY_VALUE (SHMVIEW_VIEW_INDIRECT | SHMVIEW_VIEW_UNALIGNED)

struct shmview_segment;

/* A typed window on a segment.
 *
 * It is plain data: copy it freely, it owns nothing and needs no release. It is valid until its
 * segment is detached. The library fills it; a program reads it and must not change it, because
 * calls trust what was checked when it was filled. The terms are those of PEP 3118. Without
 * suboffsets element [i, j] begins at data + i * strides[0] + j * strides[1]. Entries of the arrays
 * beyond ndim are unused, and strides of a view without elements mean nothing. */
struct shmview_view {
    /* Element [0, ..., 0]. */
    unsigned char *data;
    /* The segment, which the view does not keep alive. */
    struct shmview_segment *segment;
    /* The canonical format; lives as long as the segment. */
    const char *format;
    const void *item;  /* for the library only */
    uint64_t nbytes;   /* of all elements without gaps: product of shape times itemsize */
    uint32_t itemsize; /* bytes of one element */
    uint32_t dtype;    /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t ndim;     /* 0 (one element) to SHMVIEW_MAX_NDIM */
    uint32_t flags;    /* SHMVIEW_VIEW_* */
    /* The layout from which it was opened, by index, or UINT32_MAX; and the generation of the phase
     * at that time. shmview_view_is_stale() compares both with the current phase. */
    uint32_t layout;
    uint32_t generation;
    /* Elements in each dimension, and bytes from one to the next, negative or 0 too. */
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
    /* -1: none. 0 or more: the index leads to 8 bytes that store the byte of the segment at which
     * the row begins; the suboffset is added to that byte. See view.h. */
    ptrdiff_t suboffsets[SHMVIEW_MAX_NDIM];
    uint64_t reserved[4];
};

/* One row of a view: a pointer, n elements, and stride bytes from one to the next. An inner loop
 * needs nothing else. It is passed by value, so that it stays in registers whatever the loop
 * stores. */
struct shmview_strided_row {
    unsigned char *data;
    ptrdiff_t n;
    ptrdiff_t stride;
};

/* Returns the address of element [i], [i, j] or [i, j, k]. The view must have at least that many
 * dimensions; further indices are 0. Never fails. */
SHMVIEW_INLINE void *shmview_at1(const struct shmview_view *view, ptrdiff_t i)
{
    return view->data + i * view->strides[0];
}
SHMVIEW_INLINE void *shmview_at2(const struct shmview_view *view, ptrdiff_t i, ptrdiff_t j)
{
    return view->data + i * view->strides[0] + j * view->strides[1];
}
SHMVIEW_INLINE void *shmview_at3(const struct shmview_view *view, ptrdiff_t i, ptrdiff_t j,
                                 ptrdiff_t k)
{
    return view->data + i * view->strides[0] + j * view->strides[1] + k * view->strides[2];
}

/* Returns the address of the element at index[0..ndim-1], for any number of dimensions. Never
 * fails. */
SHMVIEW_INLINE void *shmview_at(const struct shmview_view *view, const ptrdiff_t *index)
{
    unsigned char *p = view->data;
    for (uint32_t d = 0; d < view->ndim; d++)
        p += index[d] * view->strides[d];
    return p;
}

/* Returns row i of a two-dimensional view, or the whole of a view with fewer dimensions (then i
 * must be 0). Never fails. */
SHMVIEW_INLINE struct shmview_strided_row shmview_strided(const struct shmview_view *view,
                                                          ptrdiff_t i)
{
    struct shmview_strided_row s;
    if (view->ndim < 2) {
        s.data = view->data;
        s.n = view->ndim ? view->shape[0] : 1;
        s.stride = view->ndim ? view->strides[0] : 0;
    } else {
        s.data = view->data + i * view->strides[0];
        s.n = view->shape[1];
        s.stride = view->strides[1];
    }
    return s;
}

/* Returns 1 if the elements of the last dimension follow each other without gaps, so that
 * SHMVIEW_ROW may be used, else 0. Returns 0 for a view with suboffsets. */
SHMVIEW_INLINE int shmview_rows_contiguous(const struct shmview_view *view)
{
    uint32_t last = view->ndim - 1;
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return 0;
    return view->ndim == 0 || view->shape[last] <= 1 ||
           view->strides[last] == (ptrdiff_t)view->itemsize;
}

/* Returns 1 if all elements follow each other in C order without gaps, so that SHMVIEW_DATA may be
 * used, else 0. Returns 0 for a view with suboffsets. shmview_view_is_contiguous() also knows other
 * orders. */
SHMVIEW_INLINE int shmview_is_contiguous(const struct shmview_view *view)
{
    ptrdiff_t want = (ptrdiff_t)view->itemsize;
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return 0;
    if (view->nbytes == 0)
        return 1;
    for (uint32_t d = view->ndim; d-- > 0;) {
        if (view->shape[d] > 1 && view->strides[d] != want)
            return 0;
        want *= view->shape[d];
    }
    return 1;
}

/* Element access. type must be the C type of view->dtype, and the view must not have the flags of
 * SHMVIEW_VIEW_BY_VALUE: nothing checks it here. DATA and ROW are
 * pointers to the first element of the view and of row i; ELEM, AT1, AT2 and AT3 are elements, also
 * on the left of an assignment. s is a struct shmview_strided_row. */
#define SHMVIEW_DATA(type, view)         ((type *)(void *)(view)->data)
#define SHMVIEW_ROW(type, view, i)       ((type *)shmview_at1((view), (i)))
#define SHMVIEW_ELEM(type, s, j)         (*(type *)(void *)((s).data + (j) * (s).stride))
#define SHMVIEW_AT1(type, view, i)       (*(type *)shmview_at1((view), (i)))
#define SHMVIEW_AT2(type, view, i, j)    (*(type *)shmview_at2((view), (i), (j)))
#define SHMVIEW_AT3(type, view, i, j, k) (*(type *)shmview_at3((view), (i), (j), (k)))

/* --- The element type of a C type ----------------------------------------- */

#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
/* clang-format off */
/* The enum shmview_dtype of a C type, as a constant. It does not compile for a type that no element
 * has. char is text (c); signed char and unsigned char are numbers (b, B). */
#define SHMVIEW_DTYPE_OF(type)                                                                     \
    _Generic((type){0},                                                                            \
        signed char: SHMVIEW_INT8,                                                                 \
        unsigned char: SHMVIEW_UINT8,                                                              \
        short: SHMVIEW_INT16,                                                                      \
        unsigned short: SHMVIEW_UINT16,                                                            \
        int: SHMVIEW_INT32,                                                                        \
        unsigned int: SHMVIEW_UINT32,                                                              \
        long: sizeof(long) == 8 ? SHMVIEW_INT64 : SHMVIEW_INT32,                                   \
        unsigned long: sizeof(long) == 8 ? SHMVIEW_UINT64 : SHMVIEW_UINT32,                        \
        long long: SHMVIEW_INT64,                                                                  \
        unsigned long long: SHMVIEW_UINT64,                                                        \
        float: SHMVIEW_FLOAT32,                                                                    \
        double: SHMVIEW_FLOAT64,                                                                   \
        long double: SHMVIEW_LONGDOUBLE,                                                           \
        float _Complex: SHMVIEW_COMPLEX64,                                                         \
        double _Complex: SHMVIEW_COMPLEX128,                                                       \
        _Bool: SHMVIEW_BOOL,                                                                       \
        char: SHMVIEW_CHAR)

/* The flags that a view must not have for access by this type: 0 for a const type, else
 * SHMVIEW_VIEW_READ_ONLY. The result of "?:" with a pointer to void is a pointer to void with the
 * const of the other side. */
#define SHMVIEW_WITHOUT(type)                                                                      \
    _Generic(1 ? (type *)0 : (void *)1,                                                            \
        const void *: 0u,                                                                          \
        const volatile void *: 0u,                                                                 \
        default: SHMVIEW_VIEW_READ_ONLY)
/* clang-format on */
#endif

/* --- Checked access ------------------------------------------------------- */

/* These calls check what the calls above take for granted: for programs that did not make the view
 * themselves, or have an index from outside. They return NULL if anything does not fit.
 *
 * The functions take dtype, the type that elements must have, and without, the flags that the view
 * must not have: SHMVIEW_VIEW_READ_ONLY for a program that writes, else 0. They always refuse
 * suboffsets and SHMVIEW_VIEW_UNALIGNED. The macros derive both from a C type: use const float for
 * a view that may be read-only.
 *
 *   SHMVIEW_IS(type, view)                 1 if the elements have this type, else 0
 *   SHMVIEW_IS_ND(type, view, ndim)        1 if the view has that many dimensions as well
 *   SHMVIEW_TRY1, 2, 3(type, view, i...)   a pointer to the element
 *   SHMVIEW_TRY(type, view, index)         a pointer to the element at index[0..ndim-1]
 *   SHMVIEW_CHECKED_DATA(type, view)       like SHMVIEW_DATA, if the view is contiguous
 *   SHMVIEW_CHECKED_ROW(type, view, i)     like SHMVIEW_ROW, if rows are contiguous
 *   SHMVIEW_CHECKED_STRIDED(type, view, i) like shmview_strided(), or a row without elements
 *   SHMVIEW_TRY_ELEM(type, s, j)           a pointer to element j of row s
 *
 *     const float *x = SHMVIEW_TRY2(const float, &view, i, j);
 *     if (!x)
 *         errx(1, "no matrix of floats with an element [%td, %td]", i, j);
 *
 * In a loop over a view's own shape the compiler moves the checks of TRY out of the loop, if it can
 * prove that nothing in the loop changes the view. A loop that stores must make that visible: copy
 * the view to a local variable first, or walk by rows, which are values. */

/* Tells the compiler that a condition is never true. An element never has the address NULL, so that
 * a caller's test for NULL merges with the checks that led here. */
#ifdef __GNUC__
#define SHMVIEW_NEVER(condition)                                                                   \
    do {                                                                                           \
        if (condition)                                                                             \
            __builtin_unreachable();                                                               \
    } while (0)
#else
#define SHMVIEW_NEVER(condition) ((void)0)
#endif

/* Return 1 if the elements have the type dtype, are aligned, and have no suboffsets, and the view
 * has none of the flags in without, else 0. The second form also compares the number of dimensions.
 * One branch decides all of it. */
SHMVIEW_INLINE int shmview_fits(const struct shmview_view *view, uint32_t dtype, uint32_t without)
{
    return !((view->dtype ^ dtype) | (view->flags & (without | SHMVIEW_VIEW_BY_VALUE)));
}
SHMVIEW_INLINE int shmview_fits_nd(const struct shmview_view *view, uint32_t dtype,
                                   uint32_t without, uint32_t ndim)
{
    return !((view->dtype ^ dtype) | (view->flags & (without | SHMVIEW_VIEW_BY_VALUE)) |
             (view->ndim ^ ndim));
}

/* Return the address of an element, or NULL if an index lies outside the shape, or the view has
 * another type or another number of dimensions. A view that does not fit gets length 0 here, so
 * that the test of the index rejects it too: that takes one branch less. All members are read
 * before the first branch, so that the compiler may read them before a loop. */
SHMVIEW_INLINE void *shmview_try_at1(const struct shmview_view *view, uint32_t dtype,
                                     uint32_t without, ptrdiff_t i)
{
    ptrdiff_t n0 = view->shape[0] * shmview_fits_nd(view, dtype, without, 1);
    unsigned char *p = view->data;
    ptrdiff_t s0 = view->strides[0];
    if (i < 0 || i >= n0)
        return NULL;
    p += i * s0;
    SHMVIEW_NEVER(!p);
    return p;
}
SHMVIEW_INLINE void *shmview_try_at2(const struct shmview_view *view, uint32_t dtype,
                                     uint32_t without, ptrdiff_t i, ptrdiff_t j)
{
    ptrdiff_t n0 = view->shape[0] * shmview_fits_nd(view, dtype, without, 2);
    unsigned char *p = view->data;
    ptrdiff_t s0 = view->strides[0], s1 = view->strides[1], n1 = view->shape[1];
    if (i < 0 || i >= n0 || j < 0 || j >= n1)
        return NULL;
    p += i * s0 + j * s1;
    SHMVIEW_NEVER(!p);
    return p;
}
SHMVIEW_INLINE void *shmview_try_at3(const struct shmview_view *view, uint32_t dtype,
                                     uint32_t without, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k)
{
    ptrdiff_t n0 = view->shape[0] * shmview_fits_nd(view, dtype, without, 3);
    unsigned char *p = view->data;
    ptrdiff_t s0 = view->strides[0], s1 = view->strides[1], n1 = view->shape[1];
    ptrdiff_t s2 = view->strides[2], n2 = view->shape[2];
    if (i < 0 || i >= n0 || j < 0 || j >= n1 || k < 0 || k >= n2)
        return NULL;
    p += i * s0 + j * s1 + k * s2;
    SHMVIEW_NEVER(!p);
    return p;
}
SHMVIEW_INLINE void *shmview_try_at(const struct shmview_view *view, uint32_t dtype,
                                    uint32_t without, const ptrdiff_t *index)
{
    if (!shmview_fits(view, dtype, without))
        return NULL;
    for (uint32_t d = 0; d < view->ndim; d++)
        if (index[d] < 0 || index[d] >= view->shape[d])
            return NULL;
    return shmview_at(view, index);
}

/* Returns the address of the first element if all follow each other without gaps, else NULL. */
SHMVIEW_INLINE void *shmview_try_data(const struct shmview_view *view, uint32_t dtype,
                                      uint32_t without)
{
    if (!shmview_fits(view, dtype, without) || !shmview_is_contiguous(view))
        return NULL;
    return view->data;
}

/* Returns the address of row i of a two-dimensional view whose rows have no gaps, else NULL. */
SHMVIEW_INLINE void *shmview_try_row(const struct shmview_view *view, uint32_t dtype,
                                     uint32_t without, ptrdiff_t i)
{
    if (!shmview_fits_nd(view, dtype, without, 2) || i < 0 || i >= view->shape[0] ||
        !shmview_rows_contiguous(view))
        return NULL;
    return shmview_at1(view, view->nbytes ? i : 0); /* strides of an empty view mean nothing */
}

/* Returns row i of a two-dimensional view, or row 0, the whole, of a one-dimensional one. If
 * anything does not fit, n is 0 and data NULL, so that a loop over the row does nothing. */
SHMVIEW_INLINE struct shmview_strided_row
shmview_try_strided(const struct shmview_view *view, uint32_t dtype, uint32_t without, ptrdiff_t i)
{
    struct shmview_strided_row none = {NULL, 0, 0};
    int is_matrix = view->ndim == 2;
    if (!shmview_fits(view, dtype, without) || !(is_matrix || view->ndim == 1) || i < 0 ||
        i >= (is_matrix ? view->shape[0] : 1))
        return none;
    return shmview_strided(view, view->nbytes ? i : 0);
}

/* Returns the address of element j of a row, or NULL if the row has no such element. */
SHMVIEW_INLINE void *shmview_try_elem(struct shmview_strided_row row, ptrdiff_t j)
{
    if (j < 0 || j >= row.n)
        return NULL;
    row.data += j * row.stride;
    SHMVIEW_NEVER(!row.data);
    return row.data;
}

#ifdef SHMVIEW_DTYPE_OF
/* clang-format off */
#define SHMVIEW_FOR(type)           SHMVIEW_DTYPE_OF(type), SHMVIEW_WITHOUT(type)
#define SHMVIEW_IS(type, view)      shmview_fits((view), SHMVIEW_FOR(type))
#define SHMVIEW_IS_ND(type, view, ndim)                                                            \
    shmview_fits_nd((view), SHMVIEW_FOR(type), (ndim))
#define SHMVIEW_TRY1(type, view, i) ((type *)shmview_try_at1((view), SHMVIEW_FOR(type), (i)))
#define SHMVIEW_TRY2(type, view, i, j)                                                             \
    ((type *)shmview_try_at2((view), SHMVIEW_FOR(type), (i), (j)))
#define SHMVIEW_TRY3(type, view, i, j, k)                                                          \
    ((type *)shmview_try_at3((view), SHMVIEW_FOR(type), (i), (j), (k)))
#define SHMVIEW_TRY(type, view, index)                                                             \
    ((type *)shmview_try_at((view), SHMVIEW_FOR(type), (index)))
#define SHMVIEW_CHECKED_DATA(type, view)                                                           \
    ((type *)shmview_try_data((view), SHMVIEW_FOR(type)))
#define SHMVIEW_CHECKED_ROW(type, view, i)                                                         \
    ((type *)shmview_try_row((view), SHMVIEW_FOR(type), (i)))
#define SHMVIEW_CHECKED_STRIDED(type, view, i) shmview_try_strided((view), SHMVIEW_FOR(type), (i))
#define SHMVIEW_TRY_ELEM(type, s, j)           ((type *)shmview_try_elem((s), (j)))
/* clang-format on */
#endif

/* shmview_get_double() is described in view.h, which replaces it by the inline form. That form
 * finds an element of a matrix of float or double without a call, and leaves all else, errors
 * included, to the function in the library. */
int shmview_get_double(const struct shmview_view *view, const ptrdiff_t *index, double *ret);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds" /* of one index, where ndim is not 2 */
SHMVIEW_INLINE int shmview_get_double_inline(const struct shmview_view *view,
                                             const ptrdiff_t *index, double *ret)
{
    if (view->ndim == 2 && !(view->flags & SHMVIEW_VIEW_INDIRECT) &&
        (size_t)index[0] < (size_t)view->shape[0] && (size_t)index[1] < (size_t)view->shape[1]) {
        const unsigned char *p =
            view->data + index[0] * view->strides[0] + index[1] * view->strides[1];
        if (view->dtype == SHMVIEW_FLOAT32) {
            float x;
            memcpy(&x, p, sizeof x);
            *ret = (double)x;
            return 0;
        }
        if (view->dtype == SHMVIEW_FLOAT64) {
            memcpy(ret, p, sizeof *ret);
            return 0;
        }
    }
    return shmview_get_double(view, index, ret);
}
#pragma GCC diagnostic pop

#ifdef __cplusplus
}
#endif
#endif
