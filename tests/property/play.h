/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a case on the library and on the model at the same time, and compares them. */
#ifndef PROPERTY_PLAY_H
#define PROPERTY_PLAY_H

#include <shmview/element.h>

#include "case.h"
#include "model_ops.h"

enum move_kind {
    SLICE,
    INDEX,
    RESHAPE,
    RECAST,
    TRANSPOSE,
    BROADCAST,
    FIELD,
    N_MOVES
};

struct play {
    struct view_case c;
    struct model *now, *next; /* one for c.desc, one to write the outcome to */
    struct model models[2];
    struct shmview_segment *segment; /* the case's memory for mirror.h */
    struct shmview_view view, view_before;
    bool holds, is_indirect; /* what was described */
    size_t n_found;          /* elements that could be read by way of suboffsets */
    unsigned long accepted[N_MOVES], refused[N_MOVES]; /* of all cases: not set back */
    char wrong[400];                                   /* what differs; "" while nothing does */
};

/* Plays one case from beginning to end; play->c.story tells it. Returns false, with
 * play->wrong, if library and model differ. Owes play_deinit() in any case. */
bool play_case(struct play *play, struct choices *from);

void play_deinit(struct play *play);

/* Notes the difference. Returns false. */
__attribute__((format(printf, 2, 3))) bool play_differs(struct play *play, const char *format, ...);

/* What the library said: r of a call, with its fault, where expected tells what is right. */
bool play_agrees(struct play *play, verdict expected, int r, const struct view_fault *fault);

/* What may be asked of a description that was accepted. */
bool play_compare(struct play *play);

/* --- moves.c --- */

/* Chooses an operation and does it: true if library and model agree. */
bool play_move(struct play *play, struct choices *from);

#endif
