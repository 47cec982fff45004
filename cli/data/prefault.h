/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the pages of shared memory ahead of who goes through it, by a thread: one fault at a time in
 * the middle of read() or write() costs as much again as copying does. */
#ifndef CLI_PREFAULT_H
#define CLI_PREFAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct prefault {
    unsigned char *data;
    size_t bytes;
    int advice;
    pthread_t thread;
    atomic_bool stop;
    bool is_running;
};

/* Begins at data, for reading or for writing too. What cannot be had is no error. */
void prefault_begin(struct prefault *p, void *data, size_t bytes, bool writes);
/* Ends it. Takes a zeroed one. */
void prefault_end(struct prefault *p);

#endif
