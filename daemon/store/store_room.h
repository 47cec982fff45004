/* SPDX-License-Identifier: Apache-2.0 */
/* How the registry's file grows, and what layouts may take of it.
 *
 * It grows in steps, because filling a part of it takes the loop's time. Where the file system is
 * nearly full, layouts are refused before records are: a layout may have 1 MiB, a record has some
 * hundred bytes, and without records nobody could create, attach and remove. */
#ifndef DAEMON_STORE_ROOM_H
#define DAEMON_STORE_ROOM_H

#include <stddef.h>

/* Returns 0 if layouts may take so much of the file, which has bytes and may still grow; -ENOSPC
 * if too little would be left for records; or another -errno. */
int store_room_for_layouts(int fd, size_t bytes, size_t taken);

/* Makes the file larger than its bytes, without holes: by less than usual where there is less.
 * Returns 0, or -errno, -ENOSPC where there is nothing left. */
int store_room_grow(int fd, size_t bytes, size_t *ret_bytes);

#endif
