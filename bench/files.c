/* SPDX-License-Identifier: Apache-2.0 */
/* shmviewctl save and load of a gigabyte, beside cp of a gigabyte from and to shared memory. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SEGMENT "file"
#define LAYOUT  "bench"
#define VIEW    "all"
#define BYTES   ((uint64_t)1 << 30)

extern char **environ;

struct copy {
    const struct bench *bench;
    char ctl[PATH_MAX + 32];
    char object[64];         /* name of shared memory that is no segment's */
    char object_path[96];    /* of the same, for cp */
    char npy[PATH_MAX + 32]; /* a file as save writes it */
    char to[PATH_MAX + 32];  /* the file that a run writes */
};

/* Runs the program to its end. Returns 0 and the seconds that it took, or -1. */
static int run_program(char *const *argv, double *ret)
{
    pid_t pid;
    int status;
    int64_t start = now_ns();
    int r = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (r)
        return failed("%s: %s", argv[0], strerror(r));
    if (waitpid(pid, &status, 0) != pid || status)
        return failed("%s %s failed", argv[0], argv[1]);
    *ret = (double)(now_ns() - start) / 1e9;
    return 0;
}

static int run_save(void *arg, double *ret)
{
    struct copy *c = arg;
    char *const argv[] = {c->ctl, "--socket", (char *)(uintptr_t)c->bench->instance->socket,
                          "save", SEGMENT,    c->to,
                          NULL};
    unlink(c->to); /* and what was to be written of it to a disk */
    return run_program(argv, ret);
}

static int run_cp_out(void *arg, double *ret)
{
    struct copy *c = arg;
    char *const argv[] = {"cp", c->object_path, c->to, NULL};
    unlink(c->to);
    return run_program(argv, ret);
}

static int run_load(void *arg, double *ret)
{
    struct copy *c = arg;
    char *const argv[] = {c->ctl, "--socket", (char *)(uintptr_t)c->bench->instance->socket,
                          "load", c->npy,     SEGMENT,
                          NULL};
    return run_program(argv, ret);
}

static int run_cp_in(void *arg, double *ret)
{
    struct copy *c = arg;
    char *const argv[] = {"cp", c->npy, c->object_path, NULL};
    return run_program(argv, ret);
}

/* Shared memory for cp, of as many bytes, all of them there. */
static int make_object(struct copy *c)
{
    instance_object_name(c->object, sizeof c->object, "cp");
    snprintf(c->object_path, sizeof c->object_path, "/dev/shm%s", c->object);
    int fd = shm_open(c->object, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed("%s: %s", c->object, strerror(errno));
    int r = posix_fallocate(fd, 0, (off_t)BYTES);
    close(fd);
    return r ? failed("%s: %s", c->object, strerror(r)) : 0;
}

static int make_segment(const struct bench *bench, struct shmview_segment **ret)
{
    const int64_t shape[] = {(int64_t)(BYTES / sizeof(float))};
    const struct shmview_view_spec spec = {.name = VIEW, .format = "f", .ndim = 1, .shape = shape};
    if (shmview_create(bench->connection, SEGMENT, BYTES, NULL, ret) ||
        shmview_define(*ret, LAYOUT, &spec, 1) || shmview_lock(*ret) ||
        shmview_switch(*ret, LAYOUT))
        return failed("1 GiB: %s", shmview_error_text());
    memset(shmview_data(*ret), 1, BYTES);
    return shmview_unlock(*ret) ? failed("1 GiB: %s", shmview_error_text()) : 0;
}

static void measure(struct bench *bench, struct copy *c)
{
    const struct target target = {TARGET_RATIO, 1 / 0.8};
    struct contest save = {
        .what = "save 1 GiB as npy",
        .unit = "s",
        .scale = 1,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmviewctl", run_save, c, {0}}, {"cp from /dev/shm", run_cp_out, c, target}},
    };
    struct contest load = {
        .what = "load 1 GiB of npy",
        .unit = "s",
        .scale = 1,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmviewctl", run_load, c, {0}}, {"cp to /dev/shm", run_cp_in, c, target}},
    };
    double unused;
    contest_run(bench, &save);
    if (run_save(c, &unused) == 0 && rename(c->to, c->npy) == 0)
        contest_run(bench, &load);
}

void bench_files(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    struct copy c = {.bench = bench};
    if (!bench_wants(bench, "save 1 GiB as npy") && !bench_wants(bench, "load 1 GiB of npy"))
        return;
    snprintf(c.ctl, sizeof c.ctl, "%s", bench->instance->program);
    char *slash = strstr(c.ctl, "/daemon/shmviewd");
    if (slash)
        strcpy(slash, "/cli/shmviewctl");
    if (!slash || access(c.ctl, X_OK)) {
        failed("no shmviewctl beside %s: save and load are not measured", bench->instance->program);
        return;
    }
    snprintf(c.npy, sizeof c.npy, "%s/bench.npy", bench->instance->directory);
    snprintf(c.to, sizeof c.to, "%s/bench.copy", bench->instance->directory);
    if (make_object(&c) == 0 && make_segment(bench, &segment) == 0)
        measure(bench, &c);
    else
        bench->n_failed++;
    shmview_detach(segment);
    shm_unlink(c.object);
    unlink(c.npy);
    unlink(c.to);
}
