/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as people write them:
 *
 *     float: A=f4[100] B=f4[5,20]@400 C=f4[5,20]:strides(-80,4):readonly
 *
 *     layout = NAME ":" view ...           separated by spaces
 *     view   = NAME "=" format [ "[" lengths "]" ] [ "@" offset ] word ...
 *     word   = ":readonly" | ":fortran" | ":strides(" steps ")" | ":suboffsets(" ... ")"
 *
 * format is any of shmview_format_parse(), in quotes if it has spaces, brackets, or an "@" or ":"
 * that is not its first character or within braces. Without lengths there is one element. A view
 * without an offset begins behind the one before, at the next byte that its format allows. */
#ifndef CLI_LAYOUT_TEXT_H
#define CLI_LAYOUT_TEXT_H

#include "cli/shell/cli.h"

struct view_text {
    struct shmview_view_spec spec; /* points to what follows */
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
    char name[65];
    char format[SHMVIEW_FORMAT_BYTES];
};

/* Zeroed is empty. */
struct layout_text {
    char name[65];
    struct view_text *views;
    struct shmview_view_spec *specs; /* the same for shmview_define() */
    size_t n;
    uint64_t end; /* bytes that a segment needs for it */
};

/* Reads text. On failure prints what is wrong, and below the text a mark at its place. Owes
 * layout_text_deinit(), always. Returns 0 or the exit status. */
int layout_text_parse(struct context *c, const char *text, struct layout_text *ret);
void layout_text_deinit(struct layout_text *layout);

#define LAYOUT_TEXT_HELP                                                                           \
    "A LAYOUT is 'NAME: VIEW=FORMAT[LENGTHS]@OFFSET ...'; what has no @OFFSET follows\n"           \
    "the view before. A view may end in :readonly, :fortran or :strides(BYTES,...).\n"

#endif
