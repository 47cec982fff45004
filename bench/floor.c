/* SPDX-License-Identifier: Apache-2.0 */
/* A segment, attached, and one without a lock created, beside the least work that the kernel must
 * do for it. The reference is a server that checks nothing and stores nothing: it blocks in recvmsg
 * and passes the descriptor, or three for a segment with a lock. Its client maps the object, and
 * sends a goodbye without waiting for a reply. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/many.h>

#include "bench.h"

#define SEGMENT        "floor"
#define LOCKED         "floor-locked"
#define SEGMENT_BYTES  4096
#define REQUEST_BYTES  80 /* as long as ours */
#define REPLY_BYTES    280
#define NAME_BYTES     64
#define CALLS          100
#define OBJECTS        3 /* of a segment with a lock */
#define TOGETHER       16
#define LIVENESS_BYTES 4096
#define CONTROL_BYTES  131072

/* The first byte of a request. */
enum request {
    PASS = 'p',
    PASS_THREE = 't',
    MAKE = 'm',
    UNMAKE = 'u',
    GOODBYE = 'g',
};

struct floor {
    struct bench *bench;
    int ends[2];
    pid_t server;
    char name[NAME_BYTES];
    struct shmview_segment *held[2]; /* that are attached: SEGMENT and LOCKED */
};

/* --- Messages ------------------------------------------------------------ */

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(OBJECTS * sizeof(int))];
};

/* Sends n bytes, and n_fds times the descriptor. */
static int send_bytes(int socket, char first, size_t n, int fd, unsigned n_fds)
{
    char bytes[REPLY_BYTES] = {first};
    union control control = {0};
    struct iovec iov = {bytes, n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof fd);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof fd);
        for (unsigned i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    }
    return sendmsg(socket, &msg, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -1;
}

/* Receives one reply of PASS_THREE, and maps what it has. Returns 0 or -1. */
static int receive_three(int socket, void *ret_maps[OBJECTS])
{
    static const size_t sizes[OBJECTS] = {SEGMENT_BYTES, CONTROL_BYTES, LIVENESS_BYTES};
    char bytes[REPLY_BYTES];
    union control control;
    struct iovec iov = {bytes, sizeof bytes};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    int fds[OBJECTS];
    ssize_t got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = got == sizeof bytes ? CMSG_FIRSTHDR(&msg) : NULL;
    if (!c || c->cmsg_len != CMSG_LEN(sizeof fds))
        return failed("the server of the floor: %s", strerror(errno));
    memcpy(fds, CMSG_DATA(c), sizeof fds);
    for (int i = 0; i < OBJECTS; i++)
        ret_maps[i] = mmap(NULL, sizes[i], i == 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
                           fds[i], 0);
    if (fds[2] != fds[0] + 2 || close_range((unsigned)fds[0], (unsigned)fds[2], 0))
        for (int i = 0; i < OBJECTS; i++)
            close(fds[i]);
    for (int i = 0; i < OBJECTS; i++)
        if (ret_maps[i] == MAP_FAILED)
            return failed("mmap: %s", strerror(errno));
    return 0;
}

/* Unmaps what receive_three() has mapped, in one call if the mappings follow each other. */
static void unmap_three(void *const maps[OBJECTS])
{
    char *data = maps[0], *control = maps[1], *live = maps[2];
    if (live + LIVENESS_BYTES == control && control + CONTROL_BYTES == data) {
        munmap(live, LIVENESS_BYTES + CONTROL_BYTES + SEGMENT_BYTES);
        return;
    }
    munmap(data, SEGMENT_BYTES);
    munmap(control, CONTROL_BYTES);
    munmap(live, LIVENESS_BYTES);
}

/* Returns how many bytes came; *ret_fd is the first descriptor that came with them, or -1. */
static ssize_t receive_bytes(int socket, char *bytes, size_t n, int *ret_fd)
{
    union control control;
    struct iovec iov = {bytes, n};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    *ret_fd = -1;
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return got;
    memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    for (size_t i = 1; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
        int other;
        memcpy(&other, CMSG_DATA(c) + i * sizeof other, sizeof other);
        close(other);
    }
    return got;
}

/* --- The server ---------------------------------------------------------- */

static int make(const char *name)
{
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, SEGMENT_BYTES))
        _exit(1);
    return fd;
}

static int answer(const struct floor *f, char request, int fd)
{
    int made, r;
    switch (request) {
    case PASS:
        return send_bytes(f->ends[1], PASS, REPLY_BYTES, fd, 1);
    case PASS_THREE:
        return send_bytes(f->ends[1], PASS_THREE, REPLY_BYTES, fd, OBJECTS);
    case MAKE:
        made = make(f->name);
        r = send_bytes(f->ends[1], MAKE, REPLY_BYTES, made, 1);
        close(made);
        return r;
    case UNMAKE:
        shm_unlink(f->name);
        return send_bytes(f->ends[1], UNMAKE, 1, -1, 0);
    default:
        return 0;
    }
}

static void serve(void *arg)
{
    const struct floor *f = arg;
    char bytes[2 * TOGETHER * REQUEST_BYTES];
    close(f->ends[0]);
    int fd = make(f->name), unused;
    shm_unlink(f->name);
    for (;;) {
        ssize_t n = receive_bytes(f->ends[1], bytes, sizeof bytes, &unused);
        if (n <= 0)
            return;
        for (ssize_t at = 0; at < n; at += REQUEST_BYTES)
            if (answer(f, bytes[at], fd))
                return;
    }
}

/* --- What is measured ---------------------------------------------------- */

static int call(const struct floor *f, char request, int *ret_fd)
{
    char reply[REPLY_BYTES];
    if (send_bytes(f->ends[0], request, REQUEST_BYTES, -1, 0) == 0 &&
        receive_bytes(f->ends[0], reply, sizeof reply, ret_fd) > 0)
        return 0;
    return failed("the server of the floor: %s", strerror(errno));
}

/* Attaches what request gets, and lets go of it. */
static int come_and_go(const struct floor *f, char request)
{
    struct stat st;
    int fd;
    if (call(f, request, &fd))
        return -1;
    void *p = fstat(fd, &st) ? MAP_FAILED
                             : mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return failed("mmap: %s", strerror(errno));
    munmap(p, SEGMENT_BYTES);
    return send_bytes(f->ends[0], GOODBYE, REQUEST_BYTES, -1, 0);
}

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / CALLS;
    return 0;
}

static int run_least(const struct floor *f, char request, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++)
        if (come_and_go(f, request))
            return -1;
    return finish(start, ret);
}

static int run_least_attach(void *arg, double *ret)
{
    return run_least(arg, PASS, ret);
}

static int run_least_locked(void *arg, double *ret)
{
    return run_least(arg, PASS_THREE, ret);
}

/* TOGETHER requests in one send, and one goodbye after all replies. */
static int run_least_many(void *arg, double *ret)
{
    const struct floor *f = arg;
    char requests[TOGETHER * REQUEST_BYTES] = {0};
    void *maps[TOGETHER][OBJECTS];
    int n = 0;
    for (int i = 0; i < TOGETHER; i++)
        requests[i * REQUEST_BYTES] = PASS_THREE;
    int64_t start = now_ns();
    for (; n < CALLS; n += TOGETHER) {
        if (send(f->ends[0], requests, sizeof requests, MSG_NOSIGNAL) != sizeof requests)
            return failed("the server of the floor: %s", strerror(errno));
        for (int i = 0; i < TOGETHER; i++)
            if (receive_three(f->ends[0], maps[i]))
                return -1;
        for (int i = 0; i < TOGETHER; i++)
            unmap_three(maps[i]);
        if (send_bytes(f->ends[0], GOODBYE, REQUEST_BYTES, -1, 0))
            return failed("the server of the floor: %s", strerror(errno));
    }
    *ret = (double)(now_ns() - start) / n;
    return 0;
}

static int run_least_create(void *arg, double *ret)
{
    int64_t start = now_ns();
    int unused;
    for (int i = 0; i < CALLS; i++)
        if (come_and_go(arg, MAKE) || call(arg, UNMAKE, &unused))
            return -1;
    return finish(start, ret);
}

static int run_attach_of(const struct floor *f, const char *name, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++) {
        struct shmview_segment *s;
        if (shmview_attach(f->bench->connection, name, SHMVIEW_WRITE, 0, &s) || shmview_detach(s))
            return failed("attach: %s", shmview_error_text());
    }
    return finish(start, ret);
}

static int run_attach_many(void *arg, double *ret)
{
    struct shmview_connection *c = ((const struct floor *)arg)->bench->connection;
    const char *names[TOGETHER];
    struct shmview_segment *segments[TOGETHER];
    int n = 0;
    for (int i = 0; i < TOGETHER; i++)
        names[i] = LOCKED;
    int64_t start = now_ns();
    for (; n < CALLS; n += TOGETHER)
        if (shmview_attach_many(c, names, TOGETHER, SHMVIEW_WRITE, 0, segments) ||
            shmview_detach_many(segments, TOGETHER))
            return failed("attach: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / n;
    return 0;
}

static int run_attach(void *arg, double *ret)
{
    return run_attach_of(arg, SEGMENT, ret);
}

static int run_attach_locked(void *arg, double *ret)
{
    return run_attach_of(arg, LOCKED, ret);
}

static const struct shmview_create_options bare = {.struct_bytes = sizeof bare,
                                                   .lifetime = SHMVIEW_CREATOR,
                                                   .flags = SHMVIEW_NO_LOCK},
                                           whole = {.struct_bytes = sizeof whole,
                                                    .lifetime = SHMVIEW_CREATOR};

static int run_create(void *arg, double *ret)
{
    struct shmview_connection *c = ((const struct floor *)arg)->bench->connection;
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++) {
        struct shmview_segment *s;
        if (shmview_create(c, "made", SEGMENT_BYTES, &bare, &s) || shmview_detach(s) ||
            shmview_remove(c, "made"))
            return failed("create: %s", shmview_error_text());
    }
    return finish(start, ret);
}

/* --- The rows ------------------------------------------------------------ */

static int floor_init(struct floor *f, struct bench *bench)
{
    *f = (struct floor){.bench = bench, .server = -1, .ends = {-1, -1}};
    instance_object_name(f->name, sizeof f->name, "floor");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->ends))
        return failed("socketpair: %s", strerror(errno));
    f->server = child_start(serve, f);
    close(f->ends[1]);
    f->ends[1] = -1;
    if (f->server < 0)
        return failed("fork: %s", strerror(errno));
    if (shmview_create(bench->connection, SEGMENT, SEGMENT_BYTES, &bare, &f->held[0]) ||
        shmview_create(bench->connection, LOCKED, SEGMENT_BYTES, &whole, &f->held[1]))
        return failed("create: %s", shmview_error_text());
    return 0;
}

static void floor_deinit(struct floor *f)
{
    child_end(f->server);
    for (int i = 0; i < 2; i++)
        if (f->ends[i] >= 0)
            close(f->ends[i]);
    shm_unlink(f->name);
    for (int i = 0; i < 2; i++) {
        if (f->held[i])
            shmview_remove(f->bench->connection, i ? LOCKED : SEGMENT);
        shmview_detach(f->held[i]);
    }
}

static void run_place(struct floor *f, enum place place)
{
    static const char least[] = "the kernel's least";
    struct contest attach = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 2,
        .list = {{"shmview", run_attach, f, {0}}, {least, run_least_attach, f, {0}}},
    };
    struct contest create = attach, locked = attach, many = attach;
    create.list[0].run = run_create;
    create.list[1].run = run_least_create;
    locked.list[0].run = run_attach_locked;
    locked.list[1].run = run_least_locked;
    many.list[0].run = run_attach_many;
    many.list[1].run = run_least_many;
    snprintf(attach.what, sizeof attach.what, "attach+detach, no lock, %s", place_name(place));
    snprintf(locked.what, sizeof locked.what, "attach+detach, %s", place_name(place));
    snprintf(many.what, sizeof many.what, "attach+detach, 16 at once, %s", place_name(place));
    snprintf(create.what, sizeof create.what, "create to remove, no lock, %s", place_name(place));
    place_process(&f->bench->cpus, place, 0, 0);
    place_process(&f->bench->cpus, place, 1, f->bench->instance->daemon);
    place_process(&f->bench->cpus, place, 1, f->server);
    contest_run(f->bench, &attach);
    contest_run(f->bench, &locked);
    contest_run(f->bench, &many);
    contest_run(f->bench, &create);
}

void bench_floor(struct bench *bench)
{
    static struct floor f;
    if (!bench_wants_placed(bench, "attach+detach, no lock") &&
        !bench_wants_placed(bench, "attach+detach") &&
        !bench_wants_placed(bench, "attach+detach, 16 at once") &&
        !bench_wants_placed(bench, "create to remove, no lock"))
        return;
    if (floor_init(&f, bench) == 0) {
        if (place_exists(&bench->cpus, PLACE_TWO))
            run_place(&f, PLACE_TWO);
        run_place(&f, PLACE_SAME);
    } else {
        bench->n_failed++;
    }
    floor_deinit(&f);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}
