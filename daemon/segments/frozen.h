/* SPDX-License-Identifier: Apache-2.0 */
/* How far a segment is frozen.
 *
 * The only fact is the seals of the data, which any client with a writable descriptor can add to.
 * Therefore nothing about it is stored, here or in the registry, and a restarted daemon finds it
 * again. Loop only. */
#ifndef DAEMON_FROZEN_H
#define DAEMON_FROZEN_H

#include <stdint.h>

struct segment;

/* Returns an enum shmview_frozen, or 0 if clients may still begin to write. */
uint32_t segment_frozen(const struct segment *segment);

#endif
