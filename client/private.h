/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind the opaque names, and what the files of the library share. */
#ifndef CLIENT_PRIVATE_H
#define CLIENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <shmview/layout.h>
#include <shmview/shmview.h>

#include "common/address.h"
#include "common/frame.h"
#include "common/wire.h"

#pragma GCC visibility push(hidden)

/* --- error.c ------------------------------------------------------------- */

/* Keeps the text for shmview_error_text(). Returns -error. */
__attribute__((format(printf, 2, 3))) int fail(int error, const char *format, ...);
/* The same for a system call: SHMVIEW_ERR_SYSTEM, or _NO_MEMORY for ENOMEM. */
int fail_errno(const char *what, int error_number);

/* --- process.c: fork ----------------------------------------------------- */

/* Lies on a page that a forked child finds zeroed. epoch is 0 in a child until
 * its first call here; an object of another epoch belongs to an ancestor. The
 * mutexes are unlocked in a child, whoever held them when it was forked. */
struct process_page {
    _Atomic uint32_t epoch;
    pthread_mutex_t mutex;    /* epoch, and the connection's step into it */
    pthread_mutex_t segments; /* the list of segments, and a segment's step */
};
extern struct process_page *process;

/* Makes the page, once. Returns 0 or an error. */
int process_init(void);
/* The epoch of this process; never 0. */
uint32_t process_epoch(void);

/* --- connection.c -------------------------------------------------------- */

struct shmview_connection {
    pthread_mutex_t mutex; /* everything below, and the segments' layouts */
    _Atomic uint32_t epoch;
    int fd; /* -1: connect before the next call */
    bool gone;
    address_path path;
    unsigned n_segments;
    struct frame in;
};

/* A reply and the descriptors that came with it. */
struct reply {
    struct wire_reply wire;
    struct frame_descriptors fds;
};

/* Calls method with parameters (new; stolen; NULL means memory was short) and
 * waits for the reply. Returns 0 and owes reply_deinit(), or the error, the
 * daemon's included. */
int connection_call(struct shmview_connection *connection, const char *method, json_t *parameters,
                    struct reply *reply);
void reply_deinit(struct reply *reply);

/* Locks and unlocks connection->mutex, in a forked child as well. */
void connection_lock(struct shmview_connection *connection);
void connection_unlock(struct shmview_connection *connection);

/* --- session.c ----------------------------------------------------------- */

/* Starts this user's session daemon and waits until it listens or has failed.
 * Returns 0, or -1 with a line about the cause in text. */
int session_start(const char *path, char *text, size_t bytes);

/* --- segment.c ----------------------------------------------------------- */

/* Layouts as the daemon told them; strings live in root. */
struct layouts {
    json_t *root;
    struct wire_layout *list;
    size_t n;
};

/* The epoch of a lock that is not there: no process has it. */
#define NO_LOCK_EPOCH UINT32_MAX

/* The lock, as this process sees it. owner is written by the thread that holds
 * the word for this process; the rest only by that thread. */
struct lock_state {
    _Atomic uint32_t epoch; /* NO_LOCK_EPOCH, this process's, or an ancestor's */
    uint32_t depth;
    _Atomic(const void *) owner; /* the thread's own address, NULL: none */
    bool not_repaired;
    uint32_t dead; /* id of who died inside, if that was reported and is not yet over */
};

struct shmview_segment {
    /* what every lock call reads comes first */
    _Atomic uint32_t epoch;
    uint32_t me;                     /* my id in the lock word */
    struct shmview_control *control; /* NULL: no lock */
    const struct shmview_liveness *live;
    struct lock_state lock;

    struct shmview_connection *connection;
    void *data;
    uint64_t size;
    uint64_t id;
    int access;
    int64_t attachment;
    struct layouts layouts;
    char name[LIMIT_NAME_BYTES + 1];
    LIST_ENTRY(shmview_segment) link;
};

/* The slot's line in the control object. */
struct shmview_slot *segment_slot(const struct shmview_segment *segment, uint32_t slot);

/* Lets a forked child take part under its own slot. Returns 0 or an error. */
int segment_step_in(struct shmview_segment *segment);

/* Calls visit for each segment of this process. */
void segment_each(void (*visit)(struct shmview_segment *, void *), void *arg);

/* --- lock.c -------------------------------------------------------------- */

/* Forgets what an ancestor or a stale word says, and signs the slot. */
void lock_adopt_slot(struct shmview_segment *segment, uint32_t slot, uint32_t generation);

#pragma GCC visibility pop

#endif
