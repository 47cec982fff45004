/* SPDX-License-Identifier: Apache-2.0 */
/* Frees memory of objects on a thread, because freeing a gigabyte takes the kernel 65 ms and the
 * loop must not wait that long.
 *
 * The memory of an object whose name is removed lives as long as somebody has a descriptor of it.
 * The daemon therefore keeps a descriptor, removes the name, and lets a thread of libuv's pool
 * close the descriptor. An O_PATH descriptor suffices.
 *
 * Closing the descriptors of a small object, and removing its mapping, takes only some
 * microseconds. But a loop that removes many would spend a third of its time on it, and the client
 * that removes waits. Therefore discard_soon() collects them, and a thread gets many at once.
 *
 * Memory that waits for such a thread is still used. A creation that finds too little memory calls
 * discard_settle() and tries again. */
#ifndef DAEMON_DISCARD_H
#define DAEMON_DISCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

/* Lets the thread pool of `loop` free memory from now on. Must be called on the thread of that
 * loop. With NULL, and before the first call, memory is freed at once by the caller. */
void discard_init(uv_loop_t *loop);

/* Lets discard_soon() collect from now on, for which the loop gets an alarm; until then it frees at
 * once. After discard_init(), and not twice. Returns 0 or -errno. */
int discard_collect(void);

/* Sets the size of the file to `bytes`, commits all of them, and closes fd, which this function
 * takes over. Any thread; but on a thread other than the loop's it blocks until all is done. Does
 * not report errors: the caller must look at the file later. */
void discard_excess(int fd, uint64_t bytes);

/* Closes fd, which this function takes over. Any thread; but on a thread other than the loop's it
 * blocks until the memory is free. Never fails. */
void discard(int fd);

/* Like discard() for a small object, and for a mapping of `bytes` at map, which this function takes
 * over, too; fd may be -1, map NULL. A thread frees them some milliseconds later; if 32 wait for
 * that, the caller does at once. */
void discard_soon(int fd, void *map, size_t bytes);

/* Blocks until every descriptor that was queued before is closed; closes those itself that no
 * thread has begun with. Any thread. Returns whether there was any. */
bool discard_settle(void);

#endif
