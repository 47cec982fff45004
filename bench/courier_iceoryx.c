/* SPDX-License-Identifier: Apache-2.0 */
/* The courier iceoryx, and its daemon RouDi. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "courier.h"

#ifdef BENCH_ICEORYX

#include <iceoryx_binding_c/chunk.h>
#include <iceoryx_binding_c/log.h>
#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>
#include <iceoryx_binding_c/wait_set.h>

#define PAIRS   20000
#define WAIT_NS 10000000000

/* --- RouDi --------------------------------------------------------------- */

static void run_roudi(void *arg)
{
    const int *out = arg;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* so that killing the group of the rows leaves it time to clean up */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(null, 0);
    dup2(out[1], 1);
    dup2(null, 2);
    execlp("iox-roudi", "iox-roudi", "--log-level", "off", (char *)NULL);
}

/* Waits for the line by which it reports that it serves clients. */
static int await_ready(int fd)
{
    char text[4096];
    size_t n = 0;
    int64_t deadline = now_ns() + WAIT_NS;
    while (n < sizeof text - 1 && now_ns() < deadline) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got = poll(&p, 1, 1000) > 0 ? read(fd, text + n, sizeof text - 1 - n) : -1;
        if (got == 0)
            return -1;
        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
        if (strstr(text, "ready for clients"))
            return 0;
    }
    return -1;
}

static int log_fd = -1; /* open while it runs, so that it may go on writing */

int roudi_start(pid_t *ret_pid)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC))
        return failed("pipe: %s", strerror(errno));
    pid_t pid = child_start(run_roudi, out);
    close(out[1]);
    int r = await_ready(out[0]);
    if (r) {
        close(out[0]);
        roudi_end(pid);
        return failed("iox-roudi does not start; does another one run?");
    }
    log_fd = out[0];
    *ret_pid = pid;
    return 0;
}

void roudi_end(pid_t pid)
{
    int64_t deadline = now_ns() + WAIT_NS;
    if (pid <= 0)
        return;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (now_ns() > deadline) {
            child_end(pid);
            break;
        }
        usleep(1000);
    }
    if (log_fd >= 0)
        close(log_fd);
    log_fd = -1;
}

/* --- The courier --------------------------------------------------------- */

/* Each run has a service of its own, because RouDi takes more than a second to notice the end of a
 * process, and a publisher would serve its subscriber until then. */
static unsigned n_runs;

static int begin_iceoryx(struct courier *c)
{
    (void)c;
    n_runs++;
    return 0;
}

static void name_run(char ret_process[64], char ret_instance[32], char ret_wanted_by[16])
{
    snprintf(ret_process, 64, "shmview-bench-%d", (int)getpid());
    snprintf(ret_instance, 32, "run-%u", n_runs);
    snprintf(ret_wanted_by, 16, "bench");
}

static iox_pub_t open_publisher(uint64_t storage[1])
{
    char process[64], instance[32], service[16];
    iox_pub_options_t options;
    name_run(process, instance, service);
    iox_pub_options_init(&options);
    return iox_pub_init((iox_pub_storage_t *)storage, service, instance, "frame", &options);
}

static iox_sub_t open_subscriber(uint64_t storage[1])
{
    char process[64], instance[32], service[16];
    iox_sub_options_t options;
    name_run(process, instance, service);
    iox_sub_options_init(&options);
    options.queueCapacity = 16;
    return iox_sub_init((iox_sub_storage_t *)storage, service, instance, "frame", &options);
}

static void begin_runtime(void)
{
    char process[64], instance[32], service[16];
    name_run(process, instance, service);
    iox_set_loglevel(Iceoryx_LogLevel_Off);
    iox_runtime_init(process);
}

static int await_subscriber(iox_pub_t publisher)
{
    for (int64_t end = now_ns() + WAIT_NS; !iox_pub_has_subscribers(publisher);) {
        if (now_ns() > end)
            return failed("iceoryx does not connect");
        usleep(1000);
    }
    return 0;
}

static int open_iceoryx(struct courier *c, bool writes)
{
    begin_runtime();
    if (writes) {
        c->socket = open_publisher(&c->storage[0]);
        return await_subscriber(c->socket);
    }
    c->socket = open_subscriber(&c->storage[0]);
    if (c->polls)
        return 0;
    c->waits = iox_ws_init((iox_ws_storage_t *)&c->storage[1]);
    return iox_ws_attach_subscriber_event(c->waits, c->socket, SubscriberEvent_DATA_RECEIVED, 1,
                                          NULL) == WaitSetResult_SUCCESS
               ? 0
               : failed("iceoryx has no wait set");
}

/* The end of the process closes everything: a destructor reports it to RouDi. */
static void close_iceoryx(struct courier *c, bool writes)
{
    (void)c;
    (void)writes;
    exit(0);
}

static int send_iceoryx(struct courier *c)
{
    void *frame;
    if (iox_pub_loan_chunk(c->socket, &frame, COURIER_BYTES) != AllocationResult_SUCCESS)
        return failed("iceoryx has no chunk");
    memset(frame, 0, COURIER_BYTES);
    *(int64_t *)frame = now_ns();
    iox_pub_publish_chunk(c->socket, frame);
    return 0;
}

static int receive_iceoryx(struct courier *c, int64_t *ret_sent_ns)
{
    const void *frame;
    iox_notification_info_t info;
    uint64_t missed;
    while (iox_sub_take_chunk(c->socket, &frame) != ChunkReceiveResult_SUCCESS)
        if (!c->polls)
            iox_ws_wait(c->waits, &info, 1, &missed);
    *ret_sent_ns = *(const int64_t *)frame;
    iox_sub_release_chunk(c->socket, frame);
    return 0;
}

static const struct courier iceoryx = {
    .name = "iceoryx",
    .begin = begin_iceoryx,
    .open = open_iceoryx,
    .close = close_iceoryx,
    .send = send_iceoryx,
    .receive = receive_iceoryx,
};
const struct courier *const courier_iceoryx = &iceoryx;

/* --- Writer and reader in one thread ------------------------------------- */

static int pass_pairs(iox_pub_t publisher, iox_sub_t subscriber, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++) {
        void *frame;
        const void *got;
        if (iox_pub_loan_chunk(publisher, &frame, COURIER_BYTES) != AllocationResult_SUCCESS)
            return -1;
        iox_pub_publish_chunk(publisher, frame);
        if (iox_sub_take_chunk(subscriber, &got) != ChunkReceiveResult_SUCCESS)
            return -1;
        iox_sub_release_chunk(subscriber, got);
    }
    *ret = (double)(now_ns() - start) / PAIRS;
    return 0;
}

static void run_pairs(void *arg)
{
    uint64_t storage[2];
    begin_runtime();
    iox_pub_t publisher = open_publisher(&storage[0]);
    iox_sub_t subscriber = open_subscriber(&storage[1]);
    if (await_subscriber(publisher) == 0)
        pass_pairs(publisher, subscriber, arg);
    exit(0);
}

int run_iceoryx_pairs(void *arg, double *ret)
{
    (void)arg;
    double *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return failed("mmap: %s", strerror(errno));
    *shared = 0;
    n_runs++;
    fflush(NULL); /* the child ends by exit() */
    pid_t pid = child_start(run_pairs, shared);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *ret = *shared;
    munmap(shared, sizeof *shared);
    return *ret > 0 ? 0 : failed("iceoryx passes no frames");
}

#else

const struct courier *const courier_iceoryx = NULL;

int roudi_start(pid_t *ret_pid)
{
    (void)ret_pid;
    return -1;
}

void roudi_end(pid_t pid)
{
    (void)pid;
}

int run_iceoryx_pairs(void *arg, double *ret)
{
    (void)arg;
    (void)ret;
    return -1;
}

#endif
