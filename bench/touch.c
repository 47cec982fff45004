/* SPDX-License-Identifier: Apache-2.0 */
/* A gigabyte that is created and touched, in huge pages and by populating, beside raw shared
 * memory; and populating by two threads beside one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/placement.h>

#include "bench.h"

#define SEGMENT "touch"
#define BYTES   ((uint64_t)1 << 30)
#define PAGE    4096

struct touch {
    const struct bench *bench;
    uint32_t huge; /* enum shmview_huge */
    unsigned n_threads;
};

/* Writes one byte of each page. */
static void touch_all(char *data)
{
    for (uint64_t i = 0; i < BYTES; i += PAGE)
        ((volatile char *)data)[i] = 1;
}

static int create(const struct touch *t, struct shmview_segment **ret)
{
    const struct shmview_placement placement = {.struct_bytes = sizeof placement, .huge = t->huge};
    const struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .flags = SHMVIEW_NO_LOCK,
        .backing = SHMVIEW_BACKING_SEALED,
        .placement = &placement,
    };
    return shmview_create(t->bench->connection, SEGMENT, BYTES, &options, ret);
}

/* The memory is given back after the clock has stopped, on both sides. */
static int run_segment(void *arg, double *ret)
{
    struct shmview_segment *segment;
    int64_t start = now_ns();
    if (create(arg, &segment))
        return failed("1 GiB: %s", shmview_error_text());
    touch_all(shmview_data(segment));
    *ret = (double)(now_ns() - start);
    return shmview_detach(segment) ? failed("1 GiB: %s", shmview_error_text()) : 0;
}

static int run_raw(void *arg, double *ret)
{
    (void)arg;
    int64_t start = now_ns();
    int fd = memfd_create("touch", MFD_CLOEXEC);
    char *data = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)BYTES) == 0)
        data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return failed("1 GiB: %s", strerror(errno));
    }
    touch_all(data);
    *ret = (double)(now_ns() - start);
    munmap(data, BYTES);
    close(fd);
    return 0;
}

struct part {
    struct shmview_segment *segment;
    uint64_t offset, bytes;
    int r;
};

static void *populate(void *arg)
{
    struct part *p = arg;
    p->r = shmview_populate(p->segment, p->offset, p->bytes);
    return NULL;
}

/* Measures populating alone, by as many threads as requested: one or two. */
static int run_populate(void *arg, double *ret)
{
    struct touch *t = arg;
    struct shmview_segment *segment;
    pthread_t thread;
    if (create(t, &segment))
        return failed("1 GiB: %s", shmview_error_text());
    struct part parts[2] = {{segment, 0, BYTES / t->n_threads, 0},
                            {segment, BYTES / 2, BYTES / 2, 0}};
    int64_t start = now_ns();
    bool two = t->n_threads == 2 && pthread_create(&thread, NULL, populate, &parts[1]) == 0;
    populate(&parts[0]);
    if (two)
        pthread_join(thread, NULL);
    *ret = (double)(now_ns() - start);
    int r = parts[0].r ? parts[0].r : parts[1].r;
    return shmview_detach(segment) || r || two != (t->n_threads == 2)
               ? failed("1 GiB: %s", shmview_error_text())
               : 0;
}

/* Whether a segment gets huge pages here; prints why not. */
static bool has_huge(const struct touch *t)
{
    struct shmview_segment *segment;
    if (create(t, &segment)) {
        failed("touching in huge pages is not measured: %s", shmview_error_text());
        return false;
    }
    shmview_detach(segment);
    return true;
}

void bench_touch(struct bench *bench)
{
    struct touch huge = {.bench = bench, .huge = SHMVIEW_HUGE_REQUIRED};
    struct touch small = {.bench = bench};
    struct touch one = {.bench = bench, .n_threads = 1}, two = {.bench = bench, .n_threads = 2};
    struct contest touched = {
        .what = "create and touch 1 GiB, huge pages",
        .unit = "ms",
        .scale = 1e-6,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 3,
        .list = {{"shmview", run_segment, &huge, {0}},
                 {"memfd of 4 KiB pages", run_raw, NULL, {TARGET_RATIO, 0.35}},
                 {"without huge pages", run_segment, &small, {0}}},
    };
    struct contest populated = {
        .what = "populate 1 GiB by two threads",
        .unit = "ms",
        .scale = 1e-6,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"two threads", run_populate, &two, {0}}, {"one", run_populate, &one, {0}}},
    };
    if (bench_wants(bench, touched.what) && has_huge(&huge))
        contest_run(bench, &touched);
    if (bench_wants(bench, populated.what))
        contest_run(bench, &populated);
}
