/* SPDX-License-Identifier: Apache-2.0 */
/* The way by which a client passes the one descriptor that the daemon ever takes: that of memory
 * for a segment (daemon/memory/own.h).
 *
 * The connection itself takes none (stray.h), because to receive a descriptor is to have to close
 * it, and the last close may block for as long as its sender likes. So the client asks for a socket
 * of its own, sends one byte there with the descriptor, and then asks for the segment. The daemon
 * receives the descriptor without taking the byte out of the socket. The socket keeps a reference
 * until handover_close(), and therefore the loop never closes the last one of a file that it has
 * not accepted: a thread of stray.c closes the socket.
 *
 * A connection has one handover at a time. All functions run on the loop, and none blocks. */
#ifndef DAEMON_HANDOVER_H
#define DAEMON_HANDOVER_H

struct connection;
struct quota_user;

/* Opens a handover, which the connection must not have. payer has been charged for a connection,
 * and is refunded when the socket is closed. Returns the client's end, which the caller owns; or
 * -errno, and nobody is refunded. */
int handover_open(struct connection *connection, struct quota_user *payer);

/* Receives the descriptor that the client has sent; nothing can be sent afterwards. Returns a
 * duplicate, which the caller owns and must close before handover_close(), unless the file is a
 * memfd. Returns -ENOTCONN if there is no handover, -ENODATA if nothing was sent, -ENOMSG for a
 * byte without a descriptor, -E2BIG for several descriptors, -EMFILE, or another -errno. */
int handover_receive(struct connection *connection);

/* Closes the handover if there is one; handover_accept() after the file of handover_receive() has
 * been accepted, so that its descriptor is not left to a thread. */
void handover_close(struct connection *connection);
void handover_accept(struct connection *connection);

#endif
