/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_NAME "log"

/* --- The directory ------------------------------------------------------- */

/* Creates the directory in the first place that is writable and short enough. Returns 0 or -errno.
 */
static int make_directory(struct keeper *k)
{
    const char *const bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if (!bases[i] || bases[i][0] != '/' ||
            snprintf(k->directory, sizeof k->directory, "%s/shmview-run-XXXXXX", bases[i]) >=
                (int)sizeof k->directory)
            continue; /* too long for the path of a socket */
        if (mkdtemp(k->directory)) {
            snprintf(k->socket, sizeof k->socket, "%s/io.shmview", k->directory);
            return 0;
        }
    }
    return -errno;
}

/* Removes the files too: a daemon that was killed leaves its socket. */
static void remove_directory(const struct keeper *k)
{
    DIR *dir = opendir(k->directory);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(k->directory);
}

/* --- The daemon ---------------------------------------------------------- */

/* Runs in the child of the keeper. Removes everything that the daemon must not inherit: variables
 * of a service manager, descriptors, the signal mask, and the ignored signals. */
static _Noreturn void become_daemon(const struct keeper *k, const struct keeper_options *o,
                                    int ready, pid_t parent)
{
    static const char *const of_others[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS",
                                            "LISTEN_PID"};
    const char *config = o->config ? o->config : "/dev/null";
    char log[KEEPER_PATH + 8], number[16];
    sigset_t none;
    snprintf(log, sizeof log, "%s/" LOG_NAME, k->directory);
    snprintf(number, sizeof number, "%d", ready);
    int null = open("/dev/null", O_RDWR);
    int said = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* descriptors that shmviewctl inherited */
    if (null < 0 || said < 0 || fcntl(ready, F_SETFD, 0))
        _exit(EXIT_FAILED);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (!o->is_loud)
        dup2(said, STDERR_FILENO);
    for (size_t i = 0; i < ARRAY_LEN(of_others); i++)
        unsetenv(of_others[i]);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int n = 1; n < NSIG; n++)
        signal(n, SIG_DFL);
    /* on SIGINT the daemon removes its segments; on SIGTERM it would keep them for the next one */
    if (prctl(PR_SET_PDEATHSIG, SIGINT) || getppid() != parent)
        _exit(EXIT_FAILED);
    execlp(k->program, k->program, "--socket", k->socket, "--config", config, "--ready-fd", number,
           (char *)NULL);
    fprintf(stderr, "%s: %s\n", k->program, strerror(errno));
    _exit(EXIT_FAILED);
}

/* Starts the daemon, and blocks until it writes a byte to --ready-fd. Returns its pid, or -1. */
static pid_t start_daemon(const struct keeper *k, const struct keeper_options *o)
{
    int ends[2];
    char byte;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become_daemon(k, o, ends[1], parent);
    close(ends[1]);
    ssize_t n;
    do
        n = read(ends[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    close(ends[0]);
    if (n == 1)
        return pid;
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return -1;
}

/* Ends the daemon and waits for it. Returns whether it exited with 0, and so removed its segments.
 */
static bool end_daemon(pid_t pid)
{
    int status;
    kill(pid, SIGINT);
    kill(pid, SIGCONT); /* the command may have stopped it */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return status == 0;
}

/* --- The keeper ---------------------------------------------------------- */

/* The keeper process. Sends the daemon's pid, or -1, through `told`, and then waits until
 * shmviewctl closes `life` or dies. */
static _Noreturn void keep(const struct keeper *k, const struct keeper_options *o, int told,
                           int life)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
    char byte;
    setsid(); /* the signals of keys must reach only the command */
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    pid_t pid = start_daemon(k, o);
    bool is_heard = write(told, &pid, sizeof pid) == sizeof pid; /* -1: it did not start */
    close(told);
    if (pid < 0) {
        if (!is_heard)
            remove_directory(k);
        _exit(EXIT_FAILED); /* shmviewctl prints the log, and removes it */
    }
    while (read(life, &byte, 1) < 0 && errno == EINTR)
        continue;
    /* If the daemon was killed, its segments are left. A second daemon on the socket takes them
     * over, and removes them when it ends. */
    if (!end_daemon(pid) && (pid = start_daemon(k, o)) > 0)
        end_daemon(pid);
    remove_directory(k);
    _exit(EXIT_OK);
}

/* Prints the daemon's log, and the error. Returns the exit status. */
static int fail_start(struct context *c, const struct keeper *k)
{
    char path[KEEPER_PATH + 8], line[512] = "";
    snprintf(path, sizeof path, "%s/" LOG_NAME, k->directory);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        fclose(f);
    return fail_text(c,
                     "shmviewd (%s) does not start: its log is above; "
                     "'shmviewctl doctor' may show more",
                     k->program);
}

int keeper_start(struct context *c, const struct keeper_options *options, struct keeper *ret)
{
    pid_t daemon = -1;
    int life[2], told[2];
    int r = shmview_daemon_path(ret->program, sizeof ret->program);
    if (r)
        return fail_call(c, r);
    r = make_directory(ret);
    if (r)
        return fail_text(c,
                         "no directory can be made in $XDG_RUNTIME_DIR, $TMPDIR or /tmp: %s: "
                         "make one of them writable",
                         strerror(-r));
    if (pipe2(life, O_CLOEXEC) || pipe2(told, O_CLOEXEC)) {
        remove_directory(ret);
        return fail_text(c, "pipe: %s: raise the limit of descriptors (ulimit -n)",
                         strerror(errno));
    }
    fflush(NULL);
    ret->pid = fork();
    if (ret->pid == 0) {
        close(life[1]);
        close(told[0]);
        keep(ret, options, told[1], life[0]);
    }
    ret->life = life[1];
    close(life[0]);
    close(told[1]);
    if (ret->pid > 0 && read(told[0], &daemon, sizeof daemon) != sizeof daemon)
        daemon = -1;
    close(told[0]);
    if (daemon > 0) {
        ret->daemon_fd = (int)syscall(SYS_pidfd_open, daemon, 0);
        return 0;
    }
    int status = fail_start(c, ret);
    close(ret->life);
    if (ret->pid > 0)
        waitpid(ret->pid, NULL, 0);
    remove_directory(ret);
    return status;
}

/* Blocks until a process ends that is not a child of this one, so waitpid() cannot be used. */
static void await_stranger(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
}

void keeper_stop(struct context *c, struct keeper *k)
{
    int status = 0;
    close(k->life);
    while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status) { /* killed: then the kernel has sent SIGINT to the daemon */
        warn_text(c, "the process that looks after the instance was killed; cleaning up");
        if (k->daemon_fd >= 0)
            await_stranger(k->daemon_fd);
        remove_directory(k);
    }
    if (k->daemon_fd >= 0)
        close(k->daemon_fd);
}
