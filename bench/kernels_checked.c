/* SPDX-License-Identifier: Apache-2.0 */
/* element.h with checks of type and bounds at every access. The result of one that fails is
 * negative, as no sum here is: -ffast-math has no NaN. */
#include "kernels.h"

#define FAILED (-1.0f)

float KERNEL(checked_sum_rows)(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        const float *r = SHMVIEW_CHECKED_ROW(const float, x, i);
        if (!r)
            return FAILED;
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += r[j];
    }
    return sum;
}

float KERNEL(checked_sum_at)(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++) {
            const float *p = SHMVIEW_TRY2(const float, x, i, j);
            if (!p)
                return FAILED;
            sum += *p;
        }
    return sum;
}

/* Two views, one of which is written: as element.h advises, by rows, whose lengths are
 * compared once, or with the views in local variables. */
void KERNEL(checked_axpy_strided)(float a, view_p x, view_p y)
{
    for (ptrdiff_t i = 0; i < x->shape[0]; i++) {
        struct shmview_strided_row p = SHMVIEW_CHECKED_STRIDED(const float, x, i);
        struct shmview_strided_row q = SHMVIEW_CHECKED_STRIDED(float, y, i);
        if (!p.data || p.n != q.n)
            return;
        for (ptrdiff_t j = 0; j < p.n; j++)
            SHMVIEW_ELEM(float, q, j) += a * SHMVIEW_ELEM(const float, p, j);
    }
}

void KERNEL(checked_axpy_at)(float a, view_p x_view, view_p y_view)
{
    const struct shmview_view x = *x_view, y = *y_view;
    if (x.shape[0] != y.shape[0] || x.shape[1] != y.shape[1])
        return;
    for (ptrdiff_t i = 0; i < x.shape[0]; i++)
        for (ptrdiff_t j = 0; j < x.shape[1]; j++) {
            const float *p = SHMVIEW_TRY2(const float, &x, i, j);
            float *q = SHMVIEW_TRY2(float, &y, i, j);
            if (!p || !q)
                return;
            *q += a * *p;
        }
}

float KERNEL(checked_sum_places)(view_p x, struct places p)
{
    float sum = 0;
    for (ptrdiff_t n = 0; n < p.n; n++) {
        const float *e = SHMVIEW_TRY2(const float, x, p.rows[n], p.columns[n]);
        if (!e)
            return FAILED;
        sum += *e;
    }
    return sum;
}
