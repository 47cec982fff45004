/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of the test's own, with its own directory. */
#ifndef STRESS_INSTANCE_H
#define STRESS_INSTANCE_H

#include <sys/types.h>

struct instance {
    pid_t pid;
    char directory[40];
    char socket[64];
    char log[64];
    char name[64]; /* the part of the objects' names that belongs to the instance */
};

/* Starts the program, waits until it listens, and sets $SHMVIEW_SOCKET to its socket. Returns 0,
 * or -1 after it has printed the reason; then nothing is left. */
int instance_start(struct instance *instance, const char *program);

/* Ends the daemon; reports objects that it has left, and removes them. */
void instance_stop(struct instance *instance);

#endif
