/* SPDX-License-Identifier: Apache-2.0 */
/* Where parties die, and how long the others take to notice. */
#ifndef STRESS_FATE_H
#define STRESS_FATE_H

#include <stdint.h>

#include "stress/place.h"

/* The thread has reached a place: it may die there, or pause. */
void fate_place(int place);

/* Chooses a place at which this thread is slow from now on, or none. */
void fate_draw_slow(void);

/* Kills this process by SIGKILL. */
__attribute__((noreturn)) void fate_die(void);

/* Records how long it took until this thread became the next owner after one that was killed
 * inside at that time. */
void fate_note_latency(int64_t killed_ns);

#endif
