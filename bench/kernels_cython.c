/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that Cython writes for
 *
 *     for i in range(x.shape[0]):
 *         for j in range(x.shape[1]):
 *             sum += x[i, j]                  or y[i, j] += a * x[i, j]
 *
 * with float[:, :] x, y and neither boundscheck nor wraparound: the slice by value, lengths
 * read before each loop, and for each element the sum of data and index times stride, the
 * outermost first. */
#include "kernels.h"

#define ELEMENT(s, i, j)                                                                           \
    (*(float *)(void *)(((s).data + (i) * (s).strides[0]) + (j) * (s).strides[1]))

float KERNEL(cython_sum)(struct cython_slice x)
{
    float sum = 0;
    ptrdiff_t rows = x.shape[0];
    for (ptrdiff_t i = 0; i < rows; i++) {
        ptrdiff_t columns = x.shape[1];
        for (ptrdiff_t j = 0; j < columns; j++)
            sum = sum + ELEMENT(x, i, j);
    }
    return sum;
}

void KERNEL(cython_axpy)(float a, struct cython_slice x, struct cython_slice y)
{
    ptrdiff_t rows = x.shape[0];
    for (ptrdiff_t i = 0; i < rows; i++) {
        ptrdiff_t columns = x.shape[1];
        for (ptrdiff_t j = 0; j < columns; j++)
            ELEMENT(y, i, j) += a * ELEMENT(x, i, j);
    }
}
