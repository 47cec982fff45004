/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/element.h - a view, and element access at the speed of a raw pointer.
 *
 * Everything here is inline; libshmview exports the same calls as symbols for
 * other languages. Nothing checks bounds but the calls at the end: those
 * that fill a view proved that every index inside the shape lies in the
 * segment. Access is not synchronised: hold the segment's lock.
 *
 * The fast ways to walk a view, fastest first:
 *   contiguous    float *a = SHMVIEW_DATA(float, &v);             a[i]
 *   rows          float *r = SHMVIEW_ROW(float, &v, i);           r[j]
 *   any strides   struct shmview_strided_row s = shmview_strided(&v, i); SHMVIEW_ELEM(float, s, j)
 *   one element   SHMVIEW_AT2(float, &v, i, j)
 * The first three leave nothing but a pointer and a step in the loop, so that
 * the compiler can vectorise the first two and strength-reduce the third. */
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

#define SHMVIEW_MAX_NDIM 8

/* Element types. The value is part of the ABI; the text behind it is the canonical
 * format. A type that is stored in the other byte order has SHMVIEW_SWAPPED set. */
enum shmview_dtype {
    SHMVIEW_STRUCT = 0,              /* T{...}, and arrays within an element: no type of C's */
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
    SHMVIEW_CHAR = 16,               /* c: a byte that is text */
    SHMVIEW_POINTER = 17,            /* P: an address, as a number */
    SHMVIEW_BYTES = 18,              /* 5s: a string of fixed length */
    SHMVIEW_PASCAL = 19,             /* 5p: a length byte and a string */
    SHMVIEW_BFLOAT16 = 20,           /* this and all below: by DLPack's name */
    SHMVIEW_FLOAT8_E3M4 = 21,        /* IEEE-like: infinities and NaNs */
    SHMVIEW_FLOAT8_E4M3 = 22,        /* the same */
    SHMVIEW_FLOAT8_E4M3B11FNUZ = 23, /* bias 11, finite, no negative zero */
    SHMVIEW_FLOAT8_E4M3FN = 24,      /* finite: NaN, no infinity */
    SHMVIEW_FLOAT8_E4M3FNUZ = 25,    /* finite, no negative zero */
    SHMVIEW_FLOAT8_E5M2 = 26,        /* IEEE-like */
    SHMVIEW_FLOAT8_E5M2FNUZ = 27,    /* finite, no negative zero */
    SHMVIEW_FLOAT8_E8M0FNU = 28,     /* a power of two; unsigned; NaN */
};
#define SHMVIEW_SWAPPED 0x100 /* or-ed to the type: the bytes of a number are reversed */

#define SHMVIEW_VIEW_READ_ONLY                                                                     \
    1u /* must not be written; where the attachment is read-only, cannot */
#define SHMVIEW_VIEW_INDIRECT                                                                      \
    2u /* has suboffsets: only shmview_view_pointer() and the calls of view.h find its elements */

struct shmview_segment;

/* A typed window on a segment. Plain data: copy it freely, it needs no release.
 * It is valid until its segment is detached. Filled by the library; a program
 * reads it and does not change it. The terms are those of PEP 3118: strides are
 * in bytes and may be negative or zero, data is element [0, ..., 0]. With
 * SHMVIEW_VIEW_INDIRECT, where suboffsets[d] >= 0 what index d leads to is not an element
 * but 8 bytes that hold the byte of the segment to go on from, plus suboffsets[d]. */
struct shmview_view {
    unsigned char *data;
    struct shmview_segment *segment; /* borrowed */
    const char *format;              /* canonical PEP 3118 format; lives as long as the segment */
    const void *item;                /* of the library */
    uint64_t nbytes;                 /* product of shape times itemsize */
    uint32_t itemsize;               /* bytes of one element */
    uint32_t dtype;                  /* enum shmview_dtype, SHMVIEW_SWAPPED */
    uint32_t ndim;                   /* 0 to SHMVIEW_MAX_NDIM */
    uint32_t flags;                  /* SHMVIEW_VIEW_* */
    uint32_t layout;                 /* index of the layout it was opened from, or UINT32_MAX */
    uint32_t generation;             /* of the phase at the time it was opened */
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
    ptrdiff_t suboffsets[SHMVIEW_MAX_NDIM]; /* -1: none */
    uint64_t reserved[4];
};

/* One row of a view: what an inner loop needs, by value, so that it stays in
 * registers whatever the loop stores. n is the length, stride is in bytes. */
struct shmview_strided_row {
    unsigned char *data;
    ptrdiff_t n;
    ptrdiff_t stride;
};

/* Address of element [i], [i, j], [i, j, k] of a view with at least that many
 * dimensions (the missing last indices are 0). Never fails. */
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

/* Address of the element at index[0..ndim-1]. Never fails. */
SHMVIEW_INLINE void *shmview_at(const struct shmview_view *view, const ptrdiff_t *index)
{
    unsigned char *p = view->data;
    for (uint32_t d = 0; d < view->ndim; d++)
        p += index[d] * view->strides[d];
    return p;
}

/* Row i of a two-dimensional view, or the whole of a one-dimensional one (then
 * i must be 0), as pointer, length and byte stride. Never fails. */
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

/* Whether the elements of the last dimension follow each other without a gap,
 * so that SHMVIEW_ROW may be used. Returns 1 or 0; 0 for a view with suboffsets. */
SHMVIEW_INLINE int shmview_rows_contiguous(const struct shmview_view *view)
{
    uint32_t last = view->ndim - 1;
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return 0;
    return view->ndim == 0 || view->shape[last] <= 1 ||
           view->strides[last] == (ptrdiff_t)view->itemsize;
}

/* Whether all elements follow each other in C order without a gap, so that
 * SHMVIEW_DATA may be used. Returns 1 or 0; 0 for a view with suboffsets. */
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

/* type is the C type of the element; it must be that of view->dtype. */
#define SHMVIEW_DATA(type, view)         ((type *)(void *)(view)->data)
#define SHMVIEW_ROW(type, view, i)       ((type *)shmview_at1((view), (i)))
#define SHMVIEW_ELEM(type, s, j)         (*(type *)(void *)((s).data + (j) * (s).stride))
#define SHMVIEW_AT1(type, view, i)       (*(type *)shmview_at1((view), (i)))
#define SHMVIEW_AT2(type, view, i, j)    (*(type *)shmview_at2((view), (i), (j)))
#define SHMVIEW_AT3(type, view, i, j, k) (*(type *)shmview_at3((view), (i), (j), (k)))

/* --- The type behind a C type --------------------------------------------- */

#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
/* clang-format off */
/* The enum shmview_dtype of a C type, a constant; does not compile for a type that is none
 * of them. char is text (c), signed char and unsigned char are numbers (b, B). */
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

/* SHMVIEW_VIEW_READ_ONLY, or 0 for a const type: a pointer to any void takes over the const
 * of the other side of "?:". */
#define SHMVIEW_WITHOUT(type)                                                                      \
    _Generic(1 ? (type *)0 : (void *)1,                                                            \
        const void *: 0u,                                                                          \
        const volatile void *: 0u,                                                                 \
        default: SHMVIEW_VIEW_READ_ONLY)
/* clang-format on */
#endif

/* --- Checked access ------------------------------------------------------- */

/* The same ways, for a program that has not looked at the view or has an index from
 * outside: NULL is the answer to everything that does not fit.
 *
 * In the functions, dtype is what the elements must be, and without the flags that the view
 * must not have: SHMVIEW_VIEW_READ_ONLY for who will write, or 0; suboffsets are always too
 * much. The macros take both from a C type: const float for a view that is read-only.
 *
 *   SHMVIEW_IS(type, view)                 1 or 0
 *   SHMVIEW_IS_ND(type, view, ndim)        the same, and of that many dimensions
 *   SHMVIEW_TRY1, 2, 3(type, view, i...)   a pointer to the element
 *   SHMVIEW_TRY(type, view, index)         the same, index[0..ndim-1]
 *   SHMVIEW_CHECKED_DATA(type, view)       what SHMVIEW_DATA gives, if contiguous
 *   SHMVIEW_CHECKED_ROW(type, view, i)     what SHMVIEW_ROW gives, if rows are contiguous
 *   SHMVIEW_CHECKED_STRIDED(type, view, i) what shmview_strided() gives, or no element
 *   SHMVIEW_TRY_ELEM(type, s, j)           a pointer to its element j
 *
 * In a loop over a view's own shape the compiler takes the checks of the TRYs out of it, if
 * it can see that nothing there changes the view. Where the loop stores, show it: copy the
 * view to a local variable first, or walk by rows, which are values. */

#ifdef __GNUC__
#define SHMVIEW_NEVER(condition)                                                                   \
    do {                                                                                           \
        if (condition)                                                                             \
            __builtin_unreachable();                                                               \
    } while (0)
#else
#define SHMVIEW_NEVER(condition) ((void)0)
#endif

/* Whether the elements are of dtype and within reach of a pointer and strides; in the second
 * form, whether the view has that many dimensions as well. Returns 1 or 0. */
SHMVIEW_INLINE int shmview_fits(const struct shmview_view *view, uint32_t dtype, uint32_t without)
{
    return !((view->dtype ^ dtype) | (view->flags & (without | SHMVIEW_VIEW_INDIRECT)));
}
SHMVIEW_INLINE int shmview_fits_nd(const struct shmview_view *view, uint32_t dtype,
                                   uint32_t without, uint32_t ndim)
{
    return !((view->dtype ^ dtype) | (view->flags & (without | SHMVIEW_VIEW_INDIRECT)) |
             (view->ndim ^ ndim));
}

/* Address of an element; NULL also if the view has another number of dimensions. What does not
 * fit has no row 0: that takes one branch less than a test, and as all is read before the
 * first branch the compiler may do it before a loop. */
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

/* Address of the first of all elements, which follow each other without a gap. */
SHMVIEW_INLINE void *shmview_try_data(const struct shmview_view *view, uint32_t dtype,
                                      uint32_t without)
{
    if (!shmview_fits(view, dtype, without) || !shmview_is_contiguous(view))
        return NULL;
    return view->data;
}

/* Address of row i of a view of two dimensions, whose rows have no gaps. */
SHMVIEW_INLINE void *shmview_try_row(const struct shmview_view *view, uint32_t dtype,
                                     uint32_t without, ptrdiff_t i)
{
    if (!shmview_fits_nd(view, dtype, without, 2) || i < 0 || i >= view->shape[0] ||
        !shmview_rows_contiguous(view))
        return NULL;
    return shmview_at1(view, view->nbytes ? i : 0); /* strides of an empty view mean nothing */
}

/* Row i of a view of two dimensions, or row 0, the whole, of one. Else n is 0 and data NULL. */
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

/* Address of element j of a row. */
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

/* shmview_get_double() of view.h, where it is described; an element of a matrix of floats is
 * found without a call. */
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
