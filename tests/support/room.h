/* SPDX-License-Identifier: Apache-2.0 */
/* Room for tests that need much memory, or a /dev/shm with limits. */
#ifndef SUPPORT_ROOM_H
#define SUPPORT_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Gives this process, and those that it starts, a /dev/shm of their own, with these options of
 * tmpfs. Returns whether it may have one; otherwise prints why. */
bool room_mount(const char *options);

/* Returns whether the machine and /dev/shm have room for so many bytes of segments, with some for
 * others. If only /dev/shm is too small, mounts a larger one. Otherwise prints what is missing. */
bool room_for(uint64_t bytes);

#endif
