/* SPDX-License-Identifier: Apache-2.0 */
/* Couriers: ways to pass frames of 64 bytes from one process to another. streams.c compares them.
 */
#ifndef BENCH_COURIER_H
#define BENCH_COURIER_H

#include "bench.h"

#define COURIER_BYTES 64

/* One way. Functions return 0, or -1 after failed(). */
struct courier {
    const char *name;
    /* In the measuring process, before each run, and after it; both may be NULL. */
    int (*begin)(struct courier *c);
    void (*end)(struct courier *c);
    /* In the process of the writer or of the reader. close may be NULL. */
    int (*open)(struct courier *c, bool writes);
    void (*close)(struct courier *c, bool writes);
    /* Prepares a frame, notes the time, and passes the frame on. */
    int (*send)(struct courier *c);
    /* Waits for a frame. Gets the time that its writer noted. */
    int (*receive)(struct courier *c, int64_t *ret_sent_ns);
    /* Whether the reader polls; otherwise it sleeps. */
    bool polls;
    const struct instance *instance;
    struct shmview_stream *stream;
    /* of the others */
    int fd[2];
    void *context, *socket, *waits;
    struct courier_ring *ring;
    uint64_t n; /* frames that this side has passed or got */
    uint64_t storage[2];
};

/* One word of shared memory for each frame, and nothing else: what the hardware allows. A reader
 * that does not poll sleeps on a futex. */
extern const struct courier courier_bare;
extern const struct courier courier_pipe;
/* These are NULL if the bench was built without the library. */
extern const struct courier *const courier_zeromq;
extern const struct courier *const courier_iceoryx;

/* Starts the daemon of iceoryx for all couriers. Returns 0, or -1 after failed() if that cannot be:
 * its objects and sockets have fixed names, so that there is only one on a machine. */
int roudi_start(pid_t *ret_pid);
/* Ends it by a signal after which it removes its objects. Does nothing for -1. */
void roudi_end(pid_t pid);
/* A run of a contest in a process that is writer and reader at once: the time of one frame that is
 * loaned, published, taken and released, in ns. arg is not used. */
int run_iceoryx_pairs(void *arg, double *ret);

#endif
