/* SPDX-License-Identifier: Apache-2.0 */
/* Checks keeper.c: a keeper's process, to which the tests speak as daemons do. */
#include "daemon/memory/keeper.h"

#include "unit/kept.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <time.h>

#include "common/base/descriptor.h"
#include "unit/faults.h"

#define FAULT                                                                                      \
    "UNIT_FAULT" /* in the environment of the keeper: CALL:ERRNO, its first call fails             \
                  */

static int listener;
static struct thing things[3];
static const uint64_t numbers[] = {1, 1ull << 63, 3};

static char *fault;
static int fault_errno;

static void let_fail(void)
{
    faults_begin_call(fault, 1, fault_errno, false);
}

/* Not only malloc(), because a compiler may call calloc() in its place. */
static void let_memory_fail(void)
{
    faults_begin(FAULTS_MEMORY, 1);
}

/* The keeper's program. */
static int run(void)
{
    fault = getenv(FAULT);
    char *colon = fault ? strchr(fault, ':') : NULL;
    if (!colon)
        return keeper_run();
    *colon = '\0';
    fault_errno = atoi(colon + 1);
    if (strcmp(fault, "memory") == 0)
        faults_hook("accept4", let_memory_fail); /* not in the parent, whose end may need memory */
    else
        let_fail();
    return keeper_run();
}

/* Starts a keeper, in which a call fails. Returns the exit status of its parent. */
static int start(const char *failing)
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setenv(FAULT, failing, 1);
        dup2(listener, STDIN_FILENO);
        execl("/proc/self/exe", "keeper", KEEPER_ARGUMENT, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Begins with a keeper. Returns the connection of its daemon. */
static int begin(const char *failing)
{
    kept_adopt();
    listener = kept_listen(8);
    int daemon = kept_connect();
    ck_assert_int_ge(daemon, 0);
    ck_assert_int_eq(start(failing), 0);
    close_fdp(&listener);
    kept_expect(daemon, 0, NULL, NULL);
    for (unsigned i = 0; i < ARRAY_LEN(things); i++)
        things[i] = thing_new();
    return daemon;
}

static void keep(int daemon, unsigned i)
{
    ck_assert_int_eq(keeper_send(daemon, KEEPER_KEEP, numbers[i], things[i].fd, 0), 0);
}

static void forget(int daemon, unsigned i)
{
    ck_assert_int_eq(keeper_send(daemon, KEEPER_FORGET, numbers[i], -1, 0), 0);
}

static void expect_end(int daemon)
{
    struct keeper_message m;
    int fd;
    int r = keeper_receive(daemon, &m, &fd);
    ck_assert_msg(r == -EPIPE || r == -ECONNRESET, "%d", r);
    close(daemon);
}

/* Connects as the next daemon. The keeper has received all messages before when this returns. */
static int next_daemon(unsigned n)
{
    int daemon = kept_connect();
    ck_assert_int_ge(daemon, 0);
    kept_expect(daemon, n, numbers, things);
    return daemon;
}

/* The keeper holds the first n things, and must end without them. */
static void end(int daemon, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        forget(daemon, i);
    close(daemon);
    kept_reap();
    for (unsigned i = 0; i < ARRAY_LEN(things); i++) {
        thing_pass(&things[i]);
        ck_assert(thing_is_free(&things[i], 0));
        thing_end(&things[i]);
    }
    ck_assert_int_eq(kept_connect(), -ECONNREFUSED);
    unit_sweep(unit_directory(), "s");
}

START_TEST(things_outlive_their_daemon)
{
    int daemon = begin("");
    for (unsigned i = 0; i < 3; i++) {
        keep(daemon, i);
        thing_pass(&things[i]);
    }
    close(daemon);
    for (int i = 0; i < 2; i++) {
        daemon = next_daemon(3);
        close(daemon);
    }
    ck_assert(!thing_is_free(&things[0], 0));
    end(next_daemon(3), 3);
}
END_TEST

START_TEST(it_ends_with_its_daemon_if_it_holds_nothing)
{
    int daemon = begin("");
    end(daemon, 0);
    daemon = begin("");
    keep(daemon, 0);
    end(daemon, 1);
}
END_TEST

START_TEST(a_number_is_one_thing)
{
    int daemon = begin("");
    keep(daemon, 0);
    ck_assert_int_eq(keeper_send(daemon, KEEPER_KEEP, numbers[0], things[1].fd, 0), 0);
    forget(daemon, 2); /* which it does not hold */
    thing_pass(&things[1]);
    ck_assert(thing_is_free(&things[1], KEPT_WAIT_MS));
    int next = next_daemon(1);
    expect_end(daemon);
    thing_pass(&things[0]);
    forget(next, 0);
    ck_assert(thing_is_free(&things[0], KEPT_WAIT_MS));
    end(next, 0);
}
END_TEST

START_TEST(the_next_daemon_replaces_the_last)
{
    int daemon = begin("");
    keep(daemon, 0);
    int next = next_daemon(1);
    expect_end(daemon);
    keep(next, 1);
    int third = next_daemon(2);
    expect_end(next);
    end(third, 2);
}
END_TEST

START_TEST(other_kinds_are_ignored)
{
    const unsigned kinds[] = {0, KEEPER_READY, 99};
    int daemon = begin("");
    keep(daemon, 0);
    ck_assert_int_eq(keeper_send(daemon, KEEPER_HELD, numbers[1], things[1].fd, 0), 0);
    thing_pass(&things[1]);
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        ck_assert_int_eq(keeper_send(daemon, kinds[i], numbers[0], -1, 0), 0);
    ck_assert(thing_is_free(&things[1], KEPT_WAIT_MS));
    thing_end(&things[1]);
    things[1] = thing_new();
    keep(daemon, 1); /* over the same connection */
    int next = next_daemon(2);
    expect_end(daemon);
    end(next, 2);
}
END_TEST

/* Sends bytes of a message, and copies of the third thing. */
static void send_malformed(int daemon, unsigned kind, size_t bytes, unsigned n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control = {0};
    struct {
        struct keeper_message message;
        char more[8];
    } m = {.message = {.kind = kind, .number = numbers[2]}};
    struct iovec iov = {&m, bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        for (unsigned i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + i * sizeof(int), &things[2].fd, sizeof(int));
    }
    ck_assert_int_eq(sendmsg(daemon, &msg, MSG_NOSIGNAL), (ssize_t)bytes);
}

static const struct {
    unsigned kind;
    size_t bytes;
    unsigned n_fds;
} malformed[] = {
    {KEEPER_KEEP, sizeof(struct keeper_message) - 1, 1},
    {KEEPER_KEEP, sizeof(struct keeper_message) + 1, 1},
    {KEEPER_KEEP, 4, 0},
    {KEEPER_KEEP, sizeof(struct keeper_message), 0},
    {KEEPER_KEEP, sizeof(struct keeper_message), 2},
    {KEEPER_KEEP, sizeof(struct keeper_message), 4},
    {KEEPER_FORGET, sizeof(struct keeper_message), 1},
    {KEEPER_FORGET, sizeof(struct keeper_message), 2},
};

START_TEST(what_is_no_message_ends_the_connection)
{
    int daemon = begin("");
    keep(daemon, 0);
    for (unsigned i = 0; i < ARRAY_LEN(malformed); i++) {
        send_malformed(daemon, malformed[i].kind, malformed[i].bytes, malformed[i].n_fds);
        expect_end(daemon);
        thing_pass(&things[2]);
        ck_assert_msg(thing_is_free(&things[2], KEPT_WAIT_MS), "%u: a descriptor is left", i);
        thing_end(&things[2]);
        things[2] = thing_new();
        daemon = next_daemon(1);
    }
    end(daemon, 1);
}
END_TEST

START_TEST(a_daemon_that_has_gone_is_skipped)
{
    int daemon = begin("");
    keep(daemon, 0);
    keep(daemon, 1);
    pid_t pid = kept_stop();
    for (int i = 0; i < 3; i++)
        close(kept_connect());
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    keep(daemon, 2); /* its connection has stayed */
    int next = next_daemon(3);
    expect_end(daemon);
    end(next, 3);
}
END_TEST

START_TEST(another_user_gets_nothing)
{
    if (geteuid())
        return; /* only root can be another user */
    int daemon = begin("");
    keep(daemon, 0);
    ck_assert_int_eq(chmod(unit_directory(), 0711), 0);
    ck_assert_int_eq(chmod(kept_path(""), 0777), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    int other = kept_connect();
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_ge(other, 0);
    expect_end(other);
    keep(daemon, 1);
    int next = next_daemon(2);
    expect_end(daemon);
    end(next, 2);
}
END_TEST

START_TEST(without_memory_one_thing_is_not_kept)
{
    int daemon = begin("memory:");
    ck_assert_int_eq(keeper_send(daemon, KEEPER_KEEP, 9, things[2].fd, 0), 0);
    thing_pass(&things[2]);
    ck_assert(thing_is_free(&things[2], KEPT_WAIT_MS));
    keep(daemon, 0);
    int next = next_daemon(1);
    expect_end(daemon);
    end(next, 1);
}
END_TEST

/* Lets the keeper open no descriptor, or as many as the test may. */
static void limit_descriptors(bool none)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (none)
        limit.rlim_cur = 2; /* poll() needs as much for two descriptors */
    ck_assert_int_eq(prlimit(kept_pid(), RLIMIT_NOFILE, &limit, NULL), 0);
}

static int64_t processor_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    ck_assert_int_eq(clock_getcpuclockid(pid, &clock), 0);
    ck_assert_int_eq(clock_gettime(clock, &t), 0);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

START_TEST(without_a_descriptor_it_waits)
{
    int daemon = begin("");
    limit_descriptors(true);
    int waits = kept_connect();
    ck_assert_int_ge(waits, 0);
    int64_t used = processor_ns(kept_pid()), begun = now_ns();
    usleep(300000);
    used = processor_ns(kept_pid()) - used;
    ck_assert_msg(used < (now_ns() - begun) / 4, "%" PRId64 " ns", used);
    limit_descriptors(false);
    kept_expect(waits, 0, NULL, NULL);
    expect_end(daemon);
    end(waits, 0);
}
END_TEST

START_TEST(without_a_descriptor_one_thing_is_not_kept)
{
    int daemon = begin("");
    limit_descriptors(true);
    ck_assert_int_eq(keeper_send(daemon, KEEPER_KEEP, 9, things[2].fd, 0), 0);
    thing_pass(&things[2]);
    ck_assert(thing_is_free(&things[2], KEPT_WAIT_MS));
    limit_descriptors(false);
    keep(daemon, 0);
    keep(daemon, 1);
    int next = next_daemon(2);
    expect_end(daemon);
    end(next, 2);
}
END_TEST

START_TEST(a_lack_of_memory_delays_a_message)
{
    const char *const faults[] = {"recvmsg:12", "recvmsg:105"};
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
        int daemon = begin(faults[i]);
        keep(daemon, 0);
        int next = next_daemon(1);
        expect_end(daemon);
        end(next, 1);
    }
}
END_TEST

START_TEST(a_connection_that_cannot_be_accepted_waits)
{
    int daemon = begin("accept4:24");
    end(daemon, 0);
}
END_TEST

START_TEST(it_reports_that_it_cannot_start)
{
    const char *const faults[] = {"open:24", "fork:11"};
    kept_adopt();
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
        listener = kept_listen(8);
        int daemon = kept_connect();
        ck_assert_int_eq(start(faults[i]), 1);
        close(listener);
        expect_end(daemon);
    }
    kept_reap();
    unit_sweep(unit_directory(), "s");
}
END_TEST

START_TEST(it_holds_nothing_of_its_starter)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0); /* not close-on-exec */
    struct thing t = {.fd = ends[1], .watch = ends[0]};
    int daemon = begin("");
    thing_pass(&t);
    ck_assert(thing_is_free(&t, 0));
    thing_end(&t);
    end(daemon, 0);
}
END_TEST

START_TEST(messages)
{
    int ends[2], fd = 5;
    struct keeper_message m = {.number = 5};
    things[0] = thing_new();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert(keeper_is_own(ends[0]));
    faults_begin_call("getsockopt", 1, EIO, false);
    ck_assert(!keeper_is_own(ends[0]));
    ck_assert(faults_end());
    faults_begin_call("sendmsg", 1, EINTR, false);
    ck_assert_int_eq(keeper_send(ends[0], KEEPER_KEEP, 7, things[0].fd, 0), 0);
    ck_assert(faults_end());
    faults_begin_call("recvmsg", 1, EINTR, false);
    ck_assert_int_eq(keeper_receive(ends[1], &m, &fd), 0);
    ck_assert(faults_end());
    ck_assert_uint_eq(m.kind, KEEPER_KEEP);
    ck_assert_uint_eq(m.number, 7);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert(thing_is(&things[0], fd));
    fd = 5;
    faults_begin_call("recvmsg", 1, ENOMEM, false);
    ck_assert_int_eq(keeper_receive(ends[1], &m, &fd), -ENOMEM);
    ck_assert(faults_end());
    close(ends[0]);
    ck_assert_int_eq(keeper_receive(ends[1], &m, &fd), -EPIPE);
    ck_assert_int_eq(fd, 5); /* untouched */
    ck_assert_int_eq(keeper_send(ends[1], KEEPER_READY, 0, -1, 0), -EPIPE);
    close(ends[1]);
    thing_end(&things[0]);
}
END_TEST

KEPT_MAIN("keeper", run, UNIT_TEST(things_outlive_their_daemon),
          UNIT_TEST(it_ends_with_its_daemon_if_it_holds_nothing), UNIT_TEST(a_number_is_one_thing),
          UNIT_TEST(the_next_daemon_replaces_the_last), UNIT_TEST(other_kinds_are_ignored),
          UNIT_TEST(what_is_no_message_ends_the_connection),
          UNIT_TEST(a_daemon_that_has_gone_is_skipped), UNIT_TEST(another_user_gets_nothing),
          UNIT_TEST(without_memory_one_thing_is_not_kept), UNIT_TEST(without_a_descriptor_it_waits),
          UNIT_TEST(without_a_descriptor_one_thing_is_not_kept),
          UNIT_TEST(a_lack_of_memory_delays_a_message),
          UNIT_TEST(a_connection_that_cannot_be_accepted_waits),
          UNIT_TEST(it_reports_that_it_cannot_start), UNIT_TEST(it_holds_nothing_of_its_starter),
          UNIT_TEST(messages))
