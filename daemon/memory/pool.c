/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "daemon/base/alarm.h"
#include "daemon/memory/object.h"

/* How many classes the pool knows. */
#define CLASSES 16
/* How many objects one job makes, and how many bytes; more take longer than a job should. */
#define BATCH       16
#define BATCH_BYTES ((uint64_t)8 << 20)
/* A class has a tick for its demand. */
#define TICK_MS 1000
/* The pool is filled when nothing was wanted for so long, because making objects takes time from
 * the creations; and while it has less than this part of what it should. */
#define FILL_MS    1
#define LEAST_PART 8
/* Nothing is made for so long after memory was short, or a drain. */
#define PAUSE_NS 2000000000
/* No object may take more than this part of the limit. */
#define OBJECT_PART 4
/* The pool makes nothing while less than this part of the memory is free. A measurement holds for
 * FREE_HOLDS_NS. */
#define FREE_PART     16
#define FREE_HOLDS_NS 100000000

TAILQ_HEAD(objects, pool_object);

/* Objects of one size. Zeroes are an unused class. */
struct class
{
    uint64_t bytes; /* 0: unused */
    struct objects objects;
    unsigned n;       /* the length of objects */
    unsigned target;  /* how many there should be */
    unsigned n_taken; /* how many were wanted since the last tick */
    uint64_t used;    /* the value of `uses` when one was wanted last */
};

/* Work for a thread: to make objects, and to free the surplus. */
static struct {
    uv_work_t work;
    bool runs;        /* the loop has queued it, and it is not done; loop only */
    struct class *of; /* NULL: nothing is made */
    bool now;         /* few are left: creations are not waited for */
    uint64_t uses;    /* when it was queued */
    unsigned n;
    struct pool_object *make[BATCH]; /* NULL from where the thread has taken it over */
} job;

/* Written by the loop's thread only, while no other thread calls this module. */
static uv_loop_t *by_loop;
static const struct pool_maker *maker;
static unsigned most;        /* objects */
static uint64_t last_number; /* of a object */
static struct alarm alarm_of_ticks, alarm_of_fills;
static uint64_t uses_then; /* when alarm_of_fills was set */

/* The lock protects what follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static struct class classes[CLASSES];
static uint64_t limit, uses, n_hits, n_misses;
static unsigned n_objects;
static unsigned n_making; /* threads that make a object now */
static unsigned n_drains; /* a object that was begun before the last one is not kept */
static int64_t paused_until;

/* Read without the lock. */
static atomic_uint_fast64_t n_bytes;

uint64_t pool_bytes(void)
{
    return atomic_load_explicit(&n_bytes, memory_order_relaxed);
}

static void unmake(struct pool_object *object)
{
    maker->unmake(object);
    free(object);
}

/* --- Classes. The caller holds the lock ---------------------------------- */

/* Returns the class, or the one that was used longest ago and has nothing, or NULL. */
static struct class *class_of(uint64_t bytes)
{
    struct class *oldest = NULL;
    for (struct class *c = classes; c < classes + CLASSES; c++) {
        if (c->bytes == bytes)
            return c;
        if (c->n == 0 && c != job.of && (!oldest || c->used < oldest->used))
            oldest = c;
    }
    if (oldest) {
        *oldest = (struct class){.bytes = bytes};
        TAILQ_INIT(&oldest->objects);
    }
    return oldest;
}

static void add(struct class *c, struct pool_object *object, bool first)
{
    if (first)
        TAILQ_INSERT_HEAD(&c->objects, object, link);
    else
        TAILQ_INSERT_TAIL(&c->objects, object, link);
    c->n++;
    n_objects++;
    atomic_fetch_add(&n_bytes, c->bytes);
}

static struct pool_object *take_first(struct class *c)
{
    struct pool_object *object = TAILQ_FIRST(&c->objects);
    if (!object)
        return NULL;
    TAILQ_REMOVE(&c->objects, object, link);
    c->n--;
    n_objects--;
    atomic_fetch_sub(&n_bytes, c->bytes);
    return object;
}

/* How many objects the class lacks, as far as there is room for them. If now is true, one that
 * still has some lacks none. */
static unsigned lack(const struct class *c, bool now)
{
    if (c->bytes == 0 || c->n >= c->target || (now && c->n > c->target / LEAST_PART))
        return 0;
    uint64_t bytes = pool_bytes(), n = c->target - c->n;
    uint64_t room = limit > bytes ? (limit - bytes) / c->bytes : 0;
    uint64_t more = n_objects < most ? most - n_objects : 0;
    uint64_t batch = BATCH_BYTES / c->bytes ? BATCH_BYTES / c->bytes : 1;
    n = n < room ? n : room;
    n = n < more ? n : more;
    n = n < batch ? n : batch;
    return (unsigned)(n < BATCH ? n : BATCH);
}

/* Frees all objects above the target of their class, or all. Blocks. Takes the lock. Returns
 * whether there was any. */
static bool shrink(bool all)
{
    struct objects surplus = TAILQ_HEAD_INITIALIZER(surplus);
    struct pool_object *object;
    bool any = false;
    pthread_mutex_lock(&lock);
    for (struct class *c = classes; c < classes + CLASSES; c++)
        while (c->n > (all ? 0 : c->target)) {
            object = take_first(c);
            TAILQ_INSERT_TAIL(&surplus, object, link);
        }
    pthread_mutex_unlock(&lock);
    for (; (object = TAILQ_FIRST(&surplus)); any = true) {
        TAILQ_REMOVE(&surplus, object, link);
        unmake(object);
    }
    return any;
}

/* --- The thread ---------------------------------------------------------- */

/* Whether other programs and creations have enough memory besides the pool. Jobs follow each other,
 * so what this remembers needs no lock. */
static bool is_memory_free(void)
{
    static int64_t measured_ns;
    if (now_ns() - measured_ns < FREE_HOLDS_NS)
        return true;
    struct object_space space = object_space(OBJECT_FILE);
    uint64_t reserve = space.limit / FREE_PART, allowed = pool_figures().limit;
    measured_ns = now_ns();
    return space.free >= (reserve > allowed ? reserve : allowed) + pool_bytes();
}

static void pause_making(void)
{
    pthread_mutex_lock(&lock);
    paused_until = now_ns() + PAUSE_NS;
    pthread_mutex_unlock(&lock);
}

/* Makes one object and adds it to its class. Returns whether it did: not after the pool was stopped
 * or drained, which may have happened after the loop queued the job. */
static bool make(struct class *c, struct pool_object *object)
{
    pthread_mutex_lock(&lock);
    unsigned drains = n_drains;
    bool may = limit > 0 && now_ns() >= paused_until;
    n_making += may;
    pthread_mutex_unlock(&lock);
    if (!may)
        return false;
    int r = object_promise_now(OBJECT_FILE, c->bytes);
    if (r == 0)
        r = maker->make(object, c->bytes);
    pthread_mutex_lock(&lock);
    bool keep = r == 0 && drains == n_drains;
    if (keep)
        add(c, object, false);
    pthread_mutex_unlock(&lock);
    if (r == 0 && !keep)
        maker->unmake(object);
    pthread_mutex_lock(&lock);
    if (--n_making == 0)
        pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
    return keep;
}

/* Whether something was wanted since the loop queued the job. */
static bool is_wanted(void)
{
    pthread_mutex_lock(&lock);
    bool wanted = uses != job.uses;
    pthread_mutex_unlock(&lock);
    return wanted;
}

static void work(uv_work_t *w)
{
    bool fits = is_memory_free();
    (void)w;
    shrink(!fits);
    for (unsigned i = 0; fits && i < job.n && (job.now || i == 0 || !is_wanted()); i++) {
        fits = make(job.of, job.make[i]);
        if (fits)
            job.make[i] = NULL;
    }
    if (!fits)
        pause_making();
}

static void start_job(bool now, bool tick);

static void done(uv_work_t *w, int status)
{
    (void)w;
    (void)status;
    for (unsigned i = 0; i < job.n; i++)
        free(job.make[i]);
    job.n = 0;
    job.of = NULL;
    job.runs = false;
    start_job(uses != uses_then, false);
    uses_then = uses;
}

/* --- The loop ------------------------------------------------------------ */

/* Chooses the class that lacks objects and was used last. The caller holds the lock. */
static void choose(bool now)
{
    for (struct class *c = classes; now_ns() >= paused_until && c < classes + CLASSES; c++)
        if (lack(c, now) > 0 && (!job.of || c->used > job.of->used))
            job.of = c;
    unsigned n = job.of ? lack(job.of, now) : 0;
    while (job.n < n && (job.make[job.n] = calloc(1, sizeof *job.make[0])))
        job.make[job.n++]->number = ++last_number;
}

/* Starts a job if a class lacks objects, or if it is time to look for memory. */
static void start_job(bool now, bool tick)
{
    if (!by_loop || job.runs)
        return;
    pthread_mutex_lock(&lock);
    job.now = now;
    job.uses = uses;
    if (limit)
        choose(now);
    pthread_mutex_unlock(&lock);
    job.runs = job.n > 0 || tick;
    if (job.runs)
        uv_queue_work(by_loop, &job.work, work, done); /* fails only without a callback */
}

/* Lowers the targets of classes that were wanted less. Stops when there is nothing left to do. */
static void on_tick(struct alarm *a)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (struct class *c = classes; c < classes + CLASSES; c++) {
        unsigned less = c->target - (c->target + 3) / 4;
        unsigned wanted = c->n_taken > 1 ? c->n_taken : 0;
        c->target = wanted > less ? wanted : less;
        c->n_taken = 0;
        any |= c->target > 0 || c->n > 0;
    }
    pthread_mutex_unlock(&lock);
    if (any)
        alarm_set(a, TICK_MS, 0);
    start_job(true, any);
}

/* Fills the pool if nothing was wanted since the alarm was set. */
static void on_fill(struct alarm *a)
{
    if (uses == uses_then)
        start_job(false, false);
    else
        alarm_set(a, FILL_MS, 0);
    uses_then = uses;
}

int pool_init(uv_loop_t *loop, const struct pool_maker *of, unsigned n_most)
{
    int r = alarm_init(&alarm_of_ticks, loop, on_tick, NULL);
    if (r)
        return r;
    r = alarm_init(&alarm_of_fills, loop, on_fill, NULL);
    if (r) {
        alarm_close(&alarm_of_ticks, NULL);
        return r;
    }
    by_loop = loop;
    maker = of;
    most = n_most;
    return 0;
}

void pool_limit(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool less = bytes < limit;
    limit = bytes;
    pthread_mutex_unlock(&lock);
    if (less)
        pool_drain();
}

void pool_stop(void)
{
    if (by_loop) {
        alarm_close(&alarm_of_ticks, NULL);
        alarm_close(&alarm_of_fills, NULL);
    }
    by_loop = NULL;
    pool_limit(0);
    pool_drain();
    pthread_mutex_lock(&lock);
    for (struct class *c = classes; c < classes + CLASSES; c++)
        if (c != job.of)
            *c = (struct class){0};
    pthread_mutex_unlock(&lock);
}

struct pool_object *pool_take(uint64_t bytes)
{
    struct pool_object *object = NULL;
    if (!by_loop)
        return NULL;
    pthread_mutex_lock(&lock);
    struct class *c = bytes <= limit / OBJECT_PART ? class_of(bytes) : NULL;
    if (c) {
        c->used = ++uses;
        c->n_taken++;
        if (c->n_taken > 1 && c->n_taken > c->target)
            c->target = c->n_taken;
        object = take_first(c);
    }
    n_hits += object != NULL;
    n_misses += limit && !object;
    bool wants = c && lack(c, false) > 0, now = c && lack(c, true) > 0;
    pthread_mutex_unlock(&lock);
    if (c && !alarm_of_ticks.is_set)
        alarm_set(&alarm_of_ticks, TICK_MS, 0);
    if (wants && !alarm_of_fills.is_set)
        alarm_set(&alarm_of_fills, FILL_MS, 0);
    if (now)
        start_job(true, false);
    return object;
}

void pool_give_back(uint64_t bytes, struct pool_object *object)
{
    pthread_mutex_lock(&lock);
    struct class *c = limit ? class_of(bytes) : NULL;
    if (c)
        add(c, object, true);
    pthread_mutex_unlock(&lock);
    if (!c)
        unmake(object);
}

bool pool_drain(void)
{
    pthread_mutex_lock(&lock);
    n_drains++;
    paused_until = now_ns() + PAUSE_NS;
    bool any = n_making > 0;
    pthread_mutex_unlock(&lock);
    any |= shrink(true);
    pthread_mutex_lock(&lock);
    while (n_making)
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
    return any;
}

struct pool_figures pool_figures(void)
{
    pthread_mutex_lock(&lock);
    struct pool_figures f = {pool_bytes(), limit, n_hits, n_misses};
    pthread_mutex_unlock(&lock);
    return f;
}
