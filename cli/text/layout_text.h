/* SPDX-License-Identifier: Apache-2.0 */
/* Reads layouts as people write them. create, define and --as use it; the man page describes it
 * under LAYOUTS.
 *
 *     float: A=f4[100] B=f4[5,20]@400 C=f4[5,20]:strides(-80,4):readonly
 *
 *     layout = NAME ":" view ...           separated by spaces
 *     view   = NAME "=" format [ "[" lengths "]" ] [ "@" offset ] word ...
 *     word   = ":readonly" | ":fortran" | ":strides(" steps ")" | ":suboffsets(" ... ")"
 *
 * format is any of shmview_format_parse(), in quotes if it has spaces, brackets, or an "@" or ":"
 * that is not its first character or within braces. Without lengths there is one element. A view
 * without an offset begins after the view before it, at the next byte that its format allows.
 *
 * The grammar is read here, the formats and the views by the library. What the library refuses is
 * refused when the layout is declared; only faults of the text, and sizes that no segment can have,
 * are found here, because a mark below the text can show their place. */
#ifndef CLI_LAYOUT_TEXT_H
#define CLI_LAYOUT_TEXT_H

#include "cli/shell/cli.h"

/* A view of the text. */
struct view_text {
    struct shmview_view_spec spec; /* borrows from the members below */
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM], suboffsets[SHMVIEW_MAX_NDIM];
    char name[65];
    char format[SHMVIEW_FORMAT_BYTES];
    bool has_offset; /* the text has an @OFFSET */
};

/* A layout of the text. A struct of zeroes is empty; its owner owes layout_text_deinit(). */
struct layout_text {
    char name[65];
    struct view_text *views;
    struct shmview_view_spec *specs; /* copies of views[i].spec, as shmview_define() takes them */
    size_t n;
    uint64_t end; /* the size that a segment needs for all views */
};

/* Parses text. On failure prints the reason, the text, and a mark below the character at fault. The
 * caller owes layout_text_deinit() in any case. Returns 0 or the exit status. */
int layout_text_parse(struct context *c, const char *text, struct layout_text *ret);
/* Frees the views. */
void layout_text_deinit(struct layout_text *layout);

#define LAYOUT_TEXT_HELP                                                                           \
    "A LAYOUT is 'NAME: VIEW=FORMAT[LENGTHS]@OFFSET ...'. Without @OFFSET a view\n"                \
    "follows the one before. It may end in :readonly, :fortran, :strides(BYTES,...).\n"

#endif
