/* SPDX-License-Identifier: Apache-2.0 */
/* The same case through the public calls, on memory that was wrapped. What they say must be
 * what the library says within. */
#ifndef PROPERTY_MIRROR_H
#define PROPERTY_MIRROR_H

#include "play.h"

/* Makes play->view of play->c.desc. r and fault are what view_check() said of it. */
bool mirror_make(struct play *play, int r, const struct view_fault *fault);

/* Compares play->view with play->c.desc after a call that returned public_r where the library
 * within returned r, with its fault. */
bool mirror_agrees(struct play *play, int public_r, int r, const struct view_fault *fault);

/* Bytes and addresses of the view as it is. */
bool mirror_ask(struct play *play);

void mirror_deinit(struct play *play);

#endif
