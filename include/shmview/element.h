/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/element.h - a view, and element access at the speed of a raw pointer.
 *
 * Everything here is inline; libshmview exports the same calls as symbols for
 * other languages. Nothing here checks bounds: the calls
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

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SHMVIEW_INLINE
#define SHMVIEW_INLINE static inline
#endif

#define SHMVIEW_MAX_NDIM     8
#define SHMVIEW_FORMAT_BYTES 16

/* Element types. The value is part of the ABI; the letter is the struct code of
 * the canonical format. */
enum shmview_dtype {
    SHMVIEW_INT8 = 1,     /* b */
    SHMVIEW_UINT8 = 2,    /* B */
    SHMVIEW_INT16 = 3,    /* h */
    SHMVIEW_UINT16 = 4,   /* H */
    SHMVIEW_INT32 = 5,    /* i */
    SHMVIEW_UINT32 = 6,   /* I */
    SHMVIEW_INT64 = 7,    /* q */
    SHMVIEW_UINT64 = 8,   /* Q */
    SHMVIEW_FLOAT32 = 9,  /* f */
    SHMVIEW_FLOAT64 = 10, /* d */
};

#define SHMVIEW_VIEW_READ_ONLY                                                                     \
    1u /* must not be written; where the attachment is read-only, cannot */

struct shmview_segment;

/* A typed window on a segment. Plain data: copy it freely, it needs no release.
 * It is valid until its segment is detached. Filled by the library; a program
 * reads it and does not change it. The terms are those of PEP 3118: strides are
 * in bytes and may be negative or zero, data is element [0, ..., 0]. */
struct shmview_view {
    unsigned char *data;
    struct shmview_segment *segment;   /* borrowed */
    uint64_t nbytes;                   /* product of shape times itemsize */
    uint32_t itemsize;                 /* bytes of one element */
    uint32_t dtype;                    /* enum shmview_dtype */
    uint32_t ndim;                     /* 0 to SHMVIEW_MAX_NDIM */
    uint32_t flags;                    /* SHMVIEW_VIEW_* */
    uint32_t layout;                   /* index of the layout it was opened from, or UINT32_MAX */
    uint32_t generation;               /* of the phase at the time it was opened */
    char format[SHMVIEW_FORMAT_BYTES]; /* canonical PEP 3118 format, NUL-terminated */
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
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
 * so that SHMVIEW_ROW may be used. Returns 1 or 0. */
SHMVIEW_INLINE int shmview_rows_contiguous(const struct shmview_view *view)
{
    uint32_t last = view->ndim - 1;
    return view->ndim == 0 || view->shape[last] <= 1 ||
           view->strides[last] == (ptrdiff_t)view->itemsize;
}

/* Whether all elements follow each other in C order without a gap, so that
 * SHMVIEW_DATA may be used. Returns 1 or 0. */
SHMVIEW_INLINE int shmview_is_contiguous(const struct shmview_view *view)
{
    ptrdiff_t want = (ptrdiff_t)view->itemsize;
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

#ifdef __cplusplus
}
#endif
#endif
