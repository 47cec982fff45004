/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the case through the public calls as well, on wrapped memory. Their results must agree with
 * those of the internal calls. */
#ifndef PROPERTY_MIRROR_H
#define PROPERTY_MIRROR_H

#include "play.h"

/* Makes play->view of play->c.desc. r and fault are the result of view_check(). */
bool mirror_make(struct play *play, int r, const struct view_fault *fault);

/* Compares play->view with play->c.desc after a public call that returned public_r. r and fault are
 * the result of the internal call. */
bool mirror_agrees(struct play *play, int public_r, int r, const struct view_fault *fault);

/* Compares contiguity, bytes and addresses of the current public view with the model. */
bool mirror_ask(struct play *play);

void mirror_deinit(struct play *play);

#endif
