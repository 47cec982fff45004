/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of the test's own, in a directory of its own. */
#ifndef STRESS_INSTANCE_H
#define STRESS_INSTANCE_H

#include <sys/types.h>

struct instance {
    pid_t pid;
    char directory[40];
    char socket[64];
    char log[64];
    char name[64]; /* what its objects are called after */
};

/* Starts program, waits until it listens, and points $SHMVIEW_SOCKET there.
 * Returns 0, or -1 after it has said why; then nothing is left. */
int instance_start(struct instance *instance, const char *program);

/* Ends it; reports what it leaves behind, and removes that. */
void instance_stop(struct instance *instance);

#endif
