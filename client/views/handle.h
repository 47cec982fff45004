/* SPDX-License-Identifier: Apache-2.0 */
/* What rooms above views need: public views and their descriptions, and layouts by name.
 *
 * struct shmview_view is plain data that the program may copy and keep. struct view_desc
 * (common/views) is what the checks work on. A public view has more: the address, the phase, and
 * the canonical text of its format. Each operation converts a view to a description, changes and
 * checks that, and converts it back. */
#ifndef CLIENT_HANDLE_H
#define CLIENT_HANDLE_H

#include "client/base/error.h"
#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

/* Finds or makes a format in the pool of the segment. The format lives as long as the handle,
 * therefore views may point to its text. Returns NULL with *fault if the text is no format, or
 * memory is short. */
const struct format *segment_format(struct shmview_segment *segment, const char *text,
                                    struct view_fault *fault);

/* Calls view_resolve() with the pool of the segment. */
int segment_resolve(struct shmview_segment *segment, struct view_desc *desc, const char *format,
                    bool has_strides, struct view_fault *fault);

/* Makes a description of spec, not yet checked against a segment. Returns 0, or -1 with *fault. */
int view_spec_describe(const struct shmview_view_spec *spec, struct formats *pool,
                       struct view_desc *ret, struct view_fault *fault);

/* Convert between a public view and its description. view_fill() needs a description that was
 * checked for this segment; its result belongs to no phase, and is read-only if the attachment is.
 * Never fail. */
void view_fill(struct shmview_segment *segment, const struct view_desc *desc,
               struct shmview_view *ret);
void view_describe(const struct shmview_view *view, struct view_desc *ret);
/* Checks a description against the segment, settles it (view_settle()), and fills *ret like
 * view_fill(). Returns 0 or an error, whose text has the name of the view unless name is NULL. */
int view_finish(struct shmview_segment *segment, struct view_desc *desc, const char *name,
                struct shmview_view *ret);

/* --- layouts.c ----------------------------------------------------------- */

/* Notes a layout that this handle has declared, from the reply, so that the name of its phase needs
 * no request. If memory is short, the name is requested later. */
void layout_declared(struct shmview_segment *segment, const char *layout,
                     const struct reply *reply);
/* Finds a layout by its name. Asks the daemon if the handle does not know the name. Returns its
 * index or an error. */
int layout_find(struct shmview_segment *segment, const char *layout);
/* Sets the error text. Returns -SHMVIEW_ERR_NO_LAYOUT. */
int fail_no_layout(const struct shmview_segment *segment, const char *layout);
/* Copies the name of view i of a layout to ret_name, which has room for LIMIT_VIEW_NAME_BYTES + 1.
 * Asks the daemon if the handle does not know the views. Returns 0, 1 if the layout has not so many
 * views, or an error. */
int layout_view_name(struct shmview_segment *segment, const char *layout, size_t i, char *ret_name);
/* Copies the name of the layout with this index to ret_name, which has room for `bytes` bytes. Asks
 * the daemon if the handle does not know the index. Returns 0 or an error. */
int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes);
/* Like layout_name(), but does not call the daemon. Leaves ret_name untouched if the handle does
 * not know the index. */
void layout_known_name(struct shmview_segment *segment, uint32_t index, char *ret_name,
                       size_t bytes);

#pragma GCC visibility pop

#endif
