/* SPDX-License-Identifier: Apache-2.0 */
/* Stray descriptors: those that a client sends although no request takes any.
 *
 * The last close of a descriptor may block for as long as its sender likes: that of a socket with
 * SO_LINGER and unsent data does. A client could thus stop the loop. Therefore the loop neither
 * receives such a descriptor nor closes a socket that holds one.
 *
 * Since Linux 6.16 the kernel refuses the descriptors when they are sent (SO_PASSRIGHTS). On older
 * kernels the daemon peeks before it reads, leaves descriptors in the socket, and lets a thread
 * close that socket. The user stays charged for the connection until the thread has closed it. */
#ifndef DAEMON_STRAY_H
#define DAEMON_STRAY_H

#include <stdbool.h>

#include <uv.h>

#include "common/wire/frame.h"

/* Lets stray_close() call its done() on this loop from now on; the caller is the thread of the
 * loop. With NULL, done() is never called. */
void stray_init(uv_loop_t *loop);

/* Lets out-of-band bytes (MSG_OOB) that are sent to fd, a connected socket, come in their order
 * among the others. Otherwise a peek skips them, and the next receive drops them and closes the
 * descriptors that came with them. stray_refuse() does this too. */
void stray_keep_order(int fd);

/* Lets the kernel refuse descriptors that are sent to fd, and to the sockets that fd accepts from
 * now on. fd is a socket that listens or is connected. Does nothing on older kernels. */
void stray_refuse(int fd);

/* Whether descriptors may have been sent to fd, a connected socket, or may still be. */
bool stray_possible(int fd);

/* Like frame_receive() without descriptors, but leaves descriptors in the socket, and returns
 * -EPROTO if the next bytes have any. */
ssize_t stray_receive(struct frame *frame, int fd, size_t limit);

/* Receives one message from fd, which keeps the borders of messages, without waiting. Returns its
 * length (at most n), 0 at the end, or -errno. Leaves a message with descriptors in the socket, and
 * returns -EPROTO. */
ssize_t stray_receive_message(int fd, void *bytes, size_t n);

/* Whether descriptors lie unread in fd, which was shut down. Reads all bytes before them. Loop
 * only. */
bool stray_left(int fd);

/* Lets a thread close fd, which this function takes over, and then calls done(arg) on the loop;
 * done may be NULL. If memory is short, logs an error, and fd stays open. done() is not called
 * then, nor after stray_init(NULL). Loop only. */
void stray_close(int fd, void (*done)(void *arg), void *arg);

#endif
