/* SPDX-License-Identifier: Apache-2.0 */
/* The method Entrust: ties a segment of lifetime "creator" to another process. The segment then
 * ends with that process, and no longer with its creator.
 *
 * A worker can thus leave a result for the process that started it. The new process must be an
 * ancestor of the creator, or the creator itself (methods.c), and belong to the same user. It need
 * not be a client: the daemon watches it by a pidfd, as a client without a connection
 * (client.h). */
#ifndef DAEMON_ENTRUST_H
#define DAEMON_ENTRUST_H

#include <sys/types.h>

struct segment;
struct state;

/* The outcome, if nothing fails. */
enum entrusted {
    ENTRUSTED,
    ENTRUST_DENIED, /* the process does not exist, or belongs to another user */
};

/* Ties the segment to the process pid, which must belong to uid, and writes its record. The segment
 * must be in a list of created_segments. Returns an enum entrusted, or -errno. Only ENTRUSTED
 * changes anything. */
int entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid);

#endif
