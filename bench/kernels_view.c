/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

float view_sum_contiguous(const struct shmview_view *x)
{
    const float *p = SHMVIEW_DATA(float, x);
    ptrdiff_t n = x->shape[0];
    float sum = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

void view_axpy_contiguous(float a, const struct shmview_view *x, const struct shmview_view *y)
{
    const float *p = SHMVIEW_DATA(float, x);
    float *q = SHMVIEW_DATA(float, y);
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        q[i] += a * p[i];
}

float view_sum_rows(const struct shmview_view *x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        const float *r = SHMVIEW_ROW(float, x, i);
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += r[j];
    }
    return sum;
}

void view_axpy_rows(float a, const struct shmview_view *x, const struct shmview_view *y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        const float *p = SHMVIEW_ROW(float, x, i);
        float *q = SHMVIEW_ROW(float, y, i);
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            q[j] += a * p[j];
    }
}

float view_sum_strided(const struct shmview_view *x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        struct shmview_strided_row r = shmview_strided(x, i);
        for (ptrdiff_t j = 0; j < r.n; j++)
            sum += SHMVIEW_ELEM(float, r, j);
    }
    return sum;
}

void view_axpy_strided(float a, const struct shmview_view *x, const struct shmview_view *y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        struct shmview_strided_row p = shmview_strided(x, i), q = shmview_strided(y, i);
        for (ptrdiff_t j = 0; j < p.n; j++)
            SHMVIEW_ELEM(float, q, j) += a * SHMVIEW_ELEM(float, p, j);
    }
}

float view_sum_at(const struct shmview_view *x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += SHMVIEW_AT2(float, x, i, j);
    return sum;
}

void view_axpy_at(float a, const struct shmview_view *x, const struct shmview_view *y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            SHMVIEW_AT2(float, y, i, j) += a * SHMVIEW_AT2(float, x, i, j);
}
