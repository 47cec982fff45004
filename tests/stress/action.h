/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread of a party does: one action at a time, chosen at random. */
#ifndef STRESS_ACTION_H
#define STRESS_ACTION_H

#include <shmview/shmview.h>

/* Does one action with the segment. Afterwards the thread holds nothing of it, unless me.leaving
 * is set: then the thread must end. */
void action_any(struct shmview_segment *segment);

#endif
