/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that are compared: sum, and y += a * x. Raw pointers in one file,
 * element.h in the other, compiled with the same flags, none of them inlined. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stddef.h>

#include <shmview/element.h>

#define KERNEL __attribute__((noinline))

/* A matrix as plain numbers: byte strides that are known only at run time. */
struct raw_matrix {
    unsigned char *data;
    ptrdiff_t rows, columns;
    ptrdiff_t row_stride, column_stride;
};

KERNEL float raw_sum_contiguous(const float *x, ptrdiff_t n);
KERNEL void raw_axpy_contiguous(float a, const float *x, float *y, ptrdiff_t n);
KERNEL float raw_sum_rows(struct raw_matrix x);
KERNEL void raw_axpy_rows(float a, struct raw_matrix x, struct raw_matrix y);
KERNEL float raw_sum_strided(struct raw_matrix x);
KERNEL void raw_axpy_strided(float a, struct raw_matrix x, struct raw_matrix y);

KERNEL float view_sum_contiguous(const struct shmview_view *x);
KERNEL void view_axpy_contiguous(float a, const struct shmview_view *x,
                                 const struct shmview_view *y);
KERNEL float view_sum_rows(const struct shmview_view *x);
KERNEL void view_axpy_rows(float a, const struct shmview_view *x, const struct shmview_view *y);
/* struct shmview_strided_row and SHMVIEW_ELEM */
KERNEL float view_sum_strided(const struct shmview_view *x);
KERNEL void view_axpy_strided(float a, const struct shmview_view *x, const struct shmview_view *y);
/* SHMVIEW_AT2 */
KERNEL float view_sum_at(const struct shmview_view *x);
KERNEL void view_axpy_at(float a, const struct shmview_view *x, const struct shmview_view *y);

#endif
