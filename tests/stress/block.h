/* SPDX-License-Identifier: Apache-2.0 */
/* The data that the lock protects: words that belong together, the phase that they
 * were written in, and the mark of who is inside. */
#ifndef STRESS_BLOCK_H
#define STRESS_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#define BLOCK_WORDS 24
#define N_LAYOUTS   2

/* Not atomic, and volatile only so that each look is one. */
struct block {
    volatile uint64_t token;    /* who is inside; 0: nobody */
    volatile uint64_t sequence; /* grows with each write */
    volatile uint64_t phase;    /* layout and generation that it was written in */
    volatile uint64_t words[BLOCK_WORDS];
};

/* Names of layouts, in the order of definition. */
extern const char *const block_layouts[N_LAYOUTS];

/* Defines the layouts and writes the first data. Returns 0 or what failed. */
int block_create(struct shmview_segment *segment);

/* The lock is held exclusively, as result says. Looks whether all is in order, and
 * marks that I am inside. */
void block_enter(struct shmview_segment *segment, int result);
/* Puts in order what a dead owner left. */
void block_repair(struct shmview_segment *segment);
/* Writes the whole block, or the first half. */
void block_write(struct shmview_segment *segment);
void block_tear(struct shmview_segment *segment);
/* Makes another layout current and rewrites the block. */
void block_switch(struct shmview_segment *segment);
/* Takes the mark away: the lock is about to be given back. */
void block_leave(struct shmview_segment *segment);

/* The lock is held shared: reads it, dawdles, and reads it again. */
void block_read(struct shmview_segment *segment);
/* Nothing is held. Returns whether it was valid. */
bool block_read_unlocked(struct shmview_segment *segment);

#endif
