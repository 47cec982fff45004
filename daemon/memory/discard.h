/* SPDX-License-Identifier: Apache-2.0 */
/* Frees memory of objects on a thread, because freeing a gigabyte takes the kernel 65 ms and the
 * loop must not wait that long.
 *
 * The memory of an object whose name is removed lives as long as somebody has a descriptor of it.
 * The daemon therefore keeps a descriptor, removes the name, and lets a thread of libuv's pool
 * close the descriptor. An O_PATH descriptor suffices.
 *
 * Memory that waits for such a thread is still used. A creation that finds too little memory calls
 * discard_settle() and tries again. */
#ifndef DAEMON_DISCARD_H
#define DAEMON_DISCARD_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Lets the thread pool of `loop` free memory from now on. Must be called on the thread of that
 * loop. With NULL, and before the first call, memory is freed at once by the caller. */
void discard_init(uv_loop_t *loop);

/* Sets the size of the file to `bytes`, commits all of them, and closes fd, which this function
 * takes over. Any thread; but on a thread other than the loop's it blocks until all is done. Does
 * not report errors: the caller must look at the file later. */
void discard_excess(int fd, uint64_t bytes);

/* Closes fd, which this function takes over. Any thread; but on a thread other than the loop's it
 * blocks until the memory is free. Never fails. */
void discard(int fd);

/* Blocks until every descriptor that was queued before is closed; closes those itself that no
 * thread has begun with. Any thread. Returns whether there was any. */
bool discard_settle(void);

#endif
