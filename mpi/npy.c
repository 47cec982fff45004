/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_BYTES 10
#define ALIGN        64

/* The letter of numpy for a number, or V. */
static char kind_of(uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_BOOL:
        return 'b';
    case SHMVIEW_INT8:
    case SHMVIEW_INT16:
    case SHMVIEW_INT32:
    case SHMVIEW_INT64:
        return 'i';
    case SHMVIEW_UINT8:
    case SHMVIEW_UINT16:
    case SHMVIEW_UINT32:
    case SHMVIEW_UINT64:
    case SHMVIEW_POINTER:
        return 'u';
    case SHMVIEW_FLOAT16:
    case SHMVIEW_FLOAT32:
    case SHMVIEW_FLOAT64:
    case SHMVIEW_LONGDOUBLE:
        return 'f';
    case SHMVIEW_COMPLEX64:
    case SHMVIEW_COMPLEX128:
        return 'c';
    case SHMVIEW_CHAR:
    case SHMVIEW_BYTES:
        return 'S';
    default:
        return 'V';
    }
}

static char order_of(uint32_t dtype, char kind, uint32_t itemsize)
{
    const uint16_t one = 1;
    bool is_little = *(const char *)&one;
    if (itemsize == 1 || kind == 'V' || kind == 'S')
        return '|';
    bool is_swapped = dtype & SHMVIEW_SWAPPED;
    return is_swapped != is_little ? '<' : '>';
}

size_t npy_header(const struct shmview_view *view, uint32_t ndim, const int64_t *shape,
                  char header[NPY_HEADER_BYTES])
{
    char kind = kind_of(view->dtype), dict[NPY_HEADER_BYTES - PREFIX_BYTES - ALIGN] = "";
    size_t n = (size_t)snprintf(dict, sizeof dict,
                                "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                                order_of(view->dtype, kind, view->itemsize), kind, view->itemsize);
    for (uint32_t d = 0; d < ndim; d++)
        n += (size_t)snprintf(dict + n, sizeof dict - n, "%s%lld%s", d ? " " : "",
                              (long long)shape[d], d + 1 < ndim || ndim == 1 ? "," : "");
    n += (size_t)snprintf(dict + n, sizeof dict - n, "), }");
    size_t length = (PREFIX_BYTES + n + 1 + ALIGN - 1) / ALIGN * ALIGN,
           rest = length - PREFIX_BYTES;
    memset(header, ' ', length);
    memcpy(header, "\x93NUMPY\x01", 8);
    header[8] = (char)(rest & 0xff);
    header[9] = (char)(rest >> 8);
    memcpy(header + PREFIX_BYTES, dict, n);
    header[length - 1] = '\n';
    return length;
}
