/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of our own: their numbers, and whether the other end of a socket is there. */
#ifndef COMMON_DESCRIPTOR_H
#define COMMON_DESCRIPTOR_H

#include <stdbool.h>

/* Moves fd above 2, close-on-exec. A process that has closed its standard descriptors gets
 * their numbers for the next ones that it opens; what it prints must not go into a socket.
 * Takes fd. Returns the descriptor, or -errno with fd closed; a negative fd is returned as
 * it is. */
int descriptor_lift(int fd);

/* Gives fd the number, which is open, in place of what has it now. Returns 0 and takes fd; or
 * -errno, as above a limit that was lowered since. */
int descriptor_renumber(int fd, int number);

/* Whether the peer of a connected stream socket has closed its end, or has shut down its sending
 * side. What it sent before may still be unread. */
bool descriptor_hung_up(int fd);

#endif
