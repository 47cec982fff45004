/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that keep descriptors, and things to be kept: a pipe, whose reading end shows whether
 * somebody still holds the writing end. A test that includes this has KEPT_MAIN() instead of
 * UNIT_MAIN(), because the test's program is the keeper's, too. */
#ifndef UNIT_KEPT_H
#define UNIT_KEPT_H

#include "unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/base/util.h"
#include "daemon/memory/keeper.h"

#define KEPT_WAIT_MS 20000

struct thing {
    int fd, watch;
};

static inline struct thing thing_new(void)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    return (struct thing){.fd = ends[1], .watch = ends[0]};
}

/* Closes the test's own descriptor; the copies of others stay. */
static inline void thing_pass(struct thing *t)
{
    close_fdp(&t->fd);
}

/* Returns whether nobody holds the thing after ms milliseconds at most. */
static inline bool thing_is_free(const struct thing *t, int ms)
{
    struct pollfd p = {.fd = t->watch};
    return poll(&p, 1, ms) > 0 && p.revents & POLLHUP;
}

static inline void thing_end(struct thing *t)
{
    close_fdp(&t->fd);
    close_fdp(&t->watch);
}

/* Whether the descriptor is one of the thing; closes it. */
static inline bool thing_is(const struct thing *t, int fd)
{
    struct stat a, b;
    bool same = fstat(fd, &a) == 0 && fstat(t->watch, &b) == 0 && a.st_ino == b.st_ino;
    close(fd);
    return same;
}

/* --- The place ------------------------------------------------------------ */

static inline const char *kept_socket(void)
{
    static char path[80];
    snprintf(path, sizeof path, "%s/s", unit_directory());
    return path;
}

/* Returns the path of the keeper's socket with a suffix. It is valid until the next call. */
static inline const char *kept_path(const char *suffix)
{
    static char path[108];
    snprintf(path, sizeof path, "%s.keeper%s", kept_socket(), suffix);
    return path;
}

static inline struct sockaddr_un kept_address(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, kept_path(""));
    return address;
}

static inline int kept_listen(int n)
{
    struct sockaddr_un address = kept_address();
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, n), 0);
    return fd;
}

/* Connects as a daemon does. Returns -errno if nobody listens. */
static inline int kept_connect(void)
{
    struct sockaddr_un address = kept_address();
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval wait = {.tv_sec = KEPT_WAIT_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

/* Asserts that exactly the things with these numbers come, in any order, and then READY. */
static inline void kept_expect(int socket, unsigned n, const uint64_t *numbers,
                               const struct thing *things)
{
    struct keeper_message m;
    unsigned found = 0;
    int fd;
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(keeper_receive(socket, &m, &fd), 0);
        ck_assert_uint_eq(m.kind, KEEPER_HELD);
        for (unsigned j = 0; j < n; j++)
            if (m.number == numbers[j] && !(found & 1u << j)) {
                ck_assert(thing_is(&things[j], fd));
                found |= 1u << j;
                break;
            }
    }
    ck_assert_uint_eq(found, (1u << n) - 1);
    ck_assert_int_eq(keeper_receive(socket, &m, &fd), 0);
    ck_assert_uint_eq(m.kind, KEEPER_READY);
    ck_assert_uint_eq(m.number, n);
}

/* --- The process ---------------------------------------------------------- */

/* A keeper's parent ends, so that the keeper becomes a child of the test. */
static inline void kept_adopt(void)
{
    unsetenv("NOTIFY_SOCKET");
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

/* Returns the only keeper that runs; 0: none. */
static inline pid_t kept_pid(void)
{
    pid_t found = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], state;
        int pid = atoi(e->d_name), parent = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = pid > 0 ? fopen(path, "re") : NULL;
        if (f && fscanf(f, "%*d (%*[^)]) %c %d", &state, &parent) == 2 && parent == getpid() &&
            state != 'Z') {
            ck_assert_int_eq(found, 0);
            found = pid;
        }
        if (f)
            fclose(f);
    }
    closedir(d);
    return found;
}

/* Waits until all keepers have ended. */
static inline void kept_reap(void)
{
    int64_t until = now_ns() + KEPT_WAIT_MS * INT64_C(1000000);
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
        ck_assert_msg(now_ns() < until, "a keeper does not end");
        usleep(200);
    }
    ck_assert_int_eq(errno, ECHILD);
}

static inline void kept_kill(void)
{
    pid_t pid = kept_pid();
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static inline pid_t kept_stop(void)
{
    int status;
    pid_t pid = kept_pid();
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    return pid;
}

/* run() is the keeper's program. */
#define KEPT_MAIN(name, run, ...)                                                                  \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        const struct unit_test tests[] = {__VA_ARGS__};                                            \
        if (argc == 2 && strcmp(argv[1], KEEPER_ARGUMENT) == 0)                                    \
            return run();                                                                          \
        return unit_main(name, tests, sizeof tests / sizeof tests[0]);                             \
    }

#endif
