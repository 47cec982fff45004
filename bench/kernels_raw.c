/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

static void *at(const unsigned char *data, ptrdiff_t offset)
{
    return (void *)(uintptr_t)(data + offset);
}

float KERNEL(raw_sum_contiguous)(const float *x, ptrdiff_t n)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

void KERNEL(raw_axpy_contiguous)(float a, const float *x, float *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

float KERNEL(raw_sum_rows)(struct raw_matrix x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const float *r = at(x.data, i * x.row_stride);
        for (ptrdiff_t j = 0; j < x.columns; j++)
            sum += r[j];
    }
    return sum;
}

void KERNEL(raw_axpy_rows)(float a, struct raw_matrix x, struct raw_matrix y)
{
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const float *p = at(x.data, i * x.row_stride);
        float *q = at(y.data, i * y.row_stride);
        for (ptrdiff_t j = 0; j < x.columns; j++)
            q[j] += a * p[j];
    }
}

float KERNEL(raw_sum_strided)(struct raw_matrix x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const unsigned char *r = x.data + i * x.row_stride;
        for (ptrdiff_t j = 0; j < x.columns; j++)
            sum += *(const float *)at(r, j * x.column_stride);
    }
    return sum;
}

void KERNEL(raw_axpy_strided)(float a, struct raw_matrix x, struct raw_matrix y)
{
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const unsigned char *p = x.data + i * x.row_stride;
        unsigned char *q = y.data + i * y.row_stride;
        for (ptrdiff_t j = 0; j < x.columns; j++)
            *(float *)at(q, j * y.column_stride) += a * *(const float *)at(p, j * x.column_stride);
    }
}

/* The checks of two views leave two comparisons of the row at each element. Here are two, with ends
 * that the compiler does not know. */
void KERNEL(raw_axpy_compared)(float a, struct raw_matrix x, struct raw_matrix y, ptrdiff_t x_end,
                               ptrdiff_t y_end)
{
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const unsigned char *p = x.data + i * x.row_stride;
        unsigned char *q = y.data + i * y.row_stride;
        for (ptrdiff_t j = 0; j < x.columns; j++) {
            if (i >= x_end || i >= y_end)
                return;
            *(float *)at(q, j * y.column_stride) += a * *(const float *)at(p, j * x.column_stride);
        }
    }
}
