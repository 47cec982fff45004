/* SPDX-License-Identifier: Apache-2.0 */
/* Spawns, kills and stops parties, and checks that the living ones make progress. */
#ifndef STRESS_SUPERVISOR_H
#define STRESS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervisor_result {
    uint64_t deaths; /* by SIGKILL */
    uint64_t exits;  /* in order */
    uint64_t stops;
    uint64_t turns;  /* lulls */
    uint64_t sieges; /* how many holders were killed in sieges */
    uint64_t holders_killed;
    int interrupted; /* the signal, or 0 */
};

/* Runs so many workers for so long. *daemon is the pid of the daemon, a child of the caller; if
 * it ends, *daemon becomes 0. Leaves no other child. Returns 0, or an error if the run could not
 * begin. */
int supervisor_run(double seconds, unsigned workers, pid_t *daemon, struct supervisor_result *ret);

#endif
