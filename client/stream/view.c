/* SPDX-License-Identifier: Apache-2.0 */
/* The views of a frame: those of the layout "frame", moved to its slot. */
#include <inttypes.h>
#include <string.h>

#include "client/base/error.h"
#include "client/stream/stream.h"
#include "client/views/handle.h"
#include "common/stream/plan.h"

/* Checks that a view lies within the frame in slot 0, so that it lies within each frame. */
static int check_place(const struct shmview_stream *s, const char *name,
                       const struct shmview_view *view)
{
    const unsigned char *begin = view->data, *end = view->data + view->itemsize;
    const unsigned char *frame = (unsigned char *)s->segment->data + s->plan.frames_offset;
    for (uint32_t d = 0; d < view->ndim; d++) {
        ptrdiff_t reach = (view->shape[d] - 1) * view->strides[d];
        if (reach < 0)
            begin += reach;
        else
            end += reach;
    }
    if (view->nbytes == 0 || (begin >= frame && end <= frame + s->plan.frame_bytes &&
                              !(view->flags & SHMVIEW_VIEW_INDIRECT)))
        return 0;
    return fail(SHMVIEW_ERR_LAYOUT_VERSION, "view '%s' of stream '%s' lies outside its frame", name,
                s->segment->name);
}

static int open_view(struct shmview_stream *s, struct frame_view *v)
{
    int r = shmview_view_open(s->segment, STREAM_LAYOUT, v->name, &v->view);
    if (r == 0)
        r = check_place(s, v->name, &v->view);
    if (r)
        return r;
    v->view.layout = UINT32_MAX; /* of no phase */
    v->view.generation = 0;
    v->length = v->view.ndim ? (uint64_t)v->view.shape[0] : 1;
    return 0;
}

int stream_open_views(struct shmview_stream *s)
{
    char more[sizeof s->views->name];
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->plan.n_views; i++) {
        r = layout_view_name(s->segment, STREAM_LAYOUT, i, s->views[i].name);
        if (r == 0)
            r = open_view(s, &s->views[i]);
    }
    if (r == 1 ||
        (r == 0 && layout_view_name(s->segment, STREAM_LAYOUT, s->plan.n_views, more) != 1))
        return fail(SHMVIEW_ERR_LAYOUT_VERSION,
                    "the layout of stream '%s' has not %u views, as its header says",
                    s->segment->name, s->plan.n_views);
    return r;
}

const char *shmview_stream_view_name(const struct shmview_stream *stream, size_t i)
{
    return i < stream->plan.n_views ? stream->views[i].name : NULL;
}

int shmview_frame_view_at(const struct shmview_frame *frame, size_t i,
                          struct shmview_view *ret_view)
{
    const struct shmview_stream *s = frame->stream;
    if (!frame_is_mine(frame, frame->state) || frame->state == FRAME_NONE)
        return fail(SHMVIEW_ERR_NOT_OWNER, "the frame is none of this process");
    if (i >= s->plan.n_views)
        return fail(SHMVIEW_ERR_NO_LAYOUT, "view %zu of stream '%s', which has %u", i,
                    s->segment->name, s->plan.n_views);
    const struct frame_view *v = &s->views[i];
    uint64_t length =
        atomic_load_explicit(word64(&slot_lengths(s, frame->slot)[i]), memory_order_relaxed);
    if (v->view.ndim && length > v->length)
        return fail(SHMVIEW_ERR_BOUNDS,
                    "view '%s' of frame %" PRIu64 " has %" PRIu64 " elements, at most %" PRIu64
                    " fit",
                    v->name, frame->sequence, length, v->length);
    *ret_view = v->view;
    ret_view->data += frame->slot * s->plan.frame_bytes;
    if (frame->state != FRAME_LOANED)
        ret_view->flags |= SHMVIEW_VIEW_READ_ONLY;
    if (v->view.ndim && length != v->length) {
        ret_view->shape[0] = (ptrdiff_t)length;
        ret_view->nbytes = v->view.nbytes / v->length * length;
    }
    return 0;
}

int shmview_frame_view(const struct shmview_frame *frame, const char *name,
                       struct shmview_view *ret_view)
{
    const struct shmview_stream *s = frame->stream;
    for (size_t i = 0; s && i < s->plan.n_views; i++)
        if (strcmp(s->views[i].name, name) == 0)
            return shmview_frame_view_at(frame, i, ret_view);
    if (!s)
        return fail(SHMVIEW_ERR_NOT_OWNER, "the frame is none of this process");
    return fail(SHMVIEW_ERR_NO_LAYOUT, "stream '%s' has no view '%.70s'", s->segment->name, name);
}
