/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame costs: in one thread, between two threads that never sleep, and with many readers.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "courier.h"
#include "streams.h"

#define READERS      8
#define PAIRS        20000
#define FRAMES       100000 /* from thread to thread */
#define CROWD_FRAMES 3000   /* from process to processes */

/* A stream of this process, with a handle of each reader. */
struct pool {
    struct shmview_stream *writer, *reader[READERS];
};

static void pool_close(struct pool *pool)
{
    for (int i = 0; i < READERS; i++)
        shmview_stream_close(pool->reader[i]);
    shmview_stream_close(pool->writer);
}

/* Returns 0, or -1 after failed(), after which the pool must be closed as well. */
static int pool_open(struct pool *ret, struct bench *bench, const char *name, uint32_t n_slots,
                     int64_t bytes, int n_readers)
{
    *ret = (struct pool){0};
    if (stream_make(bench, name, SHMVIEW_LOSSLESS, n_slots, bytes, &ret->writer))
        return -1;
    for (int i = 0; i < n_readers; i++)
        if (shmview_stream_open(bench->connection, name, SHMVIEW_READ, &ret->reader[i]) ||
            shmview_stream_join(ret->reader[i]))
            return failed("no reader: %s", shmview_error_text());
    return 0;
}

/* --- In one thread ------------------------------------------------------- */

struct pairs {
    struct pool *pool;
    bool has_clock; /* the library reads the clock for each frame */
    int n_readers;  /* the figure is that of one of them */
};

static int pass(const struct pairs *p)
{
    struct shmview_frame frame;
    if (shmview_stream_loan(p->pool->writer, 0, &frame))
        return -1;
    frame.time_ns = !p->has_clock;
    if (shmview_frame_publish(&frame))
        return -1;
    for (int i = 0; i < p->n_readers; i++) {
        if (shmview_stream_take(p->pool->reader[i], 0, &frame))
            return -1;
        shmview_frame_release(&frame);
    }
    return 0;
}

static int run_pairs(void *arg, double *ret)
{
    const struct pairs *p = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (pass(p))
            return failed("no frame: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / PAIRS / p->n_readers;
    return 0;
}

static int run_pipe_pairs(void *arg, double *ret)
{
    unsigned char frame[COURIER_BYTES] = {0};
    int fd[2], r = 0;
    (void)arg;
    if (pipe2(fd, O_CLOEXEC))
        return failed("pipe: %s", strerror(errno));
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS && r == 0; i++)
        r = write(fd[1], frame, sizeof frame) != sizeof frame ||
            read(fd[0], frame, sizeof frame) != sizeof frame;
    *ret = (double)(now_ns() - start) / PAIRS;
    close(fd[0]);
    close(fd[1]);
    return r ? failed("a pipe passes no frames") : 0;
}

/* --- From thread to thread ----------------------------------------------- */

#define CELLS 64

/* The least that a queue of two threads does: each of them waits for the other by one word. Its
 * sides never sleep. If they may, each must look after its store whether the other one sleeps, so
 * each stores by a locked instruction. */
struct bare_ring {
    _Alignas(128) _Atomic uint64_t published;
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(128) unsigned char bytes[CELLS][COURIER_BYTES];
};

struct threads {
    const struct cpus *cpus;
    struct shmview_stream *writer, *reader; /* NULL: the bare ring */
    struct bare_ring *ring;
    bool may_sleep; /* of the bare ring */
    bool has_clock;
    _Atomic bool has_failed;
    pthread_barrier_t start;
    int64_t began_ns;
};

static void pin_thread(const struct cpus *cpus, int side)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus->cpu[side], &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void store(_Atomic uint64_t *word, uint64_t value, bool may_sleep)
{
    if (may_sleep)
        atomic_exchange(word, value);
    else
        atomic_store_explicit(word, value, memory_order_release);
}

static void write_ring(struct bare_ring *ring, bool may_sleep)
{
    for (uint64_t i = 0; i < FRAMES; i++) {
        while (i - atomic_load_explicit(&ring->taken, memory_order_acquire) >= CELLS)
            continue;
        memset(ring->bytes[i % CELLS], (int)i, 8);
        store(&ring->published, i + 1, may_sleep);
    }
}

static void read_ring(struct bare_ring *ring, bool may_sleep)
{
    for (uint64_t i = 0; i < FRAMES; i++) {
        while (atomic_load_explicit(&ring->published, memory_order_acquire) <= i)
            continue;
        (void)*(volatile unsigned char *)ring->bytes[i % CELLS];
        store(&ring->taken, i + 1, may_sleep);
    }
}

static int write_stream(const struct threads *t)
{
    struct shmview_frame frame;
    for (int i = 0; i < FRAMES; i++) {
        if (shmview_stream_loan(t->writer, SHMVIEW_FOREVER, &frame))
            return -1;
        frame.time_ns = !t->has_clock;
        if (shmview_frame_publish(&frame))
            return -1;
    }
    return 0;
}

static int read_stream(const struct threads *t)
{
    struct shmview_frame frame;
    for (int i = 0; i < FRAMES; i++) {
        if (shmview_stream_take(t->reader, SHMVIEW_FOREVER, &frame))
            return -1;
        shmview_frame_release(&frame);
    }
    return 0;
}

static void *run_thread(void *arg)
{
    struct threads *t = arg;
    pin_thread(t->cpus, 0);
    pthread_barrier_wait(&t->start);
    t->began_ns = now_ns();
    if (!t->writer)
        write_ring(t->ring, t->may_sleep);
    else if (write_stream(t))
        t->has_failed = true;
    return NULL;
}

static int run_threads(void *arg, double *ret)
{
    struct threads *t = arg;
    pthread_t writer;
    memset(t->ring, 0, sizeof *t->ring);
    pthread_barrier_init(&t->start, NULL, 2);
    pin_thread(t->cpus, 1);
    if (pthread_create(&writer, NULL, run_thread, t))
        return failed("no thread");
    pthread_barrier_wait(&t->start);
    if (!t->reader)
        read_ring(t->ring, t->may_sleep);
    else if (read_stream(t))
        t->has_failed = true;
    int64_t end = now_ns();
    pthread_join(writer, NULL);
    pthread_barrier_destroy(&t->start);
    place_process(t->cpus, PLACE_FREE, 0, 0);
    *ret = (double)(end - t->began_ns) / FRAMES;
    return t->has_failed ? failed("no frame: %s", shmview_error_text()) : 0;
}

static void run_thread_rows(struct bench *bench, const struct pool *pool,
                            struct shmview_stream *alone)
{
    static struct bare_ring ring;
    struct threads ours = {.cpus = &bench->cpus,
                           .writer = pool->writer,
                           .reader = pool->reader[0],
                           .ring = &ring},
                   clock = ours, one = ours, bare = {.cpus = &bench->cpus, .ring = &ring},
                   locked = bare;
    struct contest plain = {
        .what = "frames from thread to thread",
        .unit = "ns",
        .scale = 1,
        .rounds = 21,
        .rounds_quick = 5,
        .n = 3,
        .list = {{"shmview", run_threads, &ours, {0}},
                 {"a bare ring", run_threads, &bare, {TARGET_VALUE, 60}},
                 {"a ring whose sides may sleep", run_threads, &locked, {0}}},
    };
    struct contest other = plain;
    locked.may_sleep = true;
    other.n = 2;
    clock.has_clock = true;
    contest_run(bench, &plain);
    snprintf(other.what, sizeof other.what, "frames from thread to thread, with the clock");
    other.list[0].arg = &clock;
    other.list[1] = (struct contestant){"without it", run_threads, &ours, {0}};
    contest_run(bench, &other);
    snprintf(other.what, sizeof other.what, "frames from thread to thread, one handle");
    one.writer = one.reader = alone;
    other.list[0].arg = &one;
    other.list[1].name = "a handle each";
    contest_run(bench, &other);
}

/* --- Readers in processes ------------------------------------------------ */

struct crowd_of_readers {
    volatile uint32_t ready[READERS], done[READERS];
    volatile int64_t cpu_ns[READERS];
};

struct fanout {
    struct bench *bench;
    struct shmview_stream *stream;
    struct crowd_of_readers *shared;
    int n_readers;
    int i; /* of the child */
};

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run_crowd_reader(void *arg)
{
    const struct fanout *f = arg;
    struct shmview_frame frame;
    if (shmview_stream_join(f->stream))
        return;
    f->shared->ready[f->i] = 1;
    int64_t start = cpu_ns();
    for (int i = 0; i < CROWD_FRAMES; i++) {
        if (shmview_stream_take(f->stream, SHMVIEW_FOREVER, &frame))
            return;
        shmview_frame_release(&frame);
    }
    f->shared->cpu_ns[f->i] = cpu_ns() - start;
    f->shared->done[f->i] = 1;
}

static int write_to_crowd(const struct fanout *f)
{
    struct shmview_frame frame;
    for (int i = 0; i < f->n_readers; i++)
        if (wait_for(&f->shared->ready[i], 1))
            return failed("a reader does not come");
    for (int i = 0; i < CROWD_FRAMES; i++) {
        if (shmview_stream_loan(f->stream, shmview_deadline(10000000000), &frame))
            return failed("no slot: %s", shmview_error_text());
        frame.time_ns = 1;
        if (shmview_frame_publish(&frame))
            return failed("%s", shmview_error_text());
    }
    return 0;
}

/* The processor's time that a frame costs, of all processes, for each of its readers. */
static int run_fanout(void *arg, double *ret)
{
    struct fanout *f = arg;
    pid_t pid[READERS];
    memset(f->shared, 0, sizeof *f->shared);
    for (f->i = 0; f->i < f->n_readers; f->i++)
        pid[f->i] = child_start(run_crowd_reader, f);
    int64_t start = cpu_ns();
    int r = write_to_crowd(f);
    double sum = (double)(cpu_ns() - start);
    for (int i = 0; i < f->n_readers; i++) {
        if (r == 0 && (r = wait_for(&f->shared->done[i], 1)))
            failed("a reader does not end");
        sum += (double)f->shared->cpu_ns[i];
        child_end(pid[i]);
    }
    *ret = sum / CROWD_FRAMES / f->n_readers;
    return r;
}

static void run_fanout_row(struct bench *bench, struct shmview_stream *stream)
{
    void *p = mmap(NULL, sizeof(struct crowd_of_readers), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fanout many = {bench, stream, p, READERS, 0}, one = {bench, stream, p, 1, 0};
    const struct contest contest = {
        .what = "a frame to 8 processes, of each",
        .unit = "us",
        .scale = 1e-3,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmview", run_fanout, &many, {0}},
                 {"to one", run_fanout, &one, {TARGET_RATIO, 1.2}}},
    };
    if (p == MAP_FAILED)
        return;
    contest_run(bench, &contest);
    munmap(p, sizeof(struct crowd_of_readers));
}

/* --- The rows ------------------------------------------------------------ */

static void run_pair_row(struct bench *bench, const char *what, struct pairs *ours,
                         struct pairs *reference, const char *name, double most)
{
    struct contest contest = {
        .unit = "ns",
        .scale = 1,
        .rounds = 21,
        .rounds_quick = 5,
        .n = 2,
        .list = {{"shmview", run_pairs, ours, {0}}, {name, run_pairs, reference, {0}}},
    };
    if (most > 0)
        contest.list[1].target = (struct target){TARGET_RATIO, most};
    snprintf(contest.what, sizeof contest.what, "%s", what);
    contest_run(bench, &contest);
}

enum {
    POOL_8,
    POOL_64,
    POOL_512,
    POOL_LARGE,
    POOL_MANY,  /* readers */
    POOL_ALONE, /* one handle */
    POOLS
};

static void run_pair_rows(struct bench *bench, struct pool *pools, bool with_iceoryx)
{
    struct pairs eight = {&pools[POOL_8], false, 1}, clock = {&pools[POOL_8], true, 1},
                 slots = {&pools[POOL_512], false, 1}, large = {&pools[POOL_LARGE], false, 1},
                 many = {&pools[POOL_MANY], false, READERS};
    struct contest contest = {
        .what = "frame in one thread",
        .unit = "ns",
        .scale = 1,
        .rounds = 21,
        .rounds_quick = 5,
        .n = 2,
        .list = {{"shmview", run_pairs, &eight, {0}}, {"a pipe", run_pipe_pairs, NULL, {0}}},
    };
    if (with_iceoryx)
        contest.list[contest.n++] = (struct contestant){"iceoryx", run_iceoryx_pairs, NULL, {0}};
    contest_run(bench, &contest);
    run_pair_row(bench, "frame in one thread, with the clock", &clock, &eight, "without it", 0);
    run_pair_row(bench, "frame in one thread, 512 slots", &slots, &eight, "8 slots", 1.1);
    /* half a GiB of /dev/shm */
    if (pool_open(&pools[POOL_LARGE], bench, "pairs-large", 8, STREAM_LARGE_BYTES, 1) == 0)
        run_pair_row(bench, "frame in one thread, 64 MiB", &large, &eight, "64 bytes", 1.1);
    run_pair_row(bench, "frame to 8 readers, of each", &many, &eight, "to one", 1.2);
}

static bool wants_pairs(const struct bench *bench)
{
    return bench_wants(bench, "frame in one thread") ||
           bench_wants(bench, "frame in one thread, with the clock") ||
           bench_wants(bench, "frame in one thread, 512 slots") ||
           bench_wants(bench, "frame in one thread, 64 MiB") ||
           bench_wants(bench, "frame to 8 readers, of each");
}

static bool wants_threads(const struct bench *bench)
{
    return bench_wants(bench, "frames from thread to thread") ||
           bench_wants(bench, "frames from thread to thread, with the clock") ||
           bench_wants(bench, "frames from thread to thread, one handle");
}

static bool wants_fanout(const struct bench *bench)
{
    return bench_wants(bench, "a frame to 8 processes, of each");
}

bool stream_costs_wanted(const struct bench *bench)
{
    return wants_pairs(bench) || wants_threads(bench) || wants_fanout(bench);
}

void bench_stream_costs(struct bench *bench, bool with_iceoryx)
{
    struct pool pools[POOLS] = {0};
    struct shmview_stream *crowd = NULL;
    if (!stream_costs_wanted(bench))
        return;
    if (pool_open(&pools[POOL_8], bench, "pairs-8", 8, 64, 1) ||
        pool_open(&pools[POOL_64], bench, "pairs-64", 64, 64, 1) ||
        pool_open(&pools[POOL_512], bench, "pairs-512", 512, 64, 1) ||
        pool_open(&pools[POOL_MANY], bench, "pairs-many", 8, 64, READERS) ||
        pool_open(&pools[POOL_ALONE], bench, "pairs-alone", 64, 64, 0) ||
        shmview_stream_join(pools[POOL_ALONE].writer) ||
        stream_make(bench, "crowd", SHMVIEW_LOSSLESS, 64, 64, &crowd)) {
        bench->n_failed++;
    } else {
        place_process(&bench->cpus, PLACE_SAME, 0, 0);
        run_pair_rows(bench, pools, with_iceoryx);
        place_process(&bench->cpus, PLACE_FREE, 0, 0);
        if (bench->cpus.n >= 2)
            run_thread_rows(bench, &pools[POOL_64], pools[POOL_ALONE].writer);
        if (wants_fanout(bench))
            run_fanout_row(bench, crowd);
    }
    for (size_t i = 0; i < POOLS; i++)
        pool_close(&pools[i]);
    shmview_stream_close(crowd);
}
