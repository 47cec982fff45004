/* SPDX-License-Identifier: Apache-2.0 */
/* Who dies where, and how long the others take to notice. */
#ifndef STRESS_FATE_H
#define STRESS_FATE_H

#include <stdint.h>

#include "stress/place.h"

/* I come by a place: may die, may dawdle. */
void fate_place(int place);

/* From here on this thread is slow at a place of its own, or nowhere. */
void fate_draw_slow(void);

/* Dies at once, by SIGKILL. */
__attribute__((noreturn)) void fate_die(void);

/* I am the next owner after one who was killed inside at that time. */
void fate_note_latency(int64_t killed_ns);

#endif
