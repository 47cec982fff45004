/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of our own never have the numbers of standard input, output and error. */
#ifndef COMMON_DESCRIPTOR_H
#define COMMON_DESCRIPTOR_H

/* Moves fd above 2, close-on-exec. A process that has closed its standard descriptors gets
 * their numbers for the next ones that it opens; what it prints must not go into a socket.
 * Takes fd. Returns the descriptor, or -errno with fd closed; a negative fd is returned as
 * it is. */
int descriptor_lift(int fd);

#endif
