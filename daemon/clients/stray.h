/* SPDX-License-Identifier: Apache-2.0 */
/* Stray descriptors: those that a client sends although no request takes any.
 *
 * The last close of a descriptor may wait as long as its sender likes: a socket with SO_LINGER and
 * unsent data does. So the loop neither receives nor drops one. Since Linux 6.16 the kernel
 * refuses them at the sender (SO_PASSRIGHTS). On older kernels the daemon looks before it reads,
 * and closes a socket in which descriptors are left by a thread of its own. */
#ifndef DAEMON_STRAY_H
#define DAEMON_STRAY_H

#include <stdbool.h>

#include <uv.h>

#include "common/wire/frame.h"

/* From now on stray_close() reports to loop; the caller is its thread. NULL: to nobody. */
void stray_init(uv_loop_t *loop);

/* Lets the kernel refuse descriptors at fd, a socket that listens or is connected, and at those
 * that fd accepts from now on, if the kernel can. */
void stray_refuse(int fd);

/* Whether descriptors may have reached fd, a connected socket, or may reach it. */
bool stray_possible(int fd);

/* Like frame_receive() without descriptors, but leaves descriptors in the socket: -EPROTO if some
 * come next. */
ssize_t stray_receive(struct frame *frame, int fd, size_t limit);

/* Whether descriptors lie unread in fd, which was shut down. Reads everything before them. */
bool stray_left(int fd);

/* Closes fd by a thread, then calls done(arg) by the loop. done is lost if memory is short, or if
 * stray_init(NULL) was called. */
void stray_close(int fd, void (*done)(void *arg), void *arg);

#endif
