/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/keeping.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/memory/keeper.h"

#define KEEPER_WAIT_S 5

static enum {
    NOWHERE,
    MANAGER,
    KEEPER,
} place;

/* Allocations on threads offer objects, too. The lock protects the rest. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int keeper = -1;  /* the connection */
static uint64_t n_kept;  /* objects */
static bool was_started; /* a keeper was there, also if it has ended */
static int failure;      /* the first one, which the loop has not logged yet; 0: none */
static bool has_failed;  /* also if it was logged */

void keeping_init(const char *socket)
{
    size_t n = sizeof address.sun_path;
    bool fits = (size_t)snprintf(address.sun_path, n, "%s.keeper", socket) < n;
    place = notify_is_managed() ? MANAGER : fits ? KEEPER : NOWHERE;
    if (place == NOWHERE)
        log_warning("sealed segments will end with this daemon: the path of the socket is too long "
                    "for that of a keeper");
}

/* Notes the first failure for keeping_report(), because other threads must not log. */
static void fail(int error)
{
    if (!has_failed)
        failure = error;
    has_failed = true;
}

void keeping_report(void)
{
    pthread_mutex_lock(&lock);
    int error = failure;
    failure = 0;
    pthread_mutex_unlock(&lock);
    if (error)
        log_warning("the memory of sealed segments cannot be kept for the next daemon: %s",
                    strerror(-error));
}

/* --- The keeper ----------------------------------------------------------- */

/* Connects to the keeper. Returns a descriptor, or -errno; -EPERM if it is another user's. */
static int reach(void)
{
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval wait = {.tv_sec = KEEPER_WAIT_S};
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address))
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    return keeper_is_own(fd) ? steal_fd(&fd) : -EPERM;
}

/* Reads up to READY, and passes descriptors to take(). Returns 0 or -errno. */
static int read_held(int fd, int (*take)(int fd, uint64_t number))
{
    struct keeper_message message;
    int r, object;
    while ((r = keeper_receive(fd, &message, &object)) == 0 && message.kind == KEEPER_HELD) {
        n_kept++;
        int error = take(object, message.number);
        if (error)
            return error;
    }
    return r;
}

/* Runs the program of this process as a keeper with the listening socket as its standard input, and
 * waits until it is in the background. Returns 0 or -errno. */
static int spawn(int listener)
{
    static char program[] = "shmviewd", argument[] = KEEPER_ARGUMENT;
    char *argv[] = {program, argument, NULL}, *environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid;
    int status;
    sigemptyset(&none);
    int r = posix_spawn_file_actions_init(&actions);
    if (r)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigmask(&attributes, &none);
        r = posix_spawn_file_actions_adddup2(&actions, listener, STDIN_FILENO);
        if (r == 0)
            r = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (r)
        return -r;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int take_none(int fd, uint64_t number)
{
    (void)number;
    close(fd);
    return 0;
}

/* Starts a keeper in place of one that has ended, and connects to it. Returns 0 or -errno. */
static int start(void)
{
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0)
        return -errno;
    unlink(address.sun_path); /* this daemon has the lock of the instance */
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) || listen(listener, 8))
        return -errno;
    CLEANUP_FD int fd = reach(); /* first, because a keeper without a daemon ends */
    int r = fd < 0 ? fd : spawn(listener);
    if (r == 0)
        r = read_held(fd, take_none);
    if (r == 0)
        keeper = steal_fd(&fd);
    return r;
}

/* Sends to the keeper; `starts`: starts one if there is none. *ret_lost becomes true if an earlier
 * one has ended. Returns 0 or -errno. */
static int tell(enum keeper_kind kind, uint64_t number, int fd, bool starts, bool *ret_lost)
{
    int r = keeper >= 0 ? keeper_send(keeper, kind, number, fd) : -ENOTCONN;
    if (r == 0 || !starts)
        return r;
    close_fdp(&keeper);
    r = start();
    if (r)
        return r;
    *ret_lost = was_started;
    was_started = true;
    return keeper_send(keeper, kind, number, fd);
}

/* --- Both ----------------------------------------------------------------- */

int keeping_recover(int (*take)(int fd, uint64_t number))
{
    if (place == MANAGER)
        return notify_each_stored(take);
    keeper = place == KEEPER ? reach() : -ENOENT;
    if (keeper == -ECONNREFUSED)
        unlink(address.sun_path); /* of a keeper that has ended */
    if (keeper < 0)
        return keeper == -EMFILE || keeper == -ENFILE || keeper == -ENOMEM ? keeper : 0;
    int r = read_held(keeper, take);
    was_started = r == 0;
    if (r)
        close_fdp(&keeper);
    return r;
}

bool keeping_offer(int fd, uint64_t number)
{
    bool lost = false;
    if (place == NOWHERE)
        return false;
    pthread_mutex_lock(&lock);
    int r =
        place == MANAGER ? notify_store(fd, number) : tell(KEEPER_KEEP, number, fd, true, &lost);
    n_kept++;
    if (r)
        fail(r);
    pthread_mutex_unlock(&lock);
    return lost;
}

void keeping_forget(uint64_t number)
{
    if (place == NOWHERE)
        return;
    pthread_mutex_lock(&lock);
    int r =
        place == MANAGER ? notify_unstore(number) : tell(KEEPER_FORGET, number, -1, false, NULL);
    n_kept -= n_kept > 0;
    if (r)
        fail(r);
    pthread_mutex_unlock(&lock);
}

void keeping_end(void)
{
    if (keeper >= 0 && n_kept == 0)
        unlink(address.sun_path);
    close_fdp(&keeper);
    place = NOWHERE;
}
