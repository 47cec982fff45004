/* SPDX-License-Identifier: Apache-2.0 */
#include "web/base/bucket.h"

#include <time.h>

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t monotonic_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int64_t thread_ns(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

void bucket_init(struct bucket *b, double per_second, double burst)
{
    *b = (struct bucket){.level = burst, .burst = burst, .per_second = per_second};
    b->filled_ns = monotonic_ns();
    pthread_mutex_init(&b->mutex, NULL);
}

void bucket_deinit(struct bucket *b)
{
    pthread_mutex_destroy(&b->mutex);
}

/* The caller holds the mutex. */
static void fill(struct bucket *b)
{
    int64_t now = monotonic_ns();
    b->level += (double)(now - b->filled_ns) * 1e-9 * b->per_second;
    if (b->level > b->burst)
        b->level = b->burst;
    b->filled_ns = now;
}

bool bucket_take(struct bucket *b, double amount)
{
    pthread_mutex_lock(&b->mutex);
    fill(b);
    bool is_left = b->level > 0;
    if (is_left)
        b->level -= amount;
    pthread_mutex_unlock(&b->mutex);
    return is_left;
}

void bucket_charge(struct bucket *b, double amount)
{
    pthread_mutex_lock(&b->mutex);
    fill(b);
    b->level -= amount;
    pthread_mutex_unlock(&b->mutex);
}
