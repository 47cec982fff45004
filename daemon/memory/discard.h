/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back off the loop: a gigabyte takes the kernel 65 ms.
 *
 * A descriptor, also one that can do nothing (O_PATH), keeps an object's memory when its
 * name is gone; that is let go by a thread of libuv's pool. */
#ifndef DAEMON_DISCARD_H
#define DAEMON_DISCARD_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* From now on, by loop; the caller is its thread. NULL: at once, as before the first call. */
void discard_init(uv_loop_t *loop);

/* Gives the file of fd, which it takes over, so many bytes, all of them committed, and closes it.
 * Any thread; off the loop's it is done at once. Whether it fails shows in the file. */
void discard_excess(int fd, uint64_t bytes);

/* Takes over fd. Any thread; off the loop's it is closed at once. Never fails. */
void discard(int fd);

/* Returns when all that was handed over before is given back; does what has not begun. Any
 * thread. Returns whether there was anything. */
bool discard_settle(void);

#endif
