/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a segment: made from a description, or from the bytes of a range; and the declaration of
 * layouts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/views/handle.h"
#include "common/base/name.h"
#include "common/views/view.h"

const struct format *segment_format(struct shmview_segment *segment, const char *text,
                                    struct view_fault *fault)
{
    struct view_desc desc = {.item = NULL};
    NOT_FORKED;
    return view_parse_format(&desc, &segment->formats, text ? text : "", fault) ? NULL : desc.item;
}

void view_fill(struct shmview_segment *segment, const struct view_desc *desc,
               struct shmview_view *ret)
{
    struct shmview_view v = {
        .data = (unsigned char *)segment->data + desc->offset,
        .segment = segment,
        .format = desc->item->text,
        .item = desc->item,
        .nbytes = desc->item->itemsize,
        .itemsize = desc->item->itemsize,
        .dtype = desc->item->dtype,
        .ndim = desc->ndim,
        .flags = (desc->indirect ? SHMVIEW_VIEW_INDIRECT : 0) |
                 (desc->item->aligned ? SHMVIEW_VIEW_UNALIGNED : 0) |
                 (desc->read_only || segment->access != SHMVIEW_WRITE ? SHMVIEW_VIEW_READ_ONLY : 0),
        .layout = UINT32_MAX,
    };
    for (uint32_t d = 0; d < desc->ndim; d++) {
        v.nbytes *= (uint64_t)desc->shape[d]; /* no overflow, see view_check(); or 0 in the end */
        v.shape[d] = (ptrdiff_t)desc->shape[d];
        v.strides[d] = (ptrdiff_t)desc->strides[d];
    }
    for (uint32_t d = 0; d < SHMVIEW_MAX_NDIM; d++)
        v.suboffsets[d] = desc->indirect && d < desc->ndim ? (ptrdiff_t)desc->suboffsets[d] : -1;
    *ret = v;
}

void view_describe(const struct shmview_view *view, struct view_desc *ret)
{
    *ret = (struct view_desc){
        .item = view->item,
        .offset = (uint64_t)(view->data - (unsigned char *)view->segment->data),
        .ndim = view->ndim,
        .read_only = view->flags & SHMVIEW_VIEW_READ_ONLY,
        .indirect = view->flags & SHMVIEW_VIEW_INDIRECT,
    };
    for (uint32_t d = 0; d < view->ndim; d++) {
        ret->shape[d] = view->shape[d];
        ret->strides[d] = view->strides[d];
        ret->suboffsets[d] = view->suboffsets[d];
    }
}

/* Checks the address of the segment itself. view_check() aligns offsets only: a segment begins at a
 * page, but foreign memory may begin anywhere. */
static int check_base(const struct shmview_segment *segment, const struct view_desc *desc,
                      struct view_fault *fault)
{
    uint32_t align = desc->item->align;
    if (desc->indirect && align < VIEW_STORED_BYTES)
        align = VIEW_STORED_BYTES;
    if ((uintptr_t)segment->data % align == 0)
        return 0;
    return view_fault_set(fault, SHMVIEW_ERR_MISALIGNED,
                          "the memory begins at address %p, no multiple of %u, the alignment of "
                          "%.64s%s",
                          segment->data, align, format_name(desc->item),
                          desc->item->align > 1 ? VIEW_ALIGNMENT_HINT : "");
}

int view_finish(struct shmview_segment *segment, struct view_desc *desc, const char *name,
                struct shmview_view *ret)
{
    struct view_fault fault;
    if (view_check(desc, segment->size, NULL, &fault) || check_base(segment, desc, &fault))
        return fail_view(name, &fault);
    view_settle(desc, (uintptr_t)segment->data);
    view_fill(segment, desc, ret);
    return 0;
}

int shmview_view_cast(struct shmview_segment *segment, const char *format, uint64_t offset,
                      uint64_t nbytes, struct shmview_view *ret_view)
{
    struct view_desc desc = {.item = NULL};
    struct view_fault fault;
    desc.item = segment_format(segment, format, &fault);
    if (!desc.item || view_cast(&desc, offset, nbytes, segment->size, &fault))
        return fail_view(NULL, &fault);
    return view_finish(segment, &desc, NULL, ret_view);
}

int segment_resolve(struct shmview_segment *segment, struct view_desc *desc, const char *format,
                    bool has_strides, struct view_fault *fault)
{
    NOT_FORKED;
    return view_resolve(desc, &segment->formats, format ? format : "", has_strides, fault);
}

/* Copies the arrays only after ndim is known to fit. */
int view_spec_describe(const struct shmview_view_spec *spec, struct formats *pool,
                       struct view_desc *ret, struct view_fault *fault)
{
    *ret = (struct view_desc){
        .offset = spec->offset,
        .ndim = spec->ndim,
        .read_only = spec->flags & SHMVIEW_VIEW_READ_ONLY,
        .indirect = spec->suboffsets != NULL,
    };
    if (spec->ndim > SHMVIEW_MAX_NDIM || spec->flags & ~SHMVIEW_VIEW_READ_ONLY ||
        (spec->ndim && !spec->shape))
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "%u dimensions (at most %d), flags 0x%x, %s shape", spec->ndim,
                              SHMVIEW_MAX_NDIM, spec->flags, spec->shape ? "a" : "no");
    size_t bytes = spec->ndim * sizeof *spec->shape;
    if (bytes) {
        memcpy(ret->shape, spec->shape, bytes);
        if (spec->strides)
            memcpy(ret->strides, spec->strides, bytes);
        if (spec->suboffsets)
            memcpy(ret->suboffsets, spec->suboffsets, bytes);
    }
    return view_resolve(ret, pool, spec->format ? spec->format : "", spec->strides != NULL, fault);
}

/* Like view_spec_describe(), with the pool of the segment. */
static int describe(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                    struct view_desc *ret, struct view_fault *fault)
{
    NOT_FORKED;
    return view_spec_describe(spec, &segment->formats, ret, fault);
}

int shmview_view_make(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    if (describe(segment, spec, &desc, &fault))
        return fail_view(spec->name, &fault);
    return view_finish(segment, &desc, spec->name, ret_view);
}

/* --- Layouts ------------------------------------------------------------- */

static bool valid_name(const char *name)
{
    return name && name_is_valid(name, LIMIT_VIEW_NAME_BYTES);
}

static int fail_name(const char *what, const char *name)
{
    return fail(
        SHMVIEW_ERR_INVALID,
        "'%.70s' is not a valid name for a %s: 1 to %d of A-Z a-z 0-9 . _ -, no dot in front",
        name ? name : "(null)", what, LIMIT_VIEW_NAME_BYTES);
}

/* Makes the wire form of one view. Checks the view first, so that no request is sent that the
 * daemon would refuse. */
static int write_view(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct wire_view *ret)
{
    struct view_fault fault;
    if (!valid_name(spec->name))
        return fail_name("view", spec->name);
    *ret = (struct wire_view){.name = spec->name, .has_strides = spec->strides != NULL};
    if (describe(segment, spec, &ret->desc, &fault) ||
        view_check(&ret->desc, segment->size, NULL, &fault))
        return fail_view(spec->name, &fault);
    view_settle(&ret->desc, 0);
    ret->format = ret->desc.item->text;
    return 0;
}

int shmview_define(struct shmview_segment *segment, const char *layout,
                   const struct shmview_view_spec *views, size_t n)
{
    if (!segment->connection)
        return fail(SHMVIEW_ERR_INVALID, "foreign memory has no layouts");
    if (segment->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "segment '%s' is attached with access %s", segment->name,
                    wire_access_name(segment->access));
    if (!valid_name(layout))
        return fail_name("layout", layout);
    if (n > LIMIT_VIEWS)
        return fail(SHMVIEW_ERR_LIMIT, "%zu views, the limit is %d", n, LIMIT_VIEWS);
    int r = segment_step_in(segment); /* a forked child must attach the segment first */
    struct wire_view *list = calloc(n ? n : 1, sizeof *list);
    if (!list)
        r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = write_view(segment, &views[i], &list[i]);
    if (r == 0) {
        struct reply reply;
        struct wire_define define = {segment->name, {layout, list, n}, (int64_t)segment->id};
        r = connection_call(segment->connection, "io.shmview.DefineLayout",
                            wire_define_text(&define), &reply);
        if (r == 0) {
            layout_declared(segment, layout, &reply);
            reply_deinit(&reply);
        }
    }
    free(list);
    return r;
}
