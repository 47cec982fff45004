/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <shmview/describe.h>

#include "web/base/bucket.h"
#include "web/memory/guard.h"

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* the first segment was attached, or the pool ends */
    pthread_t sweeper;
    bool ends;
    size_t n;
    struct held *first;
};

/* --- Detaching ----------------------------------------------------------- */

/* Takes out of the list what is idle, or all that nobody uses. The caller holds the mutex, and
 * must detach what is returned without it, because detaching may unmap much. */
static struct held *take_idle(struct pool *pool, bool all)
{
    int64_t now = monotonic_ns();
    struct held *idle = NULL;
    for (struct held **p = &pool->first; *p;) {
        struct held *h = *p;
        if (h->users == 0 && (all || h->is_gone || now - h->used_ns > POOL_IDLE_NS)) {
            *p = h->next;
            h->next = idle;
            idle = h;
            pool->n--;
        } else {
            p = &h->next;
        }
    }
    return idle;
}

static void detach_all(struct held *h)
{
    while (h) {
        struct held *next = h->next;
        newest_deinit(&h->newest);
        shmview_detach(h->segment);
        free(h);
        h = next;
    }
}

/* Detaches what is idle, and sleeps while there is nothing attached at all. */
static void *sweep(void *arg)
{
    struct pool *pool = arg;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->ends) {
        if (!pool->first) {
            pthread_cond_wait(&pool->changed, &pool->mutex);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&pool->changed, &pool->mutex, &until);
        struct held *idle = take_idle(pool, false);
        pthread_mutex_unlock(&pool->mutex);
        detach_all(idle);
        pthread_mutex_lock(&pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

struct pool *pool_new(void)
{
    struct pool *pool = calloc(1, sizeof *pool);
    pthread_condattr_t monotonic;
    if (!pool)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&pool->mutex, NULL);
    if (pthread_create(&pool->sweeper, NULL, sweep, pool)) {
        pthread_cond_destroy(&pool->changed);
        pthread_mutex_destroy(&pool->mutex);
        free(pool);
        return NULL;
    }
    return pool;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->ends = true;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    pthread_join(pool->sweeper, NULL);
    detach_all(take_idle(pool, true));
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

/* --- Taking -------------------------------------------------------------- */

/* Returns a segment that is attached already, or NULL. The caller holds the mutex. */
static struct held *find(struct pool *pool, const char *name, int access)
{
    for (struct held *h = pool->first; h; h = h->next)
        if (!h->is_gone && (access == SHMVIEW_WRITE) == (h->access == SHMVIEW_WRITE) &&
            strcmp(h->name, name) == 0)
            return h;
    return NULL;
}

/* Asks the daemon for the id that the name has now. Returns 0 or an error. */
static int id_of(struct shmview_connection *connection, const char *name, int64_t *ret)
{
    const struct shmview_description *d;
    int r = shmview_describe(connection, name, &d);
    if (r)
        return r;
    *ret = d->id;
    shmview_description_free(d);
    return 0;
}

/* Attaches the segment. The name may come to another segment at any time, so its id is asked for
 * before and after. Returns 0 or an error. */
static int attach(struct shmview_connection *connection, const char *name, int access,
                  struct held *h)
{
    for (;;) {
        int64_t after;
        int r = id_of(connection, name, &h->id);
        if (r)
            return r;
        h->access = access;
        r = shmview_attach(connection, name, access, 0, &h->segment);
        if (r == -SHMVIEW_ERR_NO_SLOT && access == SHMVIEW_READ) {
            h->access = SHMVIEW_PEEK;
            r = shmview_attach(connection, name, SHMVIEW_PEEK, 0, &h->segment);
        }
        if (r)
            return r;
        r = id_of(connection, name, &after);
        if (r == 0 && after == h->id)
            return 0;
        shmview_detach(h->segment);
        if (r)
            return r;
    }
}

/* Attaches and adds to the list. */
static int add(struct pool *pool, struct shmview_connection *connection, const char *name,
               int access, struct held **ret)
{
    struct held *h = calloc(1, sizeof *h);
    if (!h)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r = attach(connection, name, access, h);
    if (r) {
        free(h);
        return r;
    }
    guard_sign(h->segment);
    newest_init(&h->newest);
    snprintf(h->name, sizeof h->name, "%s", name); /* the library accepts no longer names */
    h->users = 1;
    h->checked_ns = monotonic_ns();
    pthread_mutex_lock(&pool->mutex);
    bool fits = pool->n < POOL_MOST;
    if (fits) {
        h->next = pool->first;
        pool->first = h;
        pool->n++;
        pthread_cond_signal(&pool->changed);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!fits) {
        detach_all(h);
        return POOL_FULL;
    }
    *ret = h;
    return 0;
}

int pool_take(struct pool *pool, struct shmview_connection *connection, const char *name,
              int access, struct held **ret)
{
    int64_t id, now = monotonic_ns();
    pthread_mutex_lock(&pool->mutex);
    struct held *h = find(pool, name, access);
    bool check = h && now - h->checked_ns > POOL_CHECK_NS;
    if (h)
        h->users++;
    if (check)
        h->checked_ns = now;
    pthread_mutex_unlock(&pool->mutex);
    if (!h)
        return add(pool, connection, name, access, ret);
    int r = check ? id_of(connection, name, &id) : 0;
    if (r == 0 && (!check || id == h->id)) {
        *ret = h;
        return 0;
    }
    pool_drop(pool, h);
    return r ? r : add(pool, connection, name, access, ret);
}

void pool_give(struct pool *pool, struct held *held)
{
    if (!held)
        return;
    pthread_mutex_lock(&pool->mutex);
    held->users--;
    held->used_ns = monotonic_ns();
    pthread_mutex_unlock(&pool->mutex);
}

void pool_drop(struct pool *pool, struct held *held)
{
    if (!held)
        return;
    pthread_mutex_lock(&pool->mutex);
    held->is_gone = true;
    held->users--;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}
