/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that a thread of a worker injects: its n-th allocation or its n-th system call fails,
 * a descriptor of the library is closed, or the daemon hangs up. The linker replaces these
 * calls, as the library and jansson make them, by those in mishap.c (--wrap). */
#ifndef EXCLUSION_MISHAP_H
#define EXCLUSION_MISHAP_H

#include <stdbool.h>

enum mishap {
    MISHAP_NONE,
    MISHAP_MEMORY, /* malloc, calloc, realloc, aligned_alloc, strdup */
    MISHAP_SYSTEM  /* socket, connect, getsockopt, sendmsg, recvmsg */
};

/* From now on the n-th (from 1) such call of this thread fails; with forever, every later one
 * fails too. error_number is the errno of a system call that fails. */
void mishap_begin(enum mishap what, unsigned n, bool forever, int error_number);
/* Ends the failures. Returns whether a call has failed. */
bool mishap_end(void);

/* Closes every socket of this process except its standard descriptors. Returns how many it
 * closed. */
unsigned mishap_close_sockets(void);
/* Sends a message that is not JSON on every connection of this process, so that the daemon hangs
 * up. */
void mishap_provoke_hang_up(void);

#endif
