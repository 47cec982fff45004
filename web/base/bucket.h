/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of something per second, with a burst: a bucket that fills at a rate and that each use
 * empties a little. Any thread may use a bucket at any time. */
#ifndef WEB_BUCKET_H
#define WEB_BUCKET_H

#include <pthread.h>

#include "web/base/base.h"

struct bucket {
    pthread_mutex_t mutex;
    double level, burst, per_second;
    int64_t filled_ns; /* CLOCK_MONOTONIC */
};

/* Makes a full bucket. The caller owes bucket_deinit(). */
void bucket_init(struct bucket *b, double per_second, double burst);
void bucket_deinit(struct bucket *b);

/* Takes amount if the level is above 0, so that one use may exceed it: its cost is known only
 * afterwards. Returns whether it was above 0. An amount of 0 only asks. */
bool bucket_take(struct bucket *b, double amount);
/* Takes amount in any case. */
void bucket_charge(struct bucket *b, double amount);

int64_t monotonic_ns(void);
/* Returns the processor time that this thread has used. */
int64_t thread_ns(void);

#endif
