/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that are compared: sum, and y += a * x. Raw pointers in one file, element.h in
 * another, what Cython makes of the same loops in a third; compiled with the same flags, once with
 * -O2, once with -O3, and once for the processor of this machine; none of them is inlined. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stddef.h>

#include <shmview/element.h>

/* A matrix as plain numbers: byte strides that are known only at run time. */
struct raw_matrix {
    unsigned char *data;
    ptrdiff_t rows, columns;
    ptrdiff_t row_stride, column_stride;
};

/* The members of Cython's slice, in their order. */
struct cython_slice {
    void *memview;
    char *data;
    ptrdiff_t shape[8];
    ptrdiff_t strides[8];
    ptrdiff_t suboffsets[8];
};

/* Elements of a matrix in an order that no compiler can know. */
struct places {
    const uint32_t *rows, *columns;
    ptrdiff_t n;
};

typedef const struct shmview_view *view_p;

/* X(type, name, parameters) */
#define KERNEL_LIST(X)                                                                             \
    X(float, raw_sum_contiguous, (const float *x, ptrdiff_t n))                                    \
    X(void, raw_axpy_contiguous, (float a, const float *x, float *y, ptrdiff_t n))                 \
    X(float, raw_sum_rows, (struct raw_matrix x))                                                  \
    X(void, raw_axpy_rows, (float a, struct raw_matrix x, struct raw_matrix y))                    \
    X(float, raw_sum_strided, (struct raw_matrix x))                                               \
    X(void, raw_axpy_strided, (float a, struct raw_matrix x, struct raw_matrix y))                 \
    X(void, raw_axpy_compared,                                                                     \
      (float a, struct raw_matrix x, struct raw_matrix y, ptrdiff_t x_end, ptrdiff_t y_end))       \
    X(float, cython_sum, (struct cython_slice x))                                                  \
    X(void, cython_axpy, (float a, struct cython_slice x, struct cython_slice y))                  \
    X(float, view_sum_contiguous, (view_p x))                                                      \
    X(void, view_axpy_contiguous, (float a, view_p x, view_p y))                                   \
    X(float, view_sum_rows, (view_p x))                                                            \
    X(void, view_axpy_rows, (float a, view_p x, view_p y))                                         \
    X(float, view_sum_strided, (view_p x))                                                         \
    X(void, view_axpy_strided, (float a, view_p x, view_p y))                                      \
    X(float, view_sum_at, (view_p x))                                                              \
    X(void, view_axpy_at, (float a, view_p x, view_p y))                                           \
    X(float, view_sum_places, (view_p x, struct places p))                                         \
    X(float, checked_sum_rows, (view_p x))                                                         \
    X(float, checked_sum_at, (view_p x))                                                           \
    X(void, checked_axpy_strided, (float a, view_p x, view_p y))                                   \
    X(void, checked_axpy_at, (float a, view_p x, view_p y))                                        \
    X(float, checked_sum_places, (view_p x, struct places p))

struct kernels {
    const char *level;
#define X(type, name, parameters) type(*name) parameters;
    KERNEL_LIST(X)
#undef X
};

extern const struct kernels kernels_O2, kernels_O3, kernels_native;

/* In the files of kernels, which are compiled with LEVEL: the name of this one's. */
#ifdef LEVEL
#define KERNEL_JOIN(name, level)  name##_##level
#define KERNEL_AT(name, level)    KERNEL_JOIN(name, level)
#define KERNEL(name)              KERNEL_AT(name, LEVEL)
#define X(type, name, parameters) __attribute__((noinline)) type KERNEL(name) parameters;
KERNEL_LIST(X)
#undef X
#endif

#endif
