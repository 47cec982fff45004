/* SPDX-License-Identifier: Apache-2.0 */
/* Notices switches of phases, for monitors that want events of that kind.
 *
 * A client switches with one store to shared memory and does not call the daemon. So while such a
 * monitor exists, the daemon reads the phases of all attached segments with layouts every 100 ms.
 * Several switches between two looks become one event with their number. A look at all segments has
 * a bounded time: if there are very many, each is looked at less often.
 *
 * The daemon also looks at a segment whenever an attachment begins or ends. Otherwise a client
 * could attach, switch and end between two looks, unnoticed. */
#ifndef DAEMON_PHASES_H
#define DAEMON_PHASES_H

#include "daemon/segments/registry.h"

#define PHASES_PERIOD_MS 100

/* The state of one session: from the first monitor that wants phases to the last. Switches before a
 * session are not reported. So the first look at a segment in a session only stores its generation,
 * unless the segment is newer than the session. A segment whose phase_session differs from
 * `session` has not been looked at in this one. */
struct phases {
    uint64_t next;         /* the id of the segment that phases_look() looked at last */
    uint64_t first_unseen; /* segments with this id or a higher one are newer than the session */
    uint8_t session;       /* its number, never 0 */
};

/* Begins a session. phases must stay in place until phases_end(). */
void phases_begin(struct phases *phases, struct registry *registry);

/* Ends the session. */
void phases_end(struct registry *registry);

/* Looks at the segment if there is a session. Call before an attachment begins or ends. */
void phases_note(struct segment *segment);

/* Looks at segments and adds events, until the time until_ns of CLOCK_MONOTONIC or until the last
 * segment. Begins after the one that it looked at last, and looks at 16 segments at least. Returns
 * whether it came to the last segment. */
bool phases_look(struct phases *phases, const struct registry *registry, int64_t until_ns);

/* Like phases_look(), but looks only at the segments with one of n names, each once at most, and at
 * one at least. *next is the index of the name to begin with; the caller sets it to 0 before the
 * first call. */
void phases_look_at(struct phases *phases, const struct registry *registry,
                    const char *const *names, size_t n, size_t *next, int64_t until_ns);

#endif
