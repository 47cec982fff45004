/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that the lock excludes, and that no living process loses it, whatever goes wrong.
 *
 * Workers take locks of a few segments and call the library while they hold them. In the
 * meantime their allocations, system calls, descriptors and connections fail; this process kills
 * workers and restarts the daemon. Each thread notes in the arena what it holds, and compares.
 * The run ends at the first violation. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exclusion/arena.h"
#include "exclusion/worker.h"

static const char help[] =
    "Usage: exclusion [OPTION]...\n"
    "Processes hold locks while their allocations, system calls, descriptors and connections\n"
    "fail, others are killed, and the daemon is started again. Two owners inside at once, or a\n"
    "living process that loses its lock, is a violation. $SHMVIEWD names the daemon.\n"
    "\n"
    "  --seconds N   how long (5)\n"
    "  --workers N   processes, 1 to 16 (5)\n"
    "  --threads N   of each, 1 to 4 (2)\n"
    "  --seed N      what is drawn; what happens depends on the machine as well\n"
    "  --calm        the daemon is not disturbed, and nobody is killed\n"
    "  --turns       every allocation and system call of every call fails in turn, while a lock\n"
    "                is held; then it ends\n"
    "  --plant       one worker goes inside without the lock: there must be a violation\n"
    "\n"
    "Exits with 0 without a violation, 1 with one, 2 if it could not begin.\n";

#define PATIENCE_NS   20000000000
#define TICK_NS       5000000
#define KILL_EVERY    40 /* ticks, on average */
#define RESTART_EVERY 80
#define HOG_EVERY     200
#define HOG_SOCKETS   200
#define AWAY_LONG_NS  1100000000 /* longer than a request waits for the daemon */

static struct {
    double seconds;
    bool calm, turns;
} choice = {.seconds = 5};

static char directory[] = "/tmp/shmview-exclusion.XXXXXX";
static char log_path[64];
static const char *program;
static pid_t daemon_pid;
static uint64_t random_state;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

/* --- The daemon ---------------------------------------------------------- */

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, arena->socket, sizeof address.sun_path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void start_daemon(void)
{
    daemon_pid = fork();
    if (daemon_pid == 0) {
        int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        prctl(PR_SET_PDEATHSIG, SIGINT);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execl(program, program, "--socket", arena->socket, "--config", "/dev/null", (char *)NULL);
        _exit(127);
    }
    int64_t deadline = now() + PATIENCE_NS;
    int fd;
    while ((fd = dial()) < 0 && now() < deadline)
        pause_ns(1000000);
    if (fd < 0)
        violation("the daemon does not start");
    else
        close(fd);
}

static void restart_daemon(void)
{
    int signal_number = draw(&random_state, 2) ? SIGKILL : SIGTERM, status;
    atomic_fetch_add(&arena->unrest, 1);
    kill(daemon_pid, signal_number);
    waitpid(daemon_pid, &status, 0);
    /* a daemon that has just begun to listen may not handle SIGTERM yet */
    if (status && (!WIFSIGNALED(status) || WTERMSIG(status) != signal_number))
        violation("the daemon ended with status 0x%x", (unsigned)status);
    pause_ns(draw(&random_state, 16) ? (int64_t)draw(&random_state, 20000000) : AWAY_LONG_NS);
    start_daemon();
    atomic_fetch_add(&arena->unrest, 1);
    arena_count(COUNT_RESTARTS);
}

/* Fills the daemon's buffers with incomplete requests, as another process of this user can. */
static void be_hog(void)
{
    static char bytes[1000000];
    static int fds[HOG_SOCKETS];
    memset(bytes, ' ', sizeof bytes);
    atomic_fetch_add(&arena->unrest, 1);
    for (int i = 0; i < HOG_SOCKETS; i++) {
        fds[i] = dial();
        size_t n = i < HOG_SOCKETS / 2 ? sizeof bytes : 1000;
        for (size_t at = 0; fds[i] >= 0 && at < n;) {
            ssize_t sent = send(fds[i], bytes, n - at, MSG_NOSIGNAL);
            if (sent <= 0)
                break;
            at += (size_t)sent;
        }
    }
    pause_ns((int64_t)draw(&random_state, 100000000));
    for (int i = 0; i < HOG_SOCKETS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pause_ns(100000000); /* until the daemon has noticed the ends */
    atomic_fetch_add(&arena->unrest, 1);
    arena_count(COUNT_HOGS);
}

/* --- Workers ------------------------------------------------------------- */

static void spawn(unsigned party)
{
    uint64_t seed = draw(&random_state, 1 << 30);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        worker_run(party, seed);
    }
    atomic_store(&arena->pid[party], pid);
}

static void kill_worker(unsigned party)
{
    pid_t pid = atomic_load(&arena->pid[party]), child;
    oracle_doom(party);
    oracle_doom(party + WORKERS_MAX);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    child = atomic_load(&arena->pid[party + WORKERS_MAX]);
    if (child > 0 && kill(child, SIGKILL) == 0)
        waitpid(child, NULL, 0); /* this process has adopted it */
    oracle_wipe(party);
    oracle_wipe(party + WORKERS_MAX);
    arena_count(COUNT_DEATHS);
}

/* Reports a violation for each worker that has ended too early. */
static void look_for_crashes(void)
{
    int status;
    for (unsigned i = 0; i < arena->n_workers; i++) {
        pid_t pid = atomic_load(&arena->pid[i]);
        if (!atomic_load(&arena->over) && waitpid(pid, &status, WNOHANG) == pid &&
            !atomic_load(&arena->over))
            violation("worker %u ended with status 0x%x", i, (unsigned)status);
    }
}

static void await_workers(void)
{
    int64_t deadline = now() + 2 * PATIENCE_NS;
    for (unsigned i = 0; i < arena->n_workers; i++) {
        pid_t pid = atomic_load(&arena->pid[i]), r;
        int status = 0;
        while ((r = waitpid(pid, &status, WNOHANG)) == 0 && now() < deadline)
            pause_ns(1000000);
        if (r == pid && status)
            violation("worker %u ended with status 0x%x", i, (unsigned)status);
        if (r == 0) {
            violation("worker %u does not come to its end", i);
            kill_worker(i);
        }
    }
}

/* --- From beginning to end ----------------------------------------------- */

static void tick(void)
{
    look_for_crashes();
    pause_ns(TICK_NS);
    if (choice.calm || atomic_load(&arena->over))
        return;
    if (draw(&random_state, KILL_EVERY) == 0) {
        unsigned party = (unsigned)draw(&random_state, arena->n_workers);
        kill_worker(party);
        spawn(party);
    }
    if (draw(&random_state, RESTART_EVERY) == 0)
        restart_daemon();
    if (draw(&random_state, HOG_EVERY) == 0)
        be_hog();
}

static int found(void)
{
    int status = 1;
    pid_t pid = fork(); /* this process never uses the library: its children start clean */
    if (pid == 0)
        _exit(worker_found() ? 1 : 0);
    waitpid(pid, &status, 0);
    return status ? -1 : 0;
}

static void take_turns(void)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        turns_run();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (status)
        violation("the process that takes turns ended with status 0x%x", (unsigned)status);
}

static void run_workers(void)
{
    for (unsigned i = 0; i < arena->n_workers; i++)
        spawn(i);
    int64_t end = now() + (int64_t)(choice.seconds * 1e9);
    while (now() < end && !atomic_load(&arena->over))
        tick();
    atomic_store(&arena->over, true);
    await_workers();
}

static void stop_daemon(void)
{
    int status;
    kill(daemon_pid, SIGINT);
    waitpid(daemon_pid, &status, 0);
    if (status)
        violation("the daemon ended with status 0x%x", (unsigned)status);
}

static int report(void)
{
    static const char *const names[] = {
#define X(name, text) text,
        COUNT_LIST(X)
#undef X
    };
    for (int i = 0; i < N_COUNTS; i++)
        printf("%s%lu %s", i ? ", " : "", atomic_load(&arena->count[i]), names[i]);
    printf("\n%u violations%s%s\n", atomic_load(&arena->n_violations),
           arena->n_violations ? "; the first: " : "", arena->first);
    return arena->n_violations ? 1 : 0;
}

static void clean_up(void)
{
    static const char *const names[] = {"socket", "socket.lock", "socket.registry",
                                        "socket.registry-lock", "log"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

static int read_choice(int argc, char **argv)
{
    static const struct option table[] = {
        {"seconds", required_argument, NULL, 's'},
        {"workers", required_argument, NULL, 'w'},
        {"threads", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 'r'},
        {"calm", no_argument, NULL, 'c'},
        {"plant", no_argument, NULL, 'p'},
        {"turns", no_argument, NULL, 'T'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int o; (o = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (o == 's')
            choice.seconds = strtod(optarg, NULL);
        else if (o == 'w')
            arena->n_workers = (unsigned)strtoul(optarg, NULL, 10);
        else if (o == 't')
            arena->n_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (o == 'r')
            arena->seed = strtoul(optarg, NULL, 0);
        else if (o == 'c')
            choice.calm = true;
        else if (o == 'T')
            choice.turns = true;
        else if (o == 'p')
            arena->plant = true;
        else
            return fputs(help, o == 'h' ? stdout : stderr), o == 'h' ? 0 : 2;
    }
    program = getenv("SHMVIEWD");
    if (!program || arena->n_workers < 1 || arena->n_workers > WORKERS_MAX ||
        arena->n_threads < 1 || arena->n_threads > THREADS_MAX)
        return fputs(help, stderr), 2;
    return -1;
}

int main(int argc, char **argv)
{
    if (arena_open())
        return 2;
    arena->n_workers = 5;
    arena->n_threads = 2;
    arena->seed = (uint64_t)now();
    int status = read_choice(argc, argv);
    if (status != -1)
        return status;
    random_state = arena->seed | 1;
    if (!mkdtemp(directory))
        return 2;
    snprintf(arena->socket, sizeof arena->socket, "%s/socket", directory);
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start_daemon();
    if (found()) {
        stop_daemon();
        return 2;
    }
    if (choice.turns)
        take_turns();
    else
        run_workers();
    stop_daemon();
    status = report();
    if (status == 0 || arena->plant)
        clean_up();
    else
        printf("seed %lu; the daemon's log is in %s\n", arena->seed, directory);
    return status;
}
