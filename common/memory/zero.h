/* SPDX-License-Identifier: Apache-2.0 */
/* Commits memory of a file by writing zeros to it, for memory that somebody is going to map at
 * once.
 *
 * posix_fallocate() only reserves the pages: the kernel zeroes each of them at its first access,
 * and maps such pages one by one. That takes 1.6 us for each page, and this 0.6. */
#ifndef COMMON_ZERO_H
#define COMMON_ZERO_H

#include <stdint.h>

/* Writes `bytes` zeros from byte `from` on; a file that may grow does. Returns 0 or -errno, -ENOSPC
 * if the file system is full; a part may be written then. Blocks. Any thread. */
int zero_file(int fd, uint64_t from, uint64_t bytes);

#endif
