/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/private.h"
#include "common/name.h"
#include "common/view.h"

static int fail_view(const char *name, const struct view_fault *fault)
{
    if (name)
        return fail((int)fault->error, "view '%s': %s", name, fault->text);
    return fail((int)fault->error, "%s", fault->text);
}

static void fill_view(struct shmview_segment *segment, const struct view_desc *desc,
                      uint64_t nbytes, struct shmview_view *ret)
{
    struct shmview_view v = {
        .data = (unsigned char *)segment->data + desc->offset,
        .segment = segment,
        .nbytes = nbytes,
        .itemsize = desc->dtype->itemsize,
        .dtype = desc->dtype->code,
        .ndim = desc->ndim,
        .flags = desc->read_only || segment->access != SHMVIEW_WRITE ? SHMVIEW_VIEW_READ_ONLY : 0,
        .layout = UINT32_MAX,
    };
    snprintf(v.format, sizeof v.format, "%s", desc->dtype->format);
    for (uint32_t d = 0; d < desc->ndim; d++) {
        v.shape[d] = (ptrdiff_t)desc->shape[d];
        v.strides[d] = (ptrdiff_t)desc->strides[d];
    }
    *ret = v;
}

int shmview_view_cast(struct shmview_segment *segment, const char *format, uint64_t offset,
                      uint64_t nbytes, struct shmview_view *ret_view)
{
    struct view_desc desc = {0};
    struct view_fault fault;
    if (view_parse_format(&desc, format, &fault) ||
        view_cast(&desc, offset, nbytes, segment->size, &fault))
        return fail_view(NULL, &fault);
    fill_view(segment, &desc, (uint64_t)desc.shape[0] * desc.dtype->itemsize, ret_view);
    return 0;
}

/* Reads shape and strides of spec, as far as ndim is sane. */
static int describe(const struct shmview_view_spec *spec, struct view_desc *ret,
                    struct view_fault *fault)
{
    *ret = (struct view_desc){
        .offset = spec->offset,
        .ndim = spec->ndim,
        .read_only = spec->flags & SHMVIEW_VIEW_READ_ONLY,
    };
    if (spec->ndim > SHMVIEW_MAX_NDIM || spec->flags & ~SHMVIEW_VIEW_READ_ONLY ||
        (spec->ndim && !spec->shape)) {
        fault->error = SHMVIEW_ERR_INVALID;
        snprintf(fault->text, sizeof fault->text,
                 "%u dimensions (at most %d), flags 0x%x, %s shape", spec->ndim, SHMVIEW_MAX_NDIM,
                 spec->flags, spec->shape ? "a" : "no");
        return -1;
    }
    if (view_parse_format(ret, spec->format, fault))
        return -1;
    if (spec->ndim)
        memcpy(ret->shape, spec->shape, spec->ndim * sizeof *spec->shape);
    if (!spec->strides)
        return view_fill_strides(ret, fault);
    memcpy(ret->strides, spec->strides, spec->ndim * sizeof *spec->strides);
    return 0;
}

int shmview_view_make(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct shmview_view *ret_view)
{
    struct view_desc desc;
    struct view_fault fault;
    uint64_t nbytes;
    if (describe(spec, &desc, &fault) || view_check(&desc, segment->size, &nbytes, &fault))
        return fail_view(spec->name, &fault);
    fill_view(segment, &desc, nbytes, ret_view);
    return 0;
}

/* --- Layouts ------------------------------------------------------------- */

static bool valid_name(const char *name)
{
    return name && name_is_valid(name, LIMIT_VIEW_NAME_BYTES);
}

static int fail_name(const char *what, const char *name)
{
    return fail(SHMVIEW_ERR_INVALID,
                "'%.70s' is no name for a %s: 1 to %d of A-Z a-z 0-9 . _ -, no dot in front",
                name ? name : "(null)", what, LIMIT_VIEW_NAME_BYTES);
}

/* Checks here what the daemon would refuse, so that no malformed request is sent. */
static int write_view(const struct shmview_view_spec *spec, uint64_t size, struct wire_view *ret)
{
    struct view_desc desc;
    struct view_fault fault;
    if (!valid_name(spec->name))
        return fail_name("view", spec->name);
    if (describe(spec, &desc, &fault) || view_check(&desc, size, NULL, &fault))
        return fail_view(spec->name, &fault);
    *ret = (struct wire_view){
        .name = spec->name,
        .format = desc.dtype->format,
        .shape.n = spec->ndim,
        .strides.n = spec->ndim,
        .has_strides = spec->strides != NULL,
        .read_only = desc.read_only,
        .offset = (int64_t)spec->offset,
    };
    memcpy(ret->shape.values, desc.shape, sizeof desc.shape);
    memcpy(ret->strides.values, desc.strides, sizeof desc.strides);
    return 0;
}

int shmview_define(struct shmview_segment *segment, const char *layout,
                   const struct shmview_view_spec *views, size_t n)
{
    if (segment->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "segment '%s' is attached with access %s", segment->name,
                    wire_access_name(segment->access));
    if (!valid_name(layout))
        return fail_name("layout", layout);
    if (n > LIMIT_VIEWS)
        return fail(SHMVIEW_ERR_LIMIT, "%zu views, the limit is %d", n, LIMIT_VIEWS);
    int r = segment_step_in(segment); /* a forked child needs an attachment of its own */
    struct wire_view *list = calloc(n ? n : 1, sizeof *list);
    if (!list)
        r = fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; r == 0 && i < n; i++)
        r = write_view(&views[i], segment->size, &list[i]);
    if (r == 0) {
        struct reply reply;
        struct wire_define define = {segment->name, {layout, list, n}, (int64_t)segment->id};
        r = connection_call(segment->connection, "io.shmview.DefineLayout",
                            wire_write_define(&define), &reply);
        if (r == 0)
            reply_deinit(&reply);
    }
    free(list);
    return r;
}

/* The view as it is known here. 0, 1: no such view, 2: *fault. */
static int find_view(struct shmview_segment *segment, const char *layout, const char *view,
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
            struct shmview_view_spec spec = {
                .format = v->format,
                .offset = (uint64_t)v->offset,
                .ndim = (uint32_t)v->shape.n,
                .flags = v->read_only ? SHMVIEW_VIEW_READ_ONLY : 0,
                .shape = v->shape.values,
                .strides = v->has_strides ? v->strides.values : NULL,
            };
            return describe(&spec, ret, fault) ? 2 : 0;
        }
    return 1;
}

/* Asks the daemon for the layouts that were declared since. */
static int refresh_layouts(struct shmview_segment *segment)
{
    struct reply reply;
    struct wire_fault fault;
    struct wire_segment told;
    struct layouts now = {0};
    struct wire_describe describe = {.name = segment->name, .id = (int64_t)segment->id};
    int r = connection_call(segment->connection, "io.shmview.Describe",
                            wire_write_describe(&describe), &reply);
    if (r)
        return r;
    const json_t *p = reply.wire.parameters;
    if (wire_read_segment(p, "segment", &told, &fault) ||
        wire_read_layouts(p, "layouts", &now.list, &now.n, &fault)) {
        r = fail(SHMVIEW_ERR_PROTOCOL, "the daemon's reply: %s %s", fault.parameter, fault.reason);
    } else if ((uint64_t)told.id != segment->id) {
        wire_layouts_free(now.list, now.n);
        r = fail(SHMVIEW_ERR_PROTOCOL, "the daemon described another segment '%s'", segment->name);
    } else {
        now.root = json_incref(reply.wire.root);
        connection_lock(segment->connection);
        struct layouts old = segment->layouts;
        segment->layouts = now;
        connection_unlock(segment->connection);
        wire_layouts_free(old.list, old.n);
        json_decref(old.root);
    }
    reply_deinit(&reply);
    return r;
}

/* Runs look until it finds something, asking the daemon once in between. Returns
 * what look returned, 1 for nothing, or an error. */
static int look_twice(struct shmview_segment *segment,
                      int (*look)(struct shmview_segment *, void *), void *arg)
{
    int found = 1;
    for (int attempt = 0; attempt < 2 && found == 1; attempt++) {
        int r = attempt ? refresh_layouts(segment) : 0;
        if (r)
            return r;
        connection_lock(segment->connection);
        found = look(segment, arg);
        connection_unlock(segment->connection);
    }
    return found;
}

struct name_query {
    const char *wanted; /* NULL: by index */
    uint32_t index;
    char *name;
    size_t bytes;
};

static int look_for_layout(struct shmview_segment *segment, void *arg)
{
    struct name_query *q = arg;
    for (uint32_t i = 0; i < segment->layouts.n; i++)
        if (q->wanted ? strcmp(segment->layouts.list[i].name, q->wanted) == 0 : i == q->index) {
            q->index = i;
            if (q->name)
                snprintf(q->name, q->bytes, "%s", segment->layouts.list[i].name);
            return 0;
        }
    return 1;
}

int layout_find(struct shmview_segment *segment, const char *layout)
{
    struct name_query q = {.wanted = layout};
    int r = look_twice(segment, look_for_layout, &q);
    if (r == 1)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout '%.70s'", segment->name,
                    layout);
    return r ? r : (int)q.index;
}

int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes)
{
    struct name_query q = {.index = index, .name = ret_name, .bytes = bytes};
    int r = look_twice(segment, look_for_layout, &q);
    if (r == 1)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout %u: its phase is rubbish",
                    segment->name, index);
    return r;
}

struct view_query {
    const char *layout, *view;
    struct view_desc desc;
    uint32_t index;
    struct view_fault fault;
};

static int look_for_view(struct shmview_segment *segment, void *arg)
{
    struct view_query *q = arg;
    return find_view(segment, q->layout, q->view, &q->desc, &q->index, &q->fault);
}

int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view)
{
    struct view_query q = {.layout = layout, .view = view};
    uint64_t nbytes;
    int r = look_twice(segment, look_for_view, &q);
    if (r == 1)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no view '%.70s' in a layout '%.70s'",
                    segment->name, view, layout);
    if (r < 0)
        return r;
    if (r == 2 || view_check(&q.desc, segment->size, &nbytes, &q.fault))
        return fail_view(view, &q.fault);
    fill_view(segment, &q.desc, nbytes, ret_view);
    ret_view->layout = q.index;
    ret_view->generation = phase_generation(segment);
    return 0;
}
