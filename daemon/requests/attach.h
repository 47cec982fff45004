/* SPDX-License-Identifier: Apache-2.0 */
/* The method Attach, and the last step of Create with an access: both reply with a segment and a
 * new attachment to it. docs/DESIGN.md describes the path of an Attach through all modules. */
#ifndef DAEMON_ATTACH_H
#define DAEMON_ATTACH_H

#include "daemon/requests/request.h"

/* The method Attach: finds the segment, and refuses access that the user may not have. */
void attach_named(struct request *request, const union wanted *want);

/* Attaches the segment and fills in the reply: the description, the layouts, and the descriptors.
 * Refuses if the connection or the segment has too many attachments, or the user has used up a
 * quota; then nothing is attached. The caller has checked that the user may have this access (enum
 * shmview_access). */
void attach_segment(const struct request *request, struct segment *segment, int64_t access);

#endif
