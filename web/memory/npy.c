/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/npy.h"

#include <stdio.h>
#include <string.h>

#define MAGIC        "\x93NUMPY\x01"
#define BEFORE_TEXT  10 /* bytes: magic, version, and the length of the text */
#define ALIGN        64
#define HEADER_BYTES 512

/* Copying the elements: from the view of a segment to one of private memory. */
struct work {
    const struct shmview_view *from;
    struct shmview_view to;
};

static int copy(void *arg)
{
    const struct work *w = arg;
    return shmview_copy(&w->to, w->from);
}

/* Returns numpy's kind of a type, or '\0' if numpy has no such number. */
static char kind_of(uint32_t dtype)
{
    if ((dtype & ~(uint32_t)SHMVIEW_SWAPPED) > SHMVIEW_BOOL)
        return '\0';
    return "\0\0biufc"[shmview_dtype_kind(dtype)];
}

/* Writes the header. It is as long as numpy wants it, with spaces and a newline at its end. */
static void put_header(const struct shmview_view *v, char kind, struct text *ret)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    bool is_little = v->dtype & SHMVIEW_SWAPPED ? !little : little;
    char header[HEADER_BYTES];
    int n =
        snprintf(header, sizeof header, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                 v->itemsize == 1 ? '|'
                 : is_little      ? '<'
                                  : '>',
                 kind, v->itemsize);
    for (uint32_t d = 0; d < v->ndim; d++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%td,", v->shape[d]);
    n += snprintf(header + n, sizeof header - (size_t)n, ")}");
    size_t bytes = ((size_t)n + 1 + BEFORE_TEXT + ALIGN - 1) / ALIGN * ALIGN - BEFORE_TEXT;
    const unsigned char length[3] = {0, (unsigned char)(bytes & 0xff), (unsigned char)(bytes >> 8)};
    text_add(ret, MAGIC, sizeof MAGIC - 1);
    text_add(ret, length, sizeof length);
    text_add(ret, header, (size_t)n);
    for (size_t i = (size_t)n; i < bytes - 1; i++)
        text_add(ret, " ", 1);
    text_add(ret, "\n", 1);
}

int npy_check(struct look *look)
{
    const struct shmview_view *v = &look->view;
    char kind = kind_of(v->dtype);
    if (kind && v->nbytes <= NPY_BYTES_MOST)
        return 0;
    snprintf(look->error, sizeof look->error,
             kind ? "a download has at most 256 MiB: choose a slice, or use shmviewctl save"
                  : "elements \"%.60s\" are no numbers of numpy: use shmviewctl save",
             v->format);
    return LOOK_WRONG;
}

int npy_write(struct look *look, struct text *ret)
{
    const struct shmview_view *v = &look->view;
    int64_t shape[SHMVIEW_MAX_NDIM];
    struct shmview_segment *private;
    struct work w = {.from = v};
    for (uint32_t d = 0; d < v->ndim; d++)
        shape[d] = v->shape[d];
    put_header(v, kind_of(v->dtype), ret);
    if (!text_fit(ret, v->nbytes))
        return -SHMVIEW_ERR_NO_MEMORY;
    /* the header has a multiple of ALIGN bytes, so elements are aligned as malloc() aligns */
    int r = shmview_wrap(ret->bytes + ret->n, v->nbytes, 0, NULL, NULL, &private);
    if (r)
        return r;
    const struct shmview_view_spec spec = {.format = v->format, .ndim = v->ndim, .shape = shape};
    r = shmview_view_make(private, &spec, &w.to);
    r = r ? r : look_read(look, copy, &w);
    if (r == 0)
        ret->n += v->nbytes;
    shmview_detach(private);
    return r;
}
