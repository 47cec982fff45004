/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/command.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signals that ask a program to end, or to do something. Not SIGTSTP and SIGCONT: the terminal
 * sends them to the command too, and this process must stop and continue with it. */
static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static void watched_signals(sigset_t *ret)
{
    sigemptyset(ret);
    for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
        sigaddset(ret, forwarded[i]);
    sigaddset(ret, SIGCHLD);
}

/* Runs in the child. The parent may have died before prctl(): then no signal will come, and the
 * child must not run without it. */
static _Noreturn void become(struct context *c, const struct command *command, pid_t parent,
                             const sigset_t *mask)
{
    if (prctl(PR_SET_PDEATHSIG, command->death_signal) || getppid() != parent)
        _exit(EXIT_CANNOT_RUN); /* no process is left that reads the reason */
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command->argv[0], command->argv);
    int status = errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
    warn_text(c, "cannot run '%s': %s: look at its name, its mode and $PATH", command->argv[0],
              strerror(errno));
    _exit(status);
}

/* Forwards signals to pid until it has ended. Returns the status of waitpid(). */
static int await_end(pid_t pid, const sigset_t *watched)
{
    siginfo_t info;
    int status;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        int n = sigwaitinfo(watched, &info);
        /* SI_KERNEL: a key; the terminal sends its signal to the whole foreground group */
        if (n > 0 && n != SIGCHLD && info.si_code != SI_KERNEL)
            kill(pid, n);
    }
    return status;
}

int command_run(struct context *c, const struct command *command, int *ret_signal)
{
    sigset_t watched, mask;
    pid_t parent = getpid();
    fflush(NULL); /* otherwise a child that fails would print the buffered text again */
    watched_signals(&watched);
    /* while SIGCHLD is ignored, the kernel drops the exit status of a child */
    void (*child_handler)(int) = signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &watched, &mask);
    *ret_signal = 0;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGCHLD, child_handler);
        become(c, command, parent, &mask);
    }
    int status = pid < 0 ? -1 : await_end(pid, &watched);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signal(SIGCHLD, child_handler);
    if (pid < 0)
        return fail_text(c, "cannot run '%s': %s: look at the limit of processes (ulimit -u)",
                         command->argv[0], strerror(saved));
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    *ret_signal = WTERMSIG(status);
    return EXIT_BY_SIGNAL(*ret_signal);
}
