/* SPDX-License-Identifier: Apache-2.0 */
#include "support/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"

/* --- Namespaces ---------------------------------------------------------- */

static int namespace = PROCESS_HERE;

void process_namespace(int which)
{
    namespace = which;
}

pid_t process_fork(void)
{
    if (namespace == PROCESS_HERE)
        return fork();
    if (namespace == PROCESS_APART)
        return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    int here = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(here, 0);
    ck_assert_int_eq(setns(namespace, CLONE_NEWPID), 0);
    pid_t pid = fork();
    if (pid) {
        ck_assert_int_eq(setns(here, CLONE_NEWPID), 0);
        close(here);
    }
    return pid;
}

/* --- In the test --------------------------------------------------------- */

void child_start(struct child *child, void (*run)(struct child *me, void *arg), void *arg)
{
    int ends[2];
    pid_t parent = getpid();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = process_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct child me = {getpid(), ends[1]};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent && namespace == PROCESS_HERE)
            _exit(1);
        namespace = PROCESS_HERE;
        close(ends[0]);
        run(&me, arg);
        _exit(0);
    }
    close(ends[1]);
    *child = (struct child){pid, ends[0]};
}

int child_hear_any(struct child *child)
{
    int what = -1;
    await_readable(child->fd);
    ssize_t n = recv(child->fd, &what, sizeof what, MSG_WAITALL);
    ck_assert_msg(n == (ssize_t)sizeof what, "child %d ended before it told anything", child->pid);
    return what;
}

void child_hear(struct child *child, int what)
{
    ck_assert_int_eq(child_hear_any(child), what);
}

void child_cue(struct child *child)
{
    ck_assert_int_eq(send(child->fd, "", 1, MSG_NOSIGNAL), 1);
}

static int end_of(struct child *child)
{
    int status = process_wait(child->pid);
    close(child->fd);
    *child = (struct child){0, -1};
    return status;
}

void child_wait(struct child *child)
{
    int status = end_of(child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with status 0x%x",
                  status);
}

void child_wait_signal(struct child *child, int signal)
{
    int status = end_of(child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == signal,
                  "a child ended with status 0x%x, not by signal %d", status, signal);
}

void child_kill(struct child *child)
{
    ck_assert_int_eq(kill(child->pid, SIGKILL), 0);
    child_wait_signal(child, SIGKILL);
}

void child_stop(struct child *child)
{
    process_stop(child->pid);
}

void child_continue(struct child *child)
{
    ck_assert_int_eq(kill(child->pid, SIGCONT), 0);
}

/* --- In the child -------------------------------------------------------- */

void child_tell(struct child *me, int what)
{
    ck_assert_int_eq(send(me->fd, &what, sizeof what, MSG_NOSIGNAL), sizeof what);
}

void child_pause(struct child *me)
{
    char byte;
    if (recv(me->fd, &byte, 1, 0) != 1)
        _exit(1); /* the test is gone */
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void child_forbid_system_calls(void)
{
}
#else
static void tell_forbidden_call(int signal, siginfo_t *info, void *context)
{
    char text[64];
    (void)signal;
    (void)context;
    int n = snprintf(text, sizeof text, "system call %d\n", info->si_syscall);
    (void)!write(STDERR_FILENO, text, (size_t)n);
    _exit(2);
}

#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

void child_forbid_system_calls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    struct sigaction tell = {.sa_sigaction = tell_forbidden_call, .sa_flags = SA_SIGINFO};
    ck_assert_int_eq(sigaction(SIGSYS, &tell, NULL), 0);
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    /* an assertion makes a system call also if it holds */
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        ck_abort_msg("seccomp: %s", strerror(errno));
}
#endif

/* --- Any process --------------------------------------------------------- */

void process_kill(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    process_wait(pid);
}

void process_stop(pid_t pid)
{
    int status = 0;
    pid_t r = 0;
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    AWAIT((r = waitpid(pid, &status, WUNTRACED | WNOHANG)) != 0);
    ck_assert_int_eq(r, pid);
    ck_assert(WIFSTOPPED(status));
}

int process_wait(pid_t pid)
{
    int status = 0;
    pid_t r = 0;
    AWAIT((r = waitpid(pid, &status, WNOHANG)) != 0);
    ck_assert_int_eq(r, pid);
    return status;
}

void process_await_none(void)
{
    AWAIT(waitpid(-1, NULL, WNOHANG) < 0);
}

/* Reads fields of /proc/PID/stat that follow the name; the name may contain any character.
 * Returns how many of the three were read. */
static int read_stat(pid_t pid, char *ret_state, long *ret_user, long *ret_system)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end ? sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", ret_state,
                        ret_user, ret_system)
               : 0;
}

int process_lives(pid_t pid)
{
    char state;
    long user, system;
    return read_stat(pid, &state, &user, &system) == 3 && state != 'Z' && state != 'X';
}

long process_cpu_ms(pid_t pid)
{
    char state;
    long user, system;
    ck_assert_int_eq(read_stat(pid, &state, &user, &system), 3);
    return (user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

unsigned process_descriptors(pid_t pid)
{
    char path[32];
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - (pid == getpid()); /* without the directory's own */
}
