/* SPDX-License-Identifier: Apache-2.0 */
/* DefineLayout. A layout of 256 views may have 16,000 components, whose formats take milliseconds
 * to parse and to write. That part needs neither the segment nor the connection, so a thread can do
 * it (digest.h); the rest takes some 0.2 ms of the loop. */
#ifndef DAEMON_DEFINITION_H
#define DAEMON_DEFINITION_H

#include "daemon/requests/request.h"

/* A layout that a client has sent: decoded, checked but for the size of its segment, and written.
 */
struct definition;

/* Reads the parameters of DefineLayout, and keeps a fault of the layout for definition_add(). The
 * strings stay borrowed from the message. Returns a new definition; or NULL with *fault. Any
 * thread.
 */
struct definition *definition_read(const json_t *parameters, struct wire_fault *fault);
/* NULL does nothing. */
void definition_free(struct definition *definition);

/* Adds the layout of want->definition to its segment and replies with its index, or refuses the
 * request. Frees the definition. On the loop. */
void definition_add(struct request *request, const union wanted *want);

#endif
