/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the pages of shared memory on a thread, ahead of the thread that copies them.
 *
 * Otherwise read() and write() take one page fault after another, and these cost as much time as
 * the copy itself. */
#ifndef CLI_PREFAULT_H
#define CLI_PREFAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The copying thread owns it; the other thread reads it, and ends early after `stop`. */
struct prefault {
    unsigned char *data; /* at the beginning of a page */
    size_t bytes;
    int advice; /* for madvise() */
    pthread_t thread;
    atomic_bool stop;
    bool is_running;
};

/* Starts mapping the bytes at data, for writing too if `writes`. Reports no failure: without the
 * thread, or on a kernel before Linux 5.14, the copy faults the pages in by itself. The caller owes
 * prefault_end() before it unmaps the memory. */
void prefault_begin(struct prefault *p, void *data, size_t bytes, bool writes);
/* Stops the thread and waits for it, for at most one step. A struct of zeroes is valid. */
void prefault_end(struct prefault *p);

#endif
