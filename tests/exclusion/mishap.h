/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in one thread of a worker: its n-th allocation fails, or its n-th call of the
 * system; or a descriptor of the library is closed; or the daemon hangs up. The program is linked
 * so that these calls, as the library and jansson make them, come through mishap.c. */
#ifndef EXCLUSION_MISHAP_H
#define EXCLUSION_MISHAP_H

#include <stdbool.h>

enum mishap {
    MISHAP_NONE,
    MISHAP_MEMORY, /* malloc, calloc, realloc, aligned_alloc, strdup */
    MISHAP_SYSTEM  /* socket, connect, getsockopt, sendmsg, recvmsg */
};

/* From now on the n-th (from 1) such call of this thread fails; with forever, every later one too.
 * error_number is that of a call of the system. */
void mishap_begin(enum mishap what, unsigned n, bool forever, int error_number);
/* No call fails any more. Returns whether one did. */
bool mishap_end(void);

/* Closes every socket of this process but its standard descriptors. Returns how many there were. */
unsigned mishap_close_sockets(void);
/* Has the daemon hang up every connection of this process, by a message that is no JSON. */
void mishap_provoke_hang_up(void);

#endif
