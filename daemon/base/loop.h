/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's loop, for a process whose memory or threads can run out.
 *
 * libuv aborts the process if it cannot start a thread of its pool, or cannot enlarge its table of
 * descriptors. These functions try both before libuv does:
 *
 *   - a daemon that may start only some of the threads serves with those;
 *   - a daemon that may start none logs the reason and does not start;
 *   - a descriptor for which the table cannot grow is an error for one client. */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <uv.h>

/* Initialises the loop and starts the thread pool. The pool gets four threads, or as many as
 * $UV_THREADPOOL_SIZE asks for, but only as many as the process can start. Must be called before
 * the program's first uv_queue_work() and its first thread, because it sets that variable for
 * libuv. Returns 0, or -errno: -EAGAIN if no thread can be started. */
int loop_init(uv_loop_t *loop);

/* Like uv_poll_init(), but returns -ENOMEM if the table of descriptors could not grow. Returns 0 or
 * -errno. */
int loop_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);

#endif
