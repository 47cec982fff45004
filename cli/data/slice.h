/* SPDX-License-Identifier: Apache-2.0 */
/* Selects a part of a view by a text in numpy's notation: [1:10:2, 3, ..., ::-1]['field'][0].
 *
 * Parsing and applying are separate, because an error of syntax must be reported before the segment
 * is attached, and only the view knows its dimensions. Both are pure functions, and report the
 * character at fault. */
#ifndef CLI_SLICE_H
#define CLI_SLICE_H

#include <shmview/view.h>

#include "cli/shell/problem.h"

#define SLICE_STEPS 32

enum slice_kind {
    SLICE_INDEX,    /* 3: removes the dimension */
    SLICE_RANGE,    /* 1:10:2 */
    SLICE_ELLIPSIS, /* ...: all dimensions that the other steps in the brackets leave */
    SLICE_FIELD,    /* 'x', or x: one field of a struct */
};

/* One part of the text between brackets and commas. */
struct slice_step {
    enum slice_kind kind;
    unsigned group;     /* the pair of brackets, from 0 on */
    unsigned at;        /* index of its first character in the text */
    int64_t start;      /* of an index: the index */
    int64_t stop, step; /* of a range; SHMVIEW_OMIT: left out */
    char field[64];
};

struct slice {
    const char *text; /* borrowed; for messages */
    unsigned n;
    struct slice_step steps[SLICE_STEPS];
};

/* Parses pairs of brackets up to the end of text, which must live as long as the slice. "" is a
 * slice without steps: the whole view. Returns 0, or -1 with *problem, which shows the character.
 */
int slice_parse(const char *text, struct slice *ret, struct problem *problem);

/* Applies all steps to view, each pair of brackets to the result of the pair before. ret_view may
 * be equal to view. Returns 0, or -1 with *problem, which shows the step, and *ret_view unchanged.
 */
int slice_apply(const struct slice *slice, const struct shmview_view *view,
                struct shmview_view *ret_view, struct problem *problem);

#endif
