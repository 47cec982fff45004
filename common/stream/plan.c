/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stream/plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/limits.h"

/* Views of a slot begin at multiples of this, a cache line. */
#define VIEW_ALIGN 64
/* Frames begin at multiples of one of these, whichever is the larger one that is not larger than
 * the frame: two cache lines, because processors fetch them in pairs, or a page. */
#define FRAME_ALIGN 128
#define FRAME_PAGE  4096
/* Words of two writers are at least this far apart. */
#define WORDS_ALIGN 128

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* --- Views --------------------------------------------------------------- */

/* Returns the bytes from the first to after the last byte of the elements. *ret_before is how many
 * of them lie before the offset. The description must have been checked against
 * LIMIT_SEGMENT_BYTES. */
static uint64_t extent(const struct view_desc *view, uint64_t *ret_before)
{
    uint64_t before = 0, after = view->item->itemsize;
    for (uint32_t d = 0; d < view->ndim; d++) {
        int64_t reach = (view->shape[d] - 1) * view->strides[d];
        if (view->shape[d] == 0) {
            *ret_before = 0;
            return 0;
        }
        if (reach < 0)
            before += (uint64_t)-reach;
        else
            after += (uint64_t)reach;
    }
    *ret_before = before;
    return before + after;
}

/* Returns how many bytes a view reaches below its offset, before it is placed and checked; or
 * UINT64_MAX if they are too many. */
static uint64_t reach_below(const struct view_desc *view)
{
    uint64_t below = 0;
    for (uint32_t d = 0; d < view->ndim; d++) {
        int64_t reach;
        if (view->strides[d] >= 0 || view->shape[d] <= 1)
            continue;
        if (__builtin_mul_overflow(view->shape[d] - 1, view->strides[d], &reach))
            return UINT64_MAX;
        below += 0 - (uint64_t)reach;
        if (below > LIMIT_SEGMENT_BYTES)
            return UINT64_MAX;
    }
    return below;
}

/* Sets the offset of a view that comes after byte end of the slot. */
static int place(struct view_desc *view, uint64_t end, struct view_fault *fault)
{
    uint64_t below = reach_below(view);
    if (view->offset)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "offset %" PRIu64 " without SHMVIEW_PLACED", view->offset);
    if (below == UINT64_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW, "its bytes do not fit into 56 bits");
    view->offset = round_up(end, VIEW_ALIGN) + round_up(below, VIEW_ALIGN);
    return 0;
}

int stream_place(struct view_desc *views, size_t n, bool is_placed, uint64_t *ret_bytes,
                 struct view_fault *fault)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        struct view_desc *v = &views[i];
        if (v->indirect)
            return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                                  "a view of a stream has no suboffsets, because each slot has "
                                  "other bytes");
        if (!is_placed && place(v, end, fault))
            return -1;
        if (view_check(v, LIMIT_SEGMENT_BYTES, NULL, fault))
            return -1;
        uint64_t before, bytes = extent(v, &before);
        if (v->offset - before + bytes > end)
            end = v->offset - before + bytes;
    }
    *ret_bytes = end;
    return 0;
}

/* --- The plan ------------------------------------------------------------ */

static uint64_t pad_frame(uint64_t bytes)
{
    return round_up(bytes ? bytes : 1, bytes >= FRAME_PAGE ? FRAME_PAGE : FRAME_ALIGN);
}

static int check_members(const struct shmview_stream_header *h, struct view_fault *fault)
{
    if (h->mode != SHMVIEW_LOSSLESS && h->mode != SHMVIEW_LATEST)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "mode %u, neither SHMVIEW_LOSSLESS nor SHMVIEW_LATEST", h->mode);
    if (h->n_slots < 2 || h->n_slots > SHMVIEW_STREAM_SLOTS_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%u slots, a stream has 2 to %u",
                              h->n_slots, SHMVIEW_STREAM_SLOTS_MAX);
    if (h->n_stages < 1 || h->n_stages > SHMVIEW_STREAM_STAGES_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%u stages, a stream has 1 to %u",
                              h->n_stages, SHMVIEW_STREAM_STAGES_MAX);
    uint64_t kept = (uint64_t)h->history + (h->mode == SHMVIEW_LATEST);
    if (kept * h->n_stages >= h->n_slots)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID,
                              "a history of %u frames with %u slots: %u stages would keep %" PRIu64
                              " slots, which leaves none for a writer",
                              h->history, h->n_slots, h->n_stages, kept * h->n_stages);
    if (h->n_views < 1 || h->n_views > SHMVIEW_STREAM_VIEWS_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "%u views, a frame has 1 to %u",
                              h->n_views, SHMVIEW_STREAM_VIEWS_MAX);
    if (h->flags & ~SHMVIEW_MANY_WRITERS)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "unknown flags 0x%x", h->flags);
    if (h->frame_bytes > LIMIT_SEGMENT_BYTES / SHMVIEW_STREAM_SLOTS_MAX)
        return view_fault_set(fault, SHMVIEW_ERR_OVERFLOW, "frames of %" PRIu64 " bytes",
                              h->frame_bytes);
    return 0;
}

int stream_plan(struct shmview_stream_header *header, uint64_t *ret_size, struct view_fault *fault)
{
    struct shmview_stream_header *h = header;
    if (h->n_slots == 0)
        h->n_slots = 8;
    if (h->n_stages == 0)
        h->n_stages = 1;
    if (check_members(h, fault))
        return -1;
    h->magic = SHMVIEW_STREAM_MAGIC;
    h->version = SHMVIEW_STREAM_LAYOUT_VERSION;
    h->header_bytes = sizeof *h;
    h->n_cells = 2;
    while (h->n_cells < h->n_slots)
        h->n_cells *= 2;
    h->stages_offset = sizeof *h;
    h->stage_bytes =
        sizeof(struct shmview_stream_stage) + round_up(h->n_cells * sizeof(uint64_t), WORDS_ALIGN);
    h->slots_offset = h->stages_offset + h->n_stages * h->stage_bytes;
    h->slot_bytes =
        sizeof(struct shmview_stream_slot) + round_up(h->n_views * sizeof(uint64_t), WORDS_ALIGN);
    h->frame_bytes = pad_frame(h->frame_bytes);
    h->frames_offset = round_up(h->slots_offset + h->n_slots * h->slot_bytes, FRAME_PAGE);
    *ret_size = h->frames_offset + h->n_slots * h->frame_bytes;
    return 0;
}

int stream_plan_check(const struct shmview_stream_header *header, uint64_t size,
                      struct view_fault *fault)
{
    uint64_t planned;
    if (header->magic != SHMVIEW_STREAM_MAGIC)
        return view_fault_set(fault, SHMVIEW_ERR_INVALID, "the segment is no stream");
    if (header->version != SHMVIEW_STREAM_LAYOUT_VERSION)
        return view_fault_set(fault, SHMVIEW_ERR_LAYOUT_VERSION,
                              "a stream of version %u, this library knows %u", header->version,
                              SHMVIEW_STREAM_LAYOUT_VERSION);
    struct shmview_stream_header again = {
        .mode = header->mode,
        .n_slots = header->n_slots,
        .history = header->history,
        .n_stages = header->n_stages,
        .n_views = header->n_views,
        .flags = header->flags,
        .frame_bytes = header->frame_bytes,
    };
    if (again.n_slots && again.n_stages && stream_plan(&again, &planned, fault) == 0 &&
        planned <= size &&
        memcmp(&again, header, offsetof(struct shmview_stream_header, pad0)) == 0)
        return 0;
    return view_fault_set(fault, SHMVIEW_ERR_LAYOUT_VERSION, "the header of the stream is damaged");
}
