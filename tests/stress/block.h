/* SPDX-License-Identifier: Apache-2.0 */
/* The data that the lock protects: words that belong together, the phase in which they were
 * written, and the mark of the owner that is inside. */
#ifndef STRESS_BLOCK_H
#define STRESS_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#define BLOCK_WORDS 24
#define N_LAYOUTS   2

/* Not atomic, because the lock must protect it; volatile so that each access happens. */
struct block {
    volatile uint64_t token;    /* of the thread that is inside; 0: none */
    volatile uint64_t sequence; /* grows with each write */
    volatile uint64_t phase;    /* the layout and generation in which it was written */
    volatile uint64_t words[BLOCK_WORDS];
};

/* Names of layouts, in the order of definition. */
extern const char *const block_layouts[N_LAYOUTS];

/* Defines the layouts and writes the first data. Returns 0, or the error of the call that
 * failed. */
int block_create(struct shmview_segment *segment);

/* Checks the block and marks that this thread is inside. The caller must hold the lock
 * exclusively; result is what the call that took it returned. */
void block_enter(struct shmview_segment *segment, int result);
/* Puts in order what a dead owner left. */
void block_repair(struct shmview_segment *segment);
/* Writes the whole block, or the first half. */
void block_write(struct shmview_segment *segment);
void block_tear(struct shmview_segment *segment);
/* Switches to another layout and rewrites the block. */
void block_switch(struct shmview_segment *segment);
/* Removes the mark. The caller releases the lock next. */
void block_leave(struct shmview_segment *segment);

/* Reads the block twice, with a pause in between. The caller must hold the lock shared. */
void block_read(struct shmview_segment *segment);
/* Reads the block without the lock. Returns whether what it read was valid. */
bool block_read_unlocked(struct shmview_segment *segment);

#endif
