/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_format_parse(): the public side of common/views/format.h. It needs no segment, so each
 * call has a pool of its own and copies the result into the caller's structs. */
#include <stdio.h>
#include <string.h>

#include "client/views/handle.h"
#include "common/base/util.h"

/* Copies one node of a format to its public form. f must be the format of the node, because the
 * name lies in its text. */
static void tell_component(const struct format *f, const struct format_node *node,
                           struct shmview_component *ret)
{
    *ret = (struct shmview_component){
        .offset = node->offset,
        .itemsize = node->bytes,
        .repeat = node->repeat,
        .dtype = node->dtype,
        .depth = node->depth,
        .ndim = node->ndim,
    };
    memcpy(ret->shape, node->shape, sizeof ret->shape);
    memcpy(ret->name, f->text + node->name_at, node->name_bytes);
}

int shmview_format_parse(const char *text, struct shmview_format *ret,
                         struct shmview_component *ret_components, size_t n)
{
    CLEANUP(formats_deinit) struct formats pool = {0};
    struct format_fault fault;
    const struct format *f = formats_get(&pool, text ? text : "", &fault);
    if (!f && !fault.why[0])
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    if (!f) {
        ret->error_at = (uint32_t)fault.at;
        return fail(SHMVIEW_ERR_FORMAT, "format \"%.32s\": character %zu: %s", text ? text : "",
                    fault.at, fault.why);
    }
    const struct format *aligned = format_aligned(f);
    *ret = (struct shmview_format){
        .itemsize = f->itemsize,
        .align = aligned->align,
        .least_align = f->align,
        .dtype = f->dtype,
        .n_components = f->n_nodes,
    };
    snprintf(ret->text, sizeof ret->text, "%s", aligned->text);
    for (uint32_t i = 0; ret_components && i < f->n_nodes && i < n; i++)
        tell_component(aligned, &f->nodes[i], &ret_components[i]);
    return 0;
}
