/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a session daemon. The daemon forks itself into the background. Its first process, which is
 * a child of this one, exits when the socket listens or the start has failed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

#define START_TIMEOUT_S 10
/* The longest time between two looks whether the first process has ended. Its end closes the pipe,
 * but not if a child that another thread forked at that moment has inherited it. */
#define LOOK_MS 20

extern char **environ;

/* Writes the path of a daemon beside this library, if there is one: in its own directory (a package
 * of Python), in the one of programs (an installation), or in the one of a build. The library must
 * find the daemon of its own version before another one in $PATH. The file must belong to root or
 * to this user, because a library may lie in a directory in which other users can create files.
 * Returns whether there is one. */
static bool beside_library(char *path, size_t bytes)
{
    static const char *const places[] = {"", "../bin/", "../../bin/", "../daemon/"};
    struct stat st;
    Dl_info library;
    if (!dladdr((void *)(uintptr_t)session_start, &library) || !library.dli_fname)
        return false;
    const char *slash = strrchr(library.dli_fname, '/');
    for (size_t i = 0; slash && i < ARRAY_LEN(places); i++) {
        int n = snprintf(path, bytes, "%.*s%sshmviewd", (int)(slash + 1 - library.dli_fname),
                         library.dli_fname, places[i]);
        if (n > 0 && (size_t)n < bytes && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
            (st.st_uid == 0 || st.st_uid == geteuid()) && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

int shmview_daemon_path(char *path, size_t bytes)
{
    const char *set = secure_getenv("SHMVIEW_DAEMON");
    bool is_set = set && set[0];
    char beside[PATH_MAX];
    bool is_beside = !is_set && beside_library(beside, sizeof beside);
    /* A set-uid program does not take a program from the $PATH of its caller. */
    bool is_trusted = secure_getenv("PATH") || !getenv("PATH");
    bool is_elsewhere = access(SHMVIEW_DAEMON_PATH, X_OK) && is_trusted;
    const char *found = is_set         ? set
                        : is_beside    ? beside
                        : is_elsewhere ? "shmviewd"
                                       : SHMVIEW_DAEMON_PATH;
    if (strlen(found) >= bytes)
        return fail(SHMVIEW_ERR_INVALID, "the path of the daemon has %zu bytes, %zu are the limit",
                    strlen(found), bytes - 1);
    strcpy(path, found);
    return 0;
}

/* Starts the program with error_fd as its standard error, and with the signal mask and handlers of
 * a fresh program. Returns 0 or an errno. */
static int spawn(const char *program, char *const argv[], int error_fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawn_file_actions_init(&actions);
    if (r)
        return r;
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, error_fd, 2);
        r = posix_spawnp(ret_pid, program, &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

/* The first process of a daemon. */
struct start {
    pid_t pid;
    int status;      /* of its end */
    bool has_status; /* a program that ignores or reaps SIGCHLD itself leaves us without */
    int fd;          /* its standard error */
    char *text;      /* the beginning of what it has printed there: n of at most bytes */
    size_t n, bytes;
};

/* More than text can hold is read and dropped, so that the program does not block. Returns whether
 * more can come. */
static bool read_some(struct start *s)
{
    char rest[256];
    bool room = s->n + 1 < s->bytes;
    ssize_t got =
        read(s->fd, room ? s->text + s->n : rest, room ? s->bytes - 1 - s->n : sizeof rest);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    s->n += room ? (size_t)got : 0;
    return true;
}

static bool has_ended(struct start *s)
{
    pid_t r = waitpid(s->pid, &s->status, WNOHANG);
    s->has_status = r == s->pid;
    return s->has_status || (r < 0 && errno != EINTR);
}

/* Waits until the process has ended, and reads its text. Returns an enum wait_outcome or
 * -SHMVIEW_ERR_INTERRUPTED. */
static int await_end(struct start *s)
{
    const int64_t deadline = now_ns() + (int64_t)START_TIMEOUT_S * 1000000000;
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    while (now_ns() < deadline) {
        if (has_ended(s)) {
            while (poll(&p, 1, 0) > 0 && read_some(s) && now_ns() < deadline)
                continue;
            return WAIT_READY;
        }
        if (poll(&p, 1, p.fd < 0 ? 1 : LOOK_MS) > 0 && !read_some(s))
            p.fd = -1; /* poll() only sleeps */
        int r = wait_go_on();
        if (r)
            return r;
    }
    return WAIT_EXPIRED;
}

/* Ends the process. It only waits for the daemon, which runs on and exits when idle. */
static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Describes the end of a program that has printed no line of text. */
static void describe_end(const char *program, struct start *s)
{
    if (!s->has_status)
        snprintf(s->text, s->bytes, "%s ended with an unknown status", program);
    else if (WIFSIGNALED(s->status))
        snprintf(s->text, s->bytes, "%s was ended by signal %d", program, WTERMSIG(s->status));
    else
        snprintf(s->text, s->bytes, "%s exited with status %d", program, WEXITSTATUS(s->status));
}

/* Returns 0 or -errno. */
static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    ends[0] = descriptor_lift(ends[0]);
    ends[1] = descriptor_lift(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    int r = ends[0] < 0 ? ends[0] : ends[1];
    close_fdp(&ends[0]);
    close_fdp(&ends[1]);
    return r;
}

int session_start(const char *path, char *text, size_t bytes)
{
    char program[PATH_MAX];
    char *argv[] = {program, (char *)"--session", (char *)"--socket", (char *)path, NULL};
    struct start s = {.text = text, .bytes = bytes};
    int ends[2];
    uint32_t epoch = process_epoch();
    int r = shmview_daemon_path(program, sizeof program);
    if (r) {
        snprintf(text, bytes, "$SHMVIEW_DAEMON is too long");
        return -1;
    }
    r = open_pipe(ends);
    if (r) {
        snprintf(text, bytes, "pipe: %s", strerror(-r));
        return -1;
    }
    r = spawn(program, argv, ends[1], &s.pid);
    close(ends[1]);
    if (r) {
        close(ends[0]);
        snprintf(text, bytes, "%s: %s", program, strerror(r));
        return -1;
    }
    s.fd = ends[0];
    r = await_end(&s);
    close(ends[0]);
    text[s.n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    /* unless the caller's function has forked: the daemon is a child of the parent */
    if (r != WAIT_READY && process_epoch() == epoch)
        end_process(s.pid);
    if (r == WAIT_EXPIRED)
        snprintf(text, bytes, "%s does not listen after %d s", program, START_TIMEOUT_S);
    if (r != WAIT_READY)
        return r < 0 ? r : -1;
    if (s.has_status && s.status == 0)
        return 0;
    if (!text[0])
        describe_end(program, &s);
    return s.has_status ? -1 : SESSION_UNKNOWN;
}
