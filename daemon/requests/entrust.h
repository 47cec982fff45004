/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of lifetime "creator" that end with a process other than their creator. */
#ifndef DAEMON_ENTRUST_H
#define DAEMON_ENTRUST_H

#include <sys/types.h>

struct segment;
struct state;

/* Lets segment, which is on the list of a connection or a survivor, go with the process pid.
 * Returns 0; 1 if that is no process of this uid's, or -errno; then all is as it was. */
int entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid);

#endif
