/* SPDX-License-Identifier: Apache-2.0 */
/* How the file of the registry grows, and how much of it layouts may take.
 *
 * The file grows in small steps, because filling a step with memory takes time of the loop.
 * Doubling a large file stopped the loop for up to 150 ms.
 *
 * A layout can have 256 KiB, any other record has a few hundred bytes. Without room for those
 * records no client could create, attach to or remove a segment. Therefore layouts are refused
 * first if the file system is nearly full. */
#ifndef DAEMON_STORE_ROOM_H
#define DAEMON_STORE_ROOM_H

#include <stddef.h>

/* Returns 0 if layouts may take `taken` bytes of the file, which now has `bytes` and may grow;
 * -ENOSPC if too little would be left for other records; or another -errno. */
int store_room_for_layouts(int fd, size_t bytes, size_t taken);

/* Enlarges the file, which has `bytes`, and commits the new part. If the file system is nearly
 * full, takes a smaller step than usual. Returns 0 with *ret_bytes, or -errno; -ENOSPC if it is
 * full. */
int store_room_grow(int fd, size_t bytes, size_t *ret_bytes);

#endif
