/* SPDX-License-Identifier: Apache-2.0 */
/* Views by name, and the layouts that a handle knows.
 *
 * A handle knows the layouts that its segment had when it was attached (client/segment/known.h). A
 * layout that was declared later is unknown until somebody asks for it, and the views of a large
 * one are unknown until the first of them is opened. Then its layout is requested, and no other
 * one. A view that a known layout does not have needs no request, because layouts cannot change.
 *
 * DETAILS guards what is known. It is not held while the daemon is asked. */
#include <stdio.h>
#include <stdlib.h>

#include "client/lock/word.h"
#include "client/views/handle.h"

/* Adds the layouts of a reply to those that are known. Checks the id, because the name may belong
 * to another segment by now. Returns 0 or an error. */
static int learn(struct shmview_segment *segment, const struct reply *reply)
{
    struct wire_fault fault;
    struct shmview_description told;
    struct wire_described described;
    const json_t *p = reply->wire.parameters;
    int r = 0;
    if (wire_read_segment(p, "segment", &told, &fault))
        return fail_reply(&fault);
    if ((uint64_t)told.id != segment->id)
        return fail(SHMVIEW_ERR_PROTOCOL, "the daemon described another segment '%s'",
                    segment->name);
    if (wire_read_described(p, &described, &fault))
        return fail_reply(&fault);
    {
        DETAILS;
        for (size_t i = 0; r == 0 && i < described.n_layouts; i++)
            r = known_add(&segment->known, (size_t)described.index + i, &described.layouts[i]);
    }
    wire_layouts_free(described.layouts, described.n_layouts);
    return r;
}

/* Requests a layout by its name; or, if that is NULL, those from an index on, as many as fit into
 * one reply. Returns 0, also if there is none, or an error. */
static int request(struct shmview_segment *segment, const char *layout, int64_t from)
{
    struct reply reply;
    const struct wire_describe describe = {segment->name, (int64_t)segment->id, layout, from};
    int r = connection_call(segment->connection, "io.shmview.Describe",
                            wire_describe_text(&describe), &reply);
    if (r)
        return r;
    r = learn(segment, &reply);
    reply_deinit(&reply);
    return r;
}

void layout_declared(struct shmview_segment *segment, const char *layout, const struct reply *reply)
{
    struct wire_fault fault;
    int64_t index;
    if (wire_read_int(reply->wire.parameters, "index", &index, &fault))
        return;
    DETAILS;
    known_add(&segment->known, (size_t)index, &(struct wire_layout){.name = layout});
}

/* --- Layouts ------------------------------------------------------------- */

int fail_no_layout(const struct shmview_segment *segment, const char *layout)
{
    return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout '%.70s'", segment->name, layout);
}

/* Looks for a layout among those that are known. *ret_index is -1 if it is not there. Returns 0 or
 * an error. */
static int find(struct shmview_segment *segment, const char *layout, int *ret_index)
{
    DETAILS;
    int r = known_read(&segment->known);
    *ret_index = r ? -1 : known_find(&segment->known, layout);
    return r;
}

int layout_find(struct shmview_segment *segment, const char *layout)
{
    int index, r = find(segment, layout, &index);
    if (r == 0 && index < 0 && (r = request(segment, layout, FIELDS_ABSENT)) == 0)
        r = find(segment, layout, &index);
    return r ? r : index < 0 ? fail_no_layout(segment, layout) : index;
}

/* Copies the name of a layout to ret_name. Returns whether it is known. */
static bool copy_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes)
{
    DETAILS;
    const char *name = known_read(&segment->known) ? NULL : known_name(&segment->known, index);
    if (name)
        snprintf(ret_name, bytes, "%s", name);
    return name;
}

int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes)
{
    if (copy_name(segment, index, ret_name, bytes))
        return 0;
    int r = index < LIMIT_LAYOUTS ? request(segment, NULL, index) : 0;
    if (r || copy_name(segment, index, ret_name, bytes))
        return r;
    return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no layout %u: its phase is rubbish",
                segment->name, index);
}

void layout_known_name(struct shmview_segment *segment, uint32_t index, char *ret_name,
                       size_t bytes)
{
    copy_name(segment, index, ret_name, bytes);
}

/* --- Views --------------------------------------------------------------- */

/* The outcome of a search. UNKNOWN: the handle does not know the views of the layout. FAULTY: the
 * description of the view cannot be used. */
enum found {
    FOUND,
    NOT_FOUND,
    UNKNOWN,
    FAULTY,
};

/* A search for a view by two names, and its result. */
struct view_query {
    const char *layout, *view;
    struct view_desc desc;   /* FOUND */
    int index;               /* of the layout */
    struct view_fault fault; /* FAULTY */
};

/* Resolves the description of a known view, and keeps the result for the next time. Returns FOUND
 * or FAULTY. */
static enum found resolve(struct shmview_segment *segment, struct wire_view *view,
                          struct view_query *q)
{
    if (segment_resolve(segment, &q->desc, view->format, view->has_strides, &q->fault))
        return FAULTY;
    NOT_FORKED;
    view->desc = q->desc;
    return FOUND;
}

/* Looks for a view among those that are known. Returns an enum found or an error. */
static int find_view(struct shmview_segment *segment, struct view_query *q)
{
    const struct known *known = &segment->known;
    DETAILS;
    int r = known_read(&segment->known);
    if (r)
        return r;
    q->index = known_find(known, q->layout);
    if (q->index < 0 || !known_has_views(known, q->index))
        return UNKNOWN;
    struct wire_view *v = known_view(known, q->index, q->view);
    if (!v)
        return NOT_FOUND;
    q->desc = v->desc;
    return v->desc.item ? FOUND : (int)resolve(segment, v, q);
}

/* Copies the name of a view that is known. Returns an enum found or an error. */
static int copy_view_name(struct shmview_segment *segment, const char *layout, size_t i,
                          char *ret_name)
{
    const struct known *known = &segment->known;
    DETAILS;
    int r = known_read(&segment->known);
    if (r)
        return r;
    int index = known_find(known, layout);
    if (index < 0 || !known_has_views(known, index))
        return UNKNOWN;
    const char *name = known_view_name(known, index, i);
    if (!name)
        return NOT_FOUND;
    snprintf(ret_name, LIMIT_VIEW_NAME_BYTES + 1, "%s", name);
    return FOUND;
}

int layout_view_name(struct shmview_segment *segment, const char *layout, size_t i, char *ret_name)
{
    int r = copy_view_name(segment, layout, i, ret_name);
    if (r == UNKNOWN && (r = request(segment, layout, FIELDS_ABSENT)) == 0)
        r = copy_view_name(segment, layout, i, ret_name);
    return r == UNKNOWN ? fail_no_layout(segment, layout) : r;
}

int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view)
{
    struct view_query q = {.layout = layout, .view = view};
    int r = find_view(segment, &q);
    if (r == UNKNOWN && (r = request(segment, layout, FIELDS_ABSENT)) == 0)
        r = find_view(segment, &q);
    if (r == NOT_FOUND || r == UNKNOWN)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "segment '%s' has no view '%.70s' in a layout '%.70s'",
                    segment->name, view, layout);
    if (r == FAULTY)
        return fail_view(view, &q.fault);
    r = r ? r : view_finish(segment, &q.desc, view, ret_view);
    if (r)
        return r;
    ret_view->layout = (uint32_t)q.index;
    ret_view->generation = phase_generation(&segment->lock);
    return 0;
}
