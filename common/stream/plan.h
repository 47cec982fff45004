/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of a stream lie in its segment. <shmview/stream_layout.h> describes them.
 *
 * Every function that can fail returns 0, or -1 with *fault. */
#ifndef COMMON_PLAN_H
#define COMMON_PLAN_H

#include <shmview/stream.h>

#include "common/views/view.h"

/* The layout that declares the views of the frame in slot 0. */
#define STREAM_LAYOUT "frame"

/* Places n views in a slot: moves the offset of each, unless is_placed, so that one follows the
 * other at a multiple of 64 bytes. *ret_bytes is the size of the slot. Fails for a view that nobody
 * can place, and for one that begins before the slot. */
int stream_place(struct view_desc *views, size_t n, bool is_placed, uint64_t *ret_bytes,
                 struct view_fault *fault);

/* Makes the header of a stream from mode, n_slots, history, n_stages, n_views, flags (0 where there
 * is a default) and frame_bytes, which is the size of a slot. The other members of *header are
 * computed. *ret_size is the size of the segment. */
int stream_plan(struct shmview_stream_header *header, uint64_t *ret_size, struct view_fault *fault);

/* Checks a header that was copied from a segment of size bytes. */
int stream_plan_check(const struct shmview_stream_header *header, uint64_t size,
                      struct view_fault *fault);

#endif
