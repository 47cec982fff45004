/* SPDX-License-Identifier: Apache-2.0 */
/* All want the lock, and whoever has it keeps it until he is killed: then nobody but
 * those who wait already is there to notice. */
#ifndef STRESS_SIEGE_H
#define STRESS_SIEGE_H

#include <stdbool.h>

#include <shmview/shmview.h>

#include "stress/arena.h"

/* A thread: waits for the lock, and keeps it. Does not return. */
__attribute__((noreturn)) void siege_join(struct shmview_segment *segment);

/* A living party of which a thread holds the lock, or NULL. */
struct party *siege_holder(void);
/* Waits until there is one. Counts a stall and returns NULL if it takes too long. */
struct party *siege_await_holder(const struct shmview_segment *segment);
/* How many parties live. */
unsigned siege_living(void);

#endif
