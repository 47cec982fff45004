/* SPDX-License-Identifier: Apache-2.0 */
/* Frees memory of objects on threads, because freeing a gigabyte takes the kernel 65 ms and the
 * loop must not wait that long.
 *
 * The memory of an object whose name is removed lives as long as somebody has a descriptor of it.
 * The daemon therefore keeps a descriptor, removes the name, and lets a thread close the
 * descriptor. An O_PATH descriptor suffices.
 *
 * Up to 16 MiB, and what a removed segment had, go to a thread of the lowest priority: otherwise
 * the memory of the last segment would be freed before the next request is read, on a machine with
 * few processors. Larger memory goes to libuv's pool, because at the lowest priority a machine
 * whose processors are all busy would take seconds for it, and a creation may need it.
 *
 * Memory that waits for a thread is still used. A creation that finds too little memory calls
 * discard_settle() and tries again. */
#ifndef DAEMON_DISCARD_H
#define DAEMON_DISCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

/* From this size on libuv's pool frees an object. */
#define DISCARD_LARGE_BYTES ((uint64_t)16 << 20)

/* Lets the thread pool of `loop` free memory from now on. Must be called on the thread of that
 * loop. With NULL, and before the first call, memory is freed at once by the caller. Ends the
 * thread of discard_start(), and frees what waits for it. */
void discard_init(uv_loop_t *loop);

/* Starts the thread of the lowest priority, for which the loop gets an alarm. After discard_init(),
 * and not twice. Returns 0 or -errno. Without that thread discard() has libuv's pool, and
 * discard_soon() frees at once. */
int discard_start(void);

/* Sets the size of the file to `bytes`, commits those from byte `from` on and all that it lacks,
 * and closes fd, which this function takes over. Then calls done(arg) on the loop. Any thread; but
 * on a thread other than the loop's it blocks until all is done, and calls done(arg) itself before
 * it returns. It does so on the loop too if memory is short. Does not report errors: the caller
 * must look at the file later. */
void discard_excess(int fd, uint64_t bytes, uint64_t from, void (*done)(void *arg), void *arg);

/* Closes fd, which this function takes over, of an object of `bytes`. Any thread; but on a thread
 * other than the loop's it blocks until the memory is free. Never fails. */
void discard(int fd, uint64_t bytes);

/* Closes fd, of an object of less than DISCARD_LARGE_BYTES, and removes the mapping of `bytes` at
 * map; takes both over. fd may be -1, map NULL. That takes some microseconds, but a loop that
 * removes many segments would spend a third of its time on it. Therefore the thread gets many at
 * once, some milliseconds later. If 32 wait, the caller does it at once. */
void discard_soon(int fd, void *map, size_t bytes);

/* Whether the thread of the lowest priority has work, for which the loop should leave it a
 * processor. */
bool discard_is_busy(void);

/* Blocks until every descriptor that was queued before is closed; closes those itself that no
 * thread has begun with. Any thread. Returns whether there was any. */
bool discard_settle(void);

#endif
