/* SPDX-License-Identifier: Apache-2.0 */
/* One element after the other; compiled as programs are, with -O2. */
#include <shmview/view.h>

#include "bulk_raw.h"

double sum_by_get(view_p x)
{
    double sum = 0, value = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++) {
            if (shmview_get_double(x, (const ptrdiff_t[]){i, j}, &value))
                return 0;
            sum += value;
        }
    return sum;
}

float sum_by_at(view_p x)
{
    float sum = 0;
    for (ptrdiff_t i = 0; i < x->shape[0]; i++)
        for (ptrdiff_t j = 0; j < x->shape[1]; j++)
            sum += SHMVIEW_AT2(float, x, i, j);
    return sum;
}
