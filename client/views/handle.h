/* SPDX-License-Identifier: Apache-2.0 */
/* Public views and their descriptions; layouts by name. */
#ifndef CLIENT_HANDLE_H
#define CLIENT_HANDLE_H

#include "client/base/error.h"
#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

/* Finds or makes a format that lives as long as the segment. NULL with *fault. */
const struct format *segment_format(struct shmview_segment *segment, const char *text,
                                    struct view_fault *fault);

/* A public view and its description, one from the other. desc holds in the segment. layout and
 * generation are those of no phase. */
void view_fill(struct shmview_segment *segment, const struct view_desc *desc,
               struct shmview_view *ret);
void view_describe(const struct shmview_view *view, struct view_desc *ret);
/* Checks a description against the segment and fills *ret. Returns 0 or the error, which
 * names the view if name is not NULL. */
int view_finish(struct shmview_segment *segment, const struct view_desc *desc, const char *name,
                struct shmview_view *ret);

/* Finds the layout of that name. Asks the daemon if it is not known here. Returns
 * its index or an error. */
int layout_find(struct shmview_segment *segment, const char *layout);
/* Returns SHMVIEW_ERR_NO_LAYOUT, negative. */
int fail_no_layout(const struct shmview_segment *segment, const char *layout);
/* Copies the name of that layout to ret_name. Returns 0 or an error. */
int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes);
/* Like layout_name(), but asks nobody: *ret_name is untouched where the handle does not know it. */
void layout_known_name(struct shmview_segment *segment, uint32_t index, char *ret_name,
                       size_t bytes);

#pragma GCC visibility pop

#endif
