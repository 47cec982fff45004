/* SPDX-License-Identifier: Apache-2.0 */
/* A siege: all threads want the lock, and each holder keeps it until it is killed. Then only
 * those that wait already can notice the death. */
#ifndef STRESS_SIEGE_H
#define STRESS_SIEGE_H

#include <stdbool.h>

#include <shmview/shmview.h>

#include "stress/arena.h"

/* The life of a thread in a siege: waits for the lock, and keeps it. */
__attribute__((noreturn)) void siege_join(struct shmview_segment *segment);

/* Returns a living party of which a thread holds the lock, or NULL. */
struct party *siege_holder(void);
/* Waits until there is a holder. Counts a stall and returns NULL if that takes too long. */
struct party *siege_await_holder(const struct shmview_segment *segment);
/* Returns how many parties live. */
unsigned siege_living(void);

#endif
