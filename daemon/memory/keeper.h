/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: a small process that holds descriptors of sealed objects while no daemon runs, and
 * hands them to the next daemon of the instance. The daemon starts it for its first sealed object
 * (keeping.h), as a program of its own, so that the keeper shares no memory with it.
 *
 * They speak over a SOCK_SEQPACKET socket beside that of the instance. Each message is a struct
 * keeper_message, KEEP and HELD with one descriptor. After a connection the keeper sends HELD for
 * each object, then READY. The daemon then sends KEEP and FORGET, which have no reply. Both sides
 * speak only to processes of their own user. The keeper ignores messages of other kinds, a KEEP
 * with a number that it has, and a FORGET with one that it has not. It keeps no object for which it
 * lacks memory or a descriptor. Bytes that are no message end the connection, and so does an error
 * of recvmsg() other than a lack of memory; the objects stay for the next one.
 *
 * The keeper ends when it holds nothing and no daemon is connected. */
#ifndef DAEMON_KEEPER_H
#define DAEMON_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

enum keeper_kind {
    KEEPER_KEEP = 1, /* to the keeper */
    KEEPER_FORGET,
    KEEPER_HELD, /* from the keeper */
    KEEPER_READY,
};

struct keeper_message {
    uint32_t kind; /* enum keeper_kind */
    uint32_t reserved;
    uint64_t number; /* of the object; for READY that of all objects */
};

/* The only argument of the daemon's program that makes it a keeper. */
#define KEEPER_ARGUMENT "--keeper"

/* Sends a message with the descriptor fd, which stays the caller's; -1: without one. flags are
 * those of sendmsg(). Returns 0 or -errno. */
int keeper_send(int socket, enum keeper_kind kind, uint64_t number, int fd, int flags);

/* Receives one message. *ret_fd is its descriptor, which the caller owns, or -1. Returns 0; -EPIPE
 * at the end of the connection; -EMFILE if this process has no descriptor free for that of a
 * message, which is then lost; -EPROTO for bytes that are no such message; or another -errno. */
int keeper_receive(int socket, struct keeper_message *ret, int *ret_fd);

/* Whether the peer of the socket runs as this process's user. */
bool keeper_is_own(int socket);

/* Serves daemons on the listening socket, which is standard input. Closes all other descriptors,
 * and continues in a child, so that the caller's parent need not wait. Returns the exit status. */
int keeper_run(void);

#endif
