/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/keeping.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
/* How long a call waits for a place that accepts nothing, until one has waited in vain. Shorter
 * than the time that an attach may take, and longer than a burst of creations keeps a keeper busy.
 */
#define BUSY_MS 20
/* How long no keeper is started after one could not be started, because each attempt takes the
 * caller some milliseconds. */
#define START_PAUSE_NS 1000000000
/* How often the next daemon looks for a keeper that has closed the connection. One look can find a
 * keeper that is about to end. */
#define LOOKS 3

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
static bool has_lost;    /* a keeper has ended, and keeping_has_lost() has not returned that */
static bool is_stuck;    /* a call has waited in vain, and none has succeeded since */
static bool told_stuck;  /* as the log has it */
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
    bool stuck = is_stuck, changed = stuck != told_stuck;
    failure = 0;
    told_stuck = stuck;
    pthread_mutex_unlock(&lock);
    const char *who = place == MANAGER ? "the service manager" : "the keeper of sealed segments";
    if (error)
        log_warning("the memory of sealed segments cannot be kept for the next daemon: %s",
                    strerror(-error));
    if (changed && stuck)
        log_warning("%s accepts nothing: new sealed segments would end with this daemon", who);
    else if (changed)
        log_event(LOG_INFO, &(struct log_event){.kind = LOG_PLAIN}, "%s accepts descriptors again",
                  who);
}

/* --- The keeper ----------------------------------------------------------- */

/* Connects to the keeper. Returns a descriptor, or -errno; -EAGAIN if the keeper hangs, and other
 * connections fill its queue; -EPERM if it is another user's. */
static int reach(void)
{
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval wait = {.tv_sec = KEEPER_WAIT_S};
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* also of connect() */
    while (connect(fd, (const struct sockaddr *)&address, sizeof address))
        if (errno != EINTR)
            return -errno;
    return keeper_is_own(fd) ? steal_fd(&fd) : -EPERM;
}

/* Whether the error of reach() shows nothing about the keeper, so that a later attempt may find
 * it. */
static bool is_passing(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS ||
           error == -EAGAIN;
}

/* Whether the error is that the keeper has closed the connection. */
static bool is_end(int error)
{
    return error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN;
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
    if (r == 0 && message.kind != KEEPER_READY) {
        close_fdp(&object);
        r = -EPROTO;
    }
    return r;
}

static int take_none(int fd, uint64_t number)
{
    (void)number;
    close(fd);
    return 0;
}

/* Returns whether a keeper that has closed the connection has ended. One that could not send, for
 * example because it lacked memory, closes it too, and still holds all objects. */
static bool is_gone(void)
{
    struct keeper_message message;
    int r = -EPIPE, object;
    for (int i = 0; i < LOOKS && is_end(r); i++) {
        CLEANUP_FD int fd = reach();
        r = fd < 0 ? fd : keeper_receive(fd, &message, &object);
        if (fd < 0)
            return !is_passing(fd);
        if (r == 0)
            close_fdp(&object);
    }
    return false;
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

/* Starts a keeper in place of one that has ended, and connects to it. Returns 0 or -errno, after
 * which no socket is left. */
static int start(void)
{
    CLEANUP_FD int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CLEANUP_FD int fd = -1;
    if (listener < 0)
        return -errno;
    unlink(address.sun_path); /* this daemon has the lock of the instance */
    int r = bind(listener, (const struct sockaddr *)&address, sizeof address) || listen(listener, 8)
                ? -errno
                : 0;
    if (r == 0)
        r = fd = reach(); /* first, because a keeper without a daemon ends */
    if (r >= 0)
        r = spawn(listener);
    close_fdp(&listener); /* so that the end of the keeper ends the connection */
    if (r == 0)
        r = read_held(fd, take_none);
    if (r == 0)
        keeper = steal_fd(&fd);
    else
        unlink(address.sun_path);
    return r;
}

/* Returns whether the keeper has ended. The caller holds the lock. */
static bool has_ended(void)
{
    struct pollfd p = {.fd = keeper};
    return keeper >= 0 && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

static void lose_keeper(void)
{
    close_fdp(&keeper);
    has_lost = was_started;
    n_kept = 0;
}

/* Sends to the keeper, if there is one; waits ms milliseconds at most if its queue is full. Returns
 * 0; -EAGAIN if it stayed full; or another -errno. If the keeper has ended, there is none any
 * longer; after a lack of memory it stays, because another one could not take from it what it
 * holds. */
static int tell(enum keeper_kind kind, uint64_t number, int fd, int ms)
{
    struct pollfd p = {.fd = keeper, .events = POLLOUT};
    if (keeper < 0)
        return -ENOTCONN;
    int r = keeper_send(keeper, kind, number, fd, MSG_DONTWAIT);
    if (r == -EAGAIN && ms && poll(&p, 1, ms) > 0)
        r = keeper_send(keeper, kind, number, fd, MSG_DONTWAIT);
    if (is_end(r))
        lose_keeper();
    return r;
}

static int offer_keeper(int fd, uint64_t number, int ms)
{
    static int64_t failed_ns; /* when the last attempt to start one has failed; 0: never */
    static int last_failure;
    int r = tell(KEEPER_KEEP, number, fd, ms);
    if (keeper >= 0)
        return r;
    if (failed_ns && now_ns() - failed_ns < START_PAUSE_NS)
        return last_failure;
    r = last_failure = start();
    failed_ns = r ? now_ns() : 0;
    was_started = was_started || r == 0;
    return r ? r : tell(KEEPER_KEEP, number, fd, BUSY_MS);
}

/* --- Both ----------------------------------------------------------------- */

/* Takes over from the keeper. Returns 0 or -errno. */
static int recover_kept(int (*take)(int fd, uint64_t number))
{
    CLEANUP_FD int fd = reach();
    if (fd == -ECONNREFUSED)
        unlink(address.sun_path); /* of a keeper that has ended */
    if (fd < 0)
        return is_passing(fd) ? fd : 0;
    /* take() may forget objects, and so may close this one. What the keeper has sent stays in fd */
    keeper = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (keeper < 0)
        return -errno;
    was_started = true;
    int r = read_held(fd, take);
    if (is_end(r) && is_gone()) {
        unlink(address.sun_path);
        lose_keeper();
        r = 0;
    }
    return r;
}

int keeping_recover(int (*take)(int fd, uint64_t number))
{
    if (place != KEEPER)
        return place == MANAGER ? notify_each_stored(take) : 0;
    int r = recover_kept(take);
    if (r) { /* the keeper stays as it is for a later daemon */
        close_fdp(&keeper);
        n_kept = 0;
        was_started = has_lost = false;
    }
    return r;
}

/* Notes the result of a call, and returns it. */
static int note(int r)
{
    if (r == -ETOOMANYREFS) /* too many descriptors are under way */
        r = -EAGAIN;
    if (r == 0 || r == -EAGAIN)
        is_stuck = r != 0;
    else
        fail(r);
    return r;
}

int keeping_offer(int fd, uint64_t number)
{
    if (place == NOWHERE)
        return 0;
    pthread_mutex_lock(&lock);
    int ms = is_stuck ? 0 : BUSY_MS;
    int r =
        place == MANAGER ? notify_store(fd, number, (unsigned)ms) : offer_keeper(fd, number, ms);
    n_kept += r == 0;
    r = note(r);
    pthread_mutex_unlock(&lock);
    return r;
}

int keeping_forget(uint64_t number)
{
    if (place == NOWHERE)
        return 0;
    pthread_mutex_lock(&lock);
    int ms = is_stuck ? 0 : BUSY_MS;
    int r = place == MANAGER ? notify_unstore(number, (unsigned)ms)
                             : tell(KEEPER_FORGET, number, -1, ms);
    n_kept -= r == 0 && n_kept > 0;
    r = place == KEEPER && keeper < 0 ? 0 : note(r); /* what a keeper held has ended with it */
    pthread_mutex_unlock(&lock);
    return r;
}

bool keeping_has_lost(void)
{
    pthread_mutex_lock(&lock);
    if (has_ended())
        lose_keeper();
    bool lost = has_lost;
    has_lost = false;
    pthread_mutex_unlock(&lock);
    return lost;
}

void keeping_end(void)
{
    if (keeper >= 0 && n_kept == 0)
        unlink(address.sun_path);
    close_fdp(&keeper);
    place = NOWHERE;
}
