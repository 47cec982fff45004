/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread of a party does: one thing at a time, chosen at random. */
#ifndef STRESS_ACTION_H
#define STRESS_ACTION_H

#include <shmview/shmview.h>

/* Does something with the segment. Afterwards nothing of it is held, unless
 * me.leaving says that this thread is to end. */
void action_any(struct shmview_segment *segment);

#endif
