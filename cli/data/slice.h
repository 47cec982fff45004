/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a view, written as numpy's indices are: [1:10:2, 3, ..., ::-1]['field'][0]. */
#ifndef CLI_SLICE_H
#define CLI_SLICE_H

#include <shmview/view.h>

#include "cli/shell/problem.h"

#define SLICE_STEPS 32

enum slice_kind {
    SLICE_INDEX,    /* 3: the dimension goes away */
    SLICE_RANGE,    /* 1:10:2 */
    SLICE_ELLIPSIS, /* ...: as many whole dimensions as are left */
    SLICE_FIELD,    /* 'x', or x: one field of a struct */
};

struct slice_step {
    enum slice_kind kind;
    unsigned group; /* which pair of brackets */
    unsigned at;    /* its first character in the text */
    int64_t start;  /* of an index: itself */
    int64_t stop, step;
    char field[64];
};

struct slice {
    const char *text; /* borrowed: for what is said of it */
    unsigned n;
    struct slice_step steps[SLICE_STEPS];
};

/* Reads pairs of brackets to the end of text, which is borrowed as long as the slice; "" is a
 * slice without steps. Returns 0; or -1, and the problem shows the character. */
int slice_parse(const char *text, struct slice *ret, struct problem *problem);

/* Narrows the view. Returns 0; or -1, and the problem names the step. ret_view may be view. */
int slice_apply(const struct slice *slice, const struct shmview_view *view,
                struct shmview_view *ret_view, struct problem *problem);

#endif
