/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's loop where memory or threads can run out: libuv itself aborts when it cannot start a
 * thread of its pool, or cannot enlarge its table of descriptors. These functions find out before,
 * so that a daemon with few threads serves, one without any logs the reason, and a descriptor
 * that cannot be watched is the error of one client. */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <uv.h>

/* uv_loop_init(), and starts the pool with as many threads as the process may have, four at most
 * or the number in $UV_THREADPOOL_SIZE. Before the program's first uv_queue_work() and its first
 * thread. Returns 0 or -errno. */
int loop_init(uv_loop_t *loop);

/* uv_poll_init(). Returns 0 or -errno. */
int loop_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);

#endif
