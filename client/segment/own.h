/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that this process makes for a segment (SHMVIEW_OWN_MEMORY), so that its own control group
 * is charged. The daemon checks it (daemon/memory/own.h). */
#ifndef CLIENT_OWN_H
#define CLIENT_OWN_H

#include "client/link/call.h"

#pragma GCC visibility push(hidden)

/* Makes the memory that *create describes, and sends the request with it. Like connection_call()
 * for Create. Other users can open the memory for reading, which a daemon of another user needs, if
 * they have a descriptor of it. The caller's function can end the wait for the memory. */
int own_create(struct shmview_connection *connection, const struct wire_create *create,
               struct reply *reply);

#pragma GCC visibility pop

#endif
