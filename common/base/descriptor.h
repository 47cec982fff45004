/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of descriptors, one descriptor with a message, and a test whether the peer of a socket
 * has hung up. */
#ifndef COMMON_DESCRIPTOR_H
#define COMMON_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

/* Moves fd to a number above 2, close-on-exec. A process that has closed its standard descriptors
 * gets their numbers for the next files that it opens. A line that it prints would then go into a
 * socket of ours. Takes ownership of fd. Returns the new descriptor, or -errno with fd closed.
 * Returns a negative fd unchanged, so that the result of socket() can be passed. */
int descriptor_lift(int fd);

/* Gives fd the number of another open descriptor, which is closed by this. Threads and event
 * loops that use the number thus go on with the new socket. Returns 0 with ownership of fd; or
 * -errno, for example if the limit of descriptors has been lowered below the number. */
int descriptor_renumber(int fd, int number);

/* Room for the control message of one descriptor. */
union descriptor_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};
/* Adds a descriptor, which stays the caller's, to a message that will be sent. control must live as
 * long as the message. */
void descriptor_pass(struct msghdr *message, union descriptor_control *control, int fd);

/* Whether the peer of a connected stream socket has closed its end or shut down its sending side.
 * Data that it sent before may still be unread. Does not block. */
bool descriptor_hung_up(int fd);

#endif
