/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of lifetime "creator" that end with a process other than their creator. */
#ifndef DAEMON_ENTRUST_H
#define DAEMON_ENTRUST_H

#include <sys/types.h>

struct segment;
struct state;

/* What becomes of it, unless it fails. */
enum entrusted {
    ENTRUSTED,
    ENTRUST_DENIED, /* there is no such process, or it is another user's */
};

/* Lets segment, which is on the list of a connection or a survivor, go with the process pid.
 * Returns an enum entrusted or -errno; without ENTRUSTED all is as it was. */
int entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid);

#endif
