/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/transfer.h"

#include <inttypes.h>
#include <string.h>

#define DESCR_BYTES 8192 /* of a type as numpy describes it */

void transfer_npy(const struct shmview_view *v, struct npy *ret)
{
    *ret = (struct npy){
        .itemsize = v->itemsize,
        .ndim = v->ndim,
        .nbytes = v->nbytes,
        .fortran_order = !shmview_is_contiguous(v) && shmview_view_is_contiguous(v, 'F'),
    };
    snprintf(ret->format, sizeof ret->format, "%s", v->format);
    for (uint32_t d = 0; d < v->ndim; d++)
        ret->shape[d] = v->shape[d];
}

int transfer_choose(struct target *t)
{
    const struct shmview_layout_description *layout = NULL;
    char text[256] = "";
    size_t n = 0;
    if (t->view[0] || t->how->as || t->slice.n)
        return 0; /* the user has chosen; a part without a view is one of the bytes */
    int status = target_layout(t, &layout);
    if (status || !layout)
        return status;
    if (layout->n_views == 1) {
        snprintf(t->layout, sizeof t->layout, "%s", layout->name);
        snprintf(t->view, sizeof t->view, "%s", layout->views[0]->name);
        return 0;
    }
    for (size_t i = 0; i < layout->n_views && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s/%s", i ? ", " : "", t->name,
                              layout->views[i]->name);
    return fail_usage(t->c, "'%s' has %zu views: name one of %s; or '%s[:]', all the bytes",
                      t->name, layout->n_views, text, t->name);
}

int transfer_print_json(struct context *c, const struct target *t, const char *path,
                        const struct npy *npy, uint64_t bytes)
{
    json_t *shape = json_array();
    for (uint32_t d = 0; d < npy->ndim; d++)
        json_array_append_new(shape, json_integer(npy->shape[d]));
    json_t *json =
        json_pack("{s:s, s:s?, s:s, s:s, s:o, s:b, s:I}", "segment", t->name, "view",
                  t->view[0] ? t->view : NULL, "file", path, "format", npy->format, "shape", shape,
                  "fortran_order", npy->fortran_order, "bytes", (json_int_t)bytes);
    int status = print_json(c, json);
    json_decref(json);
    return status;
}

void transfer_shape(uint32_t ndim, const int64_t *shape, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "[");
    for (uint32_t d = 0; d < ndim && n < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%" PRId64, d ? "," : "", shape[d]);
    if (n < bytes)
        snprintf(text + n, bytes - n, "]");
}

/* The texts are static because they are too large for the stack. */
bool transfer_same_type(const char *a, const char *b)
{
    static char descr[2][DESCR_BYTES];
    struct problem problem;
    if (npy_descr(a, descr[0], DESCR_BYTES, &problem) ||
        npy_descr(b, descr[1], DESCR_BYTES, &problem))
        return false;
    for (int i = 0; i < 2; i++)
        if (descr[i][1] == '>')
            descr[i][1] = '<';
    return strcmp(descr[0], descr[1]) == 0;
}
