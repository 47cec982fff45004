/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a case on the library and on the model together, and compares their results. */
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
    struct model *now, *next; /* now: of c.desc; next: receives the result of an operation */
    struct model models[2];
    struct shmview_segment *segment; /* the memory of the case, wrapped for mirror.h */
    struct shmview_view view, view_before;
    bool holds, is_indirect;                           /* of the description in c */
    size_t n_found;                                    /* elements read through suboffsets */
    unsigned long accepted[N_MOVES], refused[N_MOVES]; /* of all cases together */
    char wrong[400];                                   /* the difference, or "" */
};

/* Plays one case from beginning to end; play->c.story describes it. Returns true, or false with
 * play->wrong set if library and model differ. The caller must call play_deinit() in both cases. */
bool play_case(struct play *play, struct choices *from);

void play_deinit(struct play *play);

/* Stores the text of the difference in play->wrong. Returns false. */
__attribute__((format(printf, 2, 3))) bool play_differs(struct play *play, const char *format, ...);

/* Returns whether r, the result of a call, and its fault are among the expected results. */
bool play_agrees(struct play *play, verdict expected, int r, const struct view_fault *fault);

/* Compares everything that can be asked about an accepted description with the model. */
bool play_compare(struct play *play);

/* --- moves.c --- */

/* Chooses an operation and performs it. Returns whether library and model agree. */
bool play_move(struct play *play, struct choices *from);

#endif
