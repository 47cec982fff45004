/* SPDX-License-Identifier: Apache-2.0 */
/* The method HandOver, and the part of Create that takes memory of the client
 * (daemon/memory/own.h).
 */
#ifndef DAEMON_OWN_MEMORY_H
#define DAEMON_OWN_MEMORY_H

#include "daemon/requests/request.h"

/* The method HandOver: replies with a socket for the descriptor of the memory. */
void own_memory_hand_over(struct request *request, const union wanted *want);

/* Takes the memory that the client has handed over for this creation, and ends the handover in any
 * case. Returns its descriptor, which the caller owns, and its status; or -1 after refusing the
 * request. discard() closes the descriptor without blocking. */
int own_memory_take(const struct request *request, const struct wire_create *create,
                    struct stat *ret_st);

#endif
