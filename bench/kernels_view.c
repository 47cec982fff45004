/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

float KERNEL(view_sum_contiguous)(view_p x)
{
    const float *p = SHMVIEW_DATA(float, x);
    ptrdiff_t n = x->shape[0];
    float sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

void KERNEL(view_axpy_contiguous)(float a, view_p x, view_p y)
{
    const float *p = SHMVIEW_DATA(float, x);
    float *q = SHMVIEW_DATA(float, y);
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        q[i] += a * p[i];
}

float KERNEL(view_sum_rows)(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        const float *r = SHMVIEW_ROW(float, x, i);
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += r[j];
    }
    return sum;
}

void KERNEL(view_axpy_rows)(float a, view_p x, view_p y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        const float *p = SHMVIEW_ROW(float, x, i);
        float *q = SHMVIEW_ROW(float, y, i);
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            q[j] += a * p[j];
    }
}

float KERNEL(view_sum_strided)(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        struct shmview_strided_row r = shmview_strided(x, i);
        for (ptrdiff_t j = 0; j < r.n; j++)
            sum += SHMVIEW_ELEM(float, r, j);
    }
    return sum;
}

void KERNEL(view_axpy_strided)(float a, view_p x, view_p y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        struct shmview_strided_row p = shmview_strided(x, i), q = shmview_strided(y, i);
        for (ptrdiff_t j = 0; j < p.n; j++)
            SHMVIEW_ELEM(float, q, j) += a * SHMVIEW_ELEM(float, p, j);
    }
}

float KERNEL(view_sum_at)(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += SHMVIEW_AT2(float, x, i, j);
    return sum;
}

void KERNEL(view_axpy_at)(float a, view_p x, view_p y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            SHMVIEW_AT2(float, y, i, j) += a * SHMVIEW_AT2(float, x, i, j);
}

float KERNEL(view_sum_places)(view_p x, struct places p)
{
    float sum = 0;
    for (ptrdiff_t n = 0; n < p.n; n++)
        sum += SHMVIEW_AT2(float, x, p.rows[n], p.columns[n]);
    return sum;
}
