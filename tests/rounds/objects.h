/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that an instance has: files in /dev/shm, and sealed memfds that its daemon has open.
 */
#ifndef ROUNDS_OBJECTS_H
#define ROUNDS_OBJECTS_H

#include <sys/types.h>

/* Returns their number; daemon 0: of the files alone. Stores how many slots are still in use, by
 * the liveness objects. */
unsigned objects_count(const char *instance, pid_t daemon, unsigned *ret_slots);

#endif
