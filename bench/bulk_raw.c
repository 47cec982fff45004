/* SPDX-License-Identifier: Apache-2.0 */
#include "bulk_raw.h"

#include <math.h>

/* Row i, and element j of a row. */
#define ROW(type, m, i) ((type *)(void *)((m).data + (i) * (m).row_stride))
#define ELEMENT(type, m, i, j)                                                                     \
    (*(type *)(void *)((m).data + (i) * (m).row_stride + (j) * (m).column_stride))

#define BY_ROWS(name, to_type, from_type)                                                          \
    void name(raw_m to, raw_m from)                                                                \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < to.rows; i++) {                                                  \
            to_type *restrict q = ROW(to_type, to, i);                                             \
            const from_type *restrict p = ROW(from_type, from, i);                                 \
            for (ptrdiff_t j = 0; j < to.columns; j++)                                             \
                q[j] = (to_type)p[j];                                                              \
        }                                                                                          \
    }
BY_ROWS(raw_copy_rows, float, float)
BY_ROWS(raw_int32_to_float32_rows, float, int32_t)
BY_ROWS(raw_float64_to_float32_rows, float, double)

void raw_copy_strided(raw_m to, raw_m from)
{
    for (ptrdiff_t i = 0; i < to.rows; i++)
        for (ptrdiff_t j = 0; j < to.columns; j++)
            ELEMENT(float, to, i, j) = ELEMENT(float, from, i, j);
}

void raw_float64_to_float32_strided(raw_m to, raw_m from)
{
    for (ptrdiff_t i = 0; i < to.rows; i++)
        for (ptrdiff_t j = 0; j < to.columns; j++)
            ELEMENT(float, to, i, j) = (float)ELEMENT(double, from, i, j);
}

void raw_fill_rows(raw_m to, float value)
{
    for (ptrdiff_t i = 0; i < to.rows; i++) {
        float *q = ROW(float, to, i);
        for (ptrdiff_t j = 0; j < to.columns; j++)
            q[j] = value;
    }
}

void raw_fill_strided(raw_m to, float value)
{
    for (ptrdiff_t i = 0; i < to.rows; i++)
        for (ptrdiff_t j = 0; j < to.columns; j++)
            ELEMENT(float, to, i, j) = value;
}

int raw_equal_rows(raw_m a, raw_m b)
{
    for (ptrdiff_t i = 0; i < a.rows; i++) {
        const float *p = ROW(float, a, i), *q = ROW(float, b, i);
        int differ = 0;
        for (ptrdiff_t j = 0; j < a.columns; j++)
            differ |= p[j] != q[j];
        if (differ)
            return 0;
    }
    return 1;
}

void raw_summarize_float32_rows(raw_m x, struct raw_summary *ret)
{
    float min = (float)INFINITY, max = -(float)INFINITY;
    double sum = 0;
    uint64_t n_nan = 0;
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const float *p = ROW(float, x, i);
        for (ptrdiff_t j = 0; j < x.columns; j++) {
            float v = p[j];
            min = v < min ? v : min;
            max = v > max ? v : max;
            n_nan += v != v;
            sum += (double)(v == v ? v : 0);
        }
    }
    *ret = (struct raw_summary){n_nan, (double)min, (double)max, sum};
}

void raw_summarize_int32_rows(raw_m x, struct raw_summary *ret)
{
    int32_t min = INT32_MAX, max = INT32_MIN;
    int64_t sum = 0;
    for (ptrdiff_t i = 0; i < x.rows; i++) {
        const int32_t *p = ROW(int32_t, x, i);
        for (ptrdiff_t j = 0; j < x.columns; j++) {
            min = p[j] < min ? p[j] : min;
            max = p[j] > max ? p[j] : max;
            sum += p[j];
        }
    }
    *ret = (struct raw_summary){0, min, max, (double)sum};
}
