/* SPDX-License-Identifier: Apache-2.0 */
#include "mirror.h"

#include <inttypes.h>
#include <string.h>

#include <shmview/shmview.h>
#include <shmview/view.h>

static bool same_numbers(const ptrdiff_t *a, const int64_t *b, uint32_t n)
{
    for (uint32_t d = 0; d < n; d++)
        if (a[d] != b[d])
            return false;
    return true;
}

/* Compares suboffsets; all negative values are equal, because each means that there is none. */
static bool same_suboffsets(const ptrdiff_t *a, const int64_t *b, uint32_t n)
{
    for (uint32_t d = 0; d < n; d++)
        if (a[d] != (b[d] < 0 ? -1 : b[d]))
            return false;
    return true;
}

static bool same_view(struct play *play)
{
    const struct shmview_view *v = &play->view;
    const struct view_desc *d = &play->c.desc;
    struct view_desc settled = *d;
    view_settle(&settled, (uintptr_t)play->c.memory.bytes);
    const uint32_t flags = (d->read_only ? SHMVIEW_VIEW_READ_ONLY : 0) |
                           (d->indirect ? SHMVIEW_VIEW_INDIRECT : 0) |
                           (settled.item->aligned ? SHMVIEW_VIEW_UNALIGNED : 0);
    if (v->ndim != d->ndim || !same_numbers(v->shape, d->shape, d->ndim) ||
        !same_numbers(v->strides, d->strides, d->ndim) ||
        (d->indirect && !same_suboffsets(v->suboffsets, d->suboffsets, d->ndim)))
        return play_differs(play, "the public view has another shape, stride or suboffset");
    if (v->data != play->c.memory.bytes + d->offset || v->flags != flags)
        return play_differs(play, "the public view: byte %td, flags %u",
                            v->data - play->c.memory.bytes, v->flags);
    if (strcmp(v->format, settled.item->text) != 0 || v->itemsize != d->item->itemsize ||
        v->dtype != d->item->dtype)
        return play_differs(play, "the public view: %s of %u bytes", v->format, v->itemsize);
    if ((wide)v->nbytes != shape_product(d->shape, d->ndim, false) * d->item->itemsize)
        return play_differs(play, "the public view: %" PRIu64 " bytes", v->nbytes);
    return true;
}

bool mirror_agrees(struct play *play, int public_r, int r, const struct view_fault *fault)
{
    if (public_r != (r ? -(int)fault->error : 0))
        return play_differs(play, "the public call returns %d: %s", public_r,
                            public_r < 0 ? shmview_error_text() : "");
    if (r && !shmview_error_text()[0])
        return play_differs(play, "no text");
    if (r && memcmp(&play->view, &play->view_before, sizeof play->view) != 0)
        return play_differs(play, "the public view has changed");
    memcpy(&play->view_before, &play->view, sizeof play->view);
    return r ? true : same_view(play);
}

bool mirror_make(struct play *play, int r, const struct view_fault *fault)
{
    const struct view_desc *d = &play->c.desc;
    struct shmview_view_spec spec = {.format = d->item->text,
                                     .offset = d->offset,
                                     .ndim = d->ndim,
                                     .flags = d->read_only ? SHMVIEW_VIEW_READ_ONLY : 0,
                                     .shape = d->shape,
                                     .strides = d->strides,
                                     .suboffsets = d->indirect ? d->suboffsets : NULL};
    int wrapped =
        shmview_wrap(play->c.memory.bytes, play->c.memory.size, 0, NULL, NULL, &play->segment);
    if (wrapped)
        return play_differs(play, "not wrapped: %s", shmview_error_text());
    memset(&play->view, 0x5a, sizeof play->view);
    memcpy(&play->view_before, &play->view, sizeof play->view);
    return mirror_agrees(play, shmview_view_make(play->segment, &spec, &play->view), r, fault);
}

static bool ask_bytes(struct play *play)
{
    const struct model *m = play->now;
    struct shmview_view bytes;
    int r = shmview_view_bytes(&play->view, &bytes);
    if (!m->has_list)
        return true;
    if (r != (model_is_contiguous(m, 'C') ? 0 : -SHMVIEW_ERR_INVALID))
        return play_differs(play, "bytes: %d, %s", r, r ? shmview_error_text() : "");
    if (r)
        return true;
    if (bytes.ndim != 1 || bytes.shape[0] != (ptrdiff_t)(m->n * m->itemsize) ||
        bytes.itemsize != 1 || strcmp(bytes.format, "B") != 0 || bytes.strides[0] != 1 ||
        (m->n && bytes.data != play->c.memory.bytes + m->places[0].at))
        return play_differs(play, "bytes: %u dimensions, %td of %s", bytes.ndim, bytes.shape[0],
                            bytes.format);
    if (!(bytes.flags & SHMVIEW_VIEW_READ_ONLY) != !m->is_read_only)
        return play_differs(play, "bytes: flags %u", bytes.flags);
    return true;
}

/* Compares the pointers of the first and the last three elements. play.c locates every element
 * through the internal call. */
static bool ask_pointers(struct play *play)
{
    const struct model *m = play->now;
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    for (size_t i = 0; i < m->n; i++, index_next(index, m->shape, m->ndim)) {
        ptrdiff_t public_index[SHMVIEW_MAX_NDIM] = {0};
        void *found = NULL;
        if (i >= 3 && i + 3 < m->n)
            continue;
        for (uint32_t d = 0; d < m->ndim; d++)
            public_index[d] = (ptrdiff_t)index[d];
        verdict errors = place_errors(&m->places[i], m->itemsize, m->align, play->c.memory.size);
        int r = shmview_view_pointer(&play->view, public_index, &found);
        if (r == 0 ? errors || found != play->c.memory.bytes + m->places[i].at
                   : r < -63 || !(errors & (verdict)1 << -r))
            return play_differs(play, "pointer of element %zu: %d", i, r);
    }
    return true;
}

bool mirror_ask(struct play *play)
{
    static const char orders[] = "CFA?";
    for (const char *order = orders; *order && play->now->has_list; order++)
        if (shmview_view_is_contiguous(&play->view, *order) !=
            model_is_contiguous(play->now, *order))
            return play_differs(play, "the public view is contiguous: %c", *order);
    return ask_bytes(play) && ask_pointers(play);
}

void mirror_deinit(struct play *play)
{
    if (play->segment)
        shmview_detach(play->segment);
    play->segment = NULL;
}
