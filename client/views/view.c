/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a segment: made from a description, or opened by name; and the layouts that the handle
 * knows.
 *
 * A handle gets the layouts of its segment with the reply to Attach. A layout that was declared
 * later is unknown until somebody asks for it; then find_twice() requests all layouts again.
 * Layouts cannot be changed or removed, so a known one is never out of date. If this handle
 * declared a layout, it keeps the name and the index too, so that the name of a phase with this
 * layout needs no request.
 *
 * The lists are shared by all threads: DETAILS guards them, and NOT_FORKED keeps a fork from
 * copying them half changed. Neither is held while the daemon is asked. */
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

/* Calls view_resolve() with the pool of the segment. */
static int resolve(struct shmview_segment *segment, struct view_desc *desc, const char *format,
                   bool has_strides, struct view_fault *fault)
{
    NOT_FORKED;
    return view_resolve(desc, &segment->formats, format ? format : "", has_strides, fault);
}

/* Makes a description of spec, not yet checked against the segment. Copies the arrays only after
 * ndim is known to fit. Returns 0, or -1 with *fault. */
static int describe(struct shmview_segment *segment, const struct shmview_view_spec *spec,
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
    return resolve(segment, ret, spec->format, spec->strides != NULL, fault);
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

/* Keeps the name and the index of a layout that was just declared, so that the name of its phase
 * needs no request. If memory is short, the name is requested later. */
static void note_declared(struct shmview_segment *segment, const char *layout,
                          const struct reply *reply)
{
    struct wire_fault fault;
    int64_t index;
    struct declared *declared = calloc(1, sizeof *declared);
    if (!declared || wire_read_int(reply->wire.parameters, "index", &index, &fault)) {
        free(declared);
        return;
    }
    declared->index = index;
    snprintf(declared->name, sizeof declared->name, "%s", layout);
    DETAILS;
    NOT_FORKED;
    SLIST_INSERT_HEAD(&segment->declared, declared, link);
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
            note_declared(segment, layout, &reply);
            reply_deinit(&reply);
        }
    }
    free(list);
    return r;
}

/* What a search in the known layouts found. FOUND_FAULTY: a view whose description cannot be
 * used. */
enum found {
    FOUND,
    NOT_FOUND,
    FOUND_FAULTY
};

/* Finds a view by name among the known layouts. FOUND_FAULTY comes with *fault. */
static enum found find_view(struct shmview_segment *segment, const char *layout, const char *view,
                            struct view_desc *ret, uint32_t *ret_layout, struct view_fault *fault)
{
    const struct layouts *known = &segment->layouts;
    for (size_t i = 0; i < known->n; i++)
        for (size_t k = 0; strcmp(known->list[i].name, layout) == 0 && k < known->list[i].n_views;
             k++) {
            const struct wire_view *v = &known->list[i].views[k];
            if (strcmp(v->name, view) != 0)
                continue;
            *ret_layout = (uint32_t)i;
            *ret = v->desc;
            return resolve(segment, ret, v->format, v->has_strides, fault) ? FOUND_FAULTY : FOUND;
        }
    return NOT_FOUND;
}

/* Requests the layouts again and replaces the known ones. Checks the id, because the name may
 * belong to another segment by now. Returns 0 or an error. */
static int refresh_layouts(struct shmview_segment *segment)
{
    struct reply reply;
    struct wire_fault fault;
    struct shmview_description told;
    struct layouts now = {0};
    struct wire_describe describe = {.name = segment->name, .id = (int64_t)segment->id};
    int r = connection_call(segment->connection, "io.shmview.Describe",
                            wire_describe_text(&describe), &reply);
    if (r)
        return r;
    const json_t *p = reply.wire.parameters;
    if (wire_read_segment(p, "segment", &told, &fault) ||
        wire_read_layouts(p, "layouts", &now.list, &now.n, &fault)) {
        r = fail_reply(&fault);
    } else if ((uint64_t)told.id != segment->id) {
        wire_layouts_free(now.list, now.n);
        r = fail(SHMVIEW_ERR_PROTOCOL, "the daemon described another segment '%s'", segment->name);
    } else {
        now.root = json_incref(reply.wire.root);
        struct layouts old;
        {
            DETAILS;
            NOT_FORKED;
            old = segment->layouts;
            segment->layouts = now;
        }
        wire_layouts_free(old.list, old.n);
        json_decref(old.root);
    }
    reply_deinit(&reply);
    return r;
}

/* Runs find, and if it finds nothing, once more after refresh_layouts(). Returns an enum found or
 * an error. */
static int find_twice(struct shmview_segment *segment,
                      enum found (*find)(struct shmview_segment *, void *), void *arg)
{
    enum found found = NOT_FOUND;
    for (int attempt = 0; attempt < 2 && found == NOT_FOUND; attempt++) {
        int r = attempt ? refresh_layouts(segment) : 0;
        if (r)
            return r;
        DETAILS;
        found = find(segment, arg);
    }
    return (int)found;
}

/* A search for a layout by name or by index; the result is in the other member. */
struct name_query {
    const char *wanted; /* NULL: search by index */
    uint32_t index;
    char *name;
    size_t bytes;
};

/* Returns the name of a layout that was declared through this handle, or NULL. */
static const char *find_declared(const struct shmview_segment *segment, uint32_t index)
{
    const struct declared *declared = SLIST_FIRST(&segment->declared);
    while (declared && declared->index != index)
        declared = SLIST_NEXT(declared, link);
    return declared ? declared->name : NULL;
}

/* Finds a layout for find_twice(). Layouts that only this handle declared are found by index: their
 * names are kept for the phase. */
static enum found match_layout(struct shmview_segment *segment, void *arg)
{
    struct name_query *q = arg;
    for (uint32_t i = 0; i < segment->layouts.n; i++)
        if (q->wanted ? strcmp(segment->layouts.list[i].name, q->wanted) == 0 : i == q->index) {
            q->index = i;
            if (q->name)
                snprintf(q->name, q->bytes, "%s", segment->layouts.list[i].name);
            return FOUND;
        }
    const char *declared = q->wanted ? NULL : find_declared(segment, q->index);
    if (declared)
        snprintf(q->name, q->bytes, "%s", declared);
    return declared ? FOUND : NOT_FOUND;
}

int fail_no_layout(const struct shmview_segment *segment, const char *layout)
{
    return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout '%.70s'", segment->name, layout);
}

int layout_find(struct shmview_segment *segment, const char *layout)
{
    struct name_query q = {.wanted = layout};
    int r = find_twice(segment, match_layout, &q);
    if (r == NOT_FOUND)
        return fail_no_layout(segment, layout);
    return r ? r : (int)q.index;
}

int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes)
{
    struct name_query q = {.index = index, .name = ret_name, .bytes = bytes};
    int r = find_twice(segment, match_layout, &q);
    if (r == NOT_FOUND)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout %u: its phase is rubbish",
                    segment->name, index);
    return r;
}

void layout_known_name(struct shmview_segment *segment, uint32_t index, char *ret_name,
                       size_t bytes)
{
    struct name_query q = {.index = index, .name = ret_name, .bytes = bytes};
    DETAILS;
    match_layout(segment, &q);
}

/* A search for a view by two names, and its result. */
struct view_query {
    const char *layout, *view;
    struct view_desc desc;
    uint32_t index;
    struct view_fault fault;
};

static enum found match_view(struct shmview_segment *segment, void *arg)
{
    struct view_query *q = arg;
    return find_view(segment, q->layout, q->view, &q->desc, &q->index, &q->fault);
}

int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view)
{
    struct view_query q = {.layout = layout, .view = view};
    int r = find_twice(segment, match_view, &q);
    if (r == NOT_FOUND)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no view '%.70s' in a layout '%.70s'",
                    segment->name, view, layout);
    if (r < 0)
        return r;
    if (r == FOUND_FAULTY)
        return fail_view(view, &q.fault);
    r = view_finish(segment, &q.desc, view, ret_view);
    if (r)
        return r;
    ret_view->layout = q.index;
    ret_view->generation = phase_generation(&segment->lock);
    return 0;
}
