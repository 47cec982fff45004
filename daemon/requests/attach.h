/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching: what Attach does, and Create at its end. */
#ifndef DAEMON_ATTACH_H
#define DAEMON_ATTACH_H

#include "daemon/requests/request.h"

/* The method Attach. */
void attach_named(struct request *request, const union wanted *want);

/* Answers with the segment and a new attachment to it, or refuses. */
void attach_segment(const struct request *request, struct segment *segment, int64_t access);

#endif
