/* SPDX-License-Identifier: Apache-2.0 */
/* Spawns workers, kills and stops them, and sees to it that all goes on. */
#ifndef STRESS_SUPERVISOR_H
#define STRESS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervisor_result {
    uint64_t deaths; /* by SIGKILL */
    uint64_t exits;  /* in order */
    uint64_t stops;
    uint64_t turns;  /* between two lulls */
    uint64_t sieges; /* and how many holders were killed in them */
    uint64_t holders_killed;
    int interrupted; /* the signal, or 0 */
};

/* Runs so many workers for so long against the daemon with that pid, a child; 0 is
 * stored there if it ends. Leaves no other child. Returns 0, or an error where it
 * could not begin. */
int supervisor_run(double seconds, unsigned workers, pid_t *daemon, struct supervisor_result *ret);

#endif
