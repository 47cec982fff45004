/* SPDX-License-Identifier: Apache-2.0 */
/* Checks exiting.c: it finds a process exiting before its pidfd is readable, and never one that
 * lives, whatever its threads do. */
#include "unit/unit.h"

#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/util.h"
#include "daemon/clients/exiting.h"

#define HEAP_BYTES ((size_t)256 << 20)
#define LOOKS      3000

/* A child that runs a function, which reports when it is ready and does not return. */
struct subject {
    pid_t pid;
    int pidfd;
};

static int said[2];
static pid_t next_pid; /* of the next subject; 0: any */

static void say_ready(void)
{
    ck_assert_int_eq(write(said[1], "r", 1), 1);
}

static pid_t start_process(void)
{
    const pid_t pids[] = {next_pid};
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uintptr_t)pids, .set_tid_size = 1};
    return next_pid ? (pid_t)syscall(SYS_clone3, &args, sizeof args) : fork();
}

/* Returns a subject without a pid, -1, if the kernel does not give it next_pid. */
static struct subject subject_start(void (*run)(void))
{
    char byte;
    ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
    struct subject s = {.pid = start_process(), .pidfd = -1};
    if (s.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(1);
    }
    ck_assert(s.pid > 0 || next_pid);
    if (s.pid > 0) {
        ck_assert_int_eq(read(said[0], &byte, 1), 1);
        s.pidfd = (int)syscall(SYS_pidfd_open, s.pid, 0);
        ck_assert_int_ge(s.pidfd, 0);
    }
    close(said[0]);
    close(said[1]);
    return s;
}

static void subject_end(const struct subject *s)
{
    kill(s->pid, SIGKILL);
    ck_assert_int_eq(waitpid(s->pid, NULL, 0), s->pid);
    close(s->pidfd);
}

static bool has_ended(const struct subject *s)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void run_large(void)
{
    char *heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(heap, MAP_FAILED);
    memset(heap, 1, HEAP_BYTES);
    say_ready();
    for (;;)
        pause();
}

/* The kernel frees the memory for tens of milliseconds. This process may be suspended for as long,
 * so it tries again. */
START_TEST(a_large_process_is_exiting_before_it_has_ended)
{
    bool is_early = false;
    for (int i = 0; i < 20 && !is_early; i++) {
        struct subject s = subject_start(run_large);
        ck_assert(!process_is_exiting(s.pidfd));
        kill(s.pid, SIGKILL);
        while (!process_is_exiting(s.pidfd))
            continue;
        is_early = !has_ended(&s);
        subject_end(&s);
    }
    ck_assert(is_early);
}
END_TEST

static void run_idle(void)
{
    say_ready();
    for (;;)
        pause();
}

START_TEST(a_dead_process_is_exiting)
{
    struct subject s = subject_start(run_idle);
    kill(s.pid, SIGKILL);
    while (!has_ended(&s))
        usleep(1000);
    ck_assert(process_is_exiting(s.pidfd));
    int pidfd = dup(s.pidfd);
    subject_end(&s); /* it is reaped, so no process has its pid */
    ck_assert(process_is_exiting(pidfd));
    close(pidfd);
    ck_assert(!process_is_exiting(-1));
}
END_TEST

static void *stay(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

/* Starts a thread, and ends the first one. */
static void leave_to(void *(*run)(void *))
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
    say_ready();
    syscall(SYS_exit, 0);
}

static void run_without_leader(void)
{
    leave_to(stay);
}

/* A thread starts the next one and ends: at each moment one of them lives, and most have ended. */
static void *pass_on(void *arg)
{
    pthread_t thread;
    pthread_attr_t detached;
    (void)arg;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (pthread_create(&thread, &detached, pass_on, NULL))
        continue;
    return NULL;
}

static void run_relay(void)
{
    leave_to(pass_on);
}

/* The first thread ends while another one calls exec, which takes over the pid. */
static void *exec_again(void *arg)
{
    execl("/proc/self/exe", "check_exiting", "exec", NULL);
    return arg;
}

static void run_exec(void)
{
    setenv("SHMVIEW_EXEC_SUBJECT", "1", 1);
    say_ready();
    exec_again(NULL);
}

/* The parent of a vfork() is suspended, and its child uses its memory. */
static void run_vfork(void)
{
    say_ready();
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
}

static void run_stopped(void)
{
    say_ready();
    raise(SIGSTOP);
    for (;;)
        pause();
}

static void (*const living[])(void) = {run_idle, run_without_leader, run_relay,
                                       run_exec, run_vfork,          run_stopped};

START_TEST(a_living_process_never_is)
{
    for (size_t k = 0; k < ARRAY_LEN(living); k++) {
        struct subject s = subject_start(living[k]);
        for (int i = 0; i < LOOKS; i++)
            ck_assert_msg(!process_is_exiting(s.pidfd), "living[%zu], look %d%s", k, i,
                          has_ended(&s) ? ", and it has ended" : "");
        ck_assert(!has_ended(&s));
        subject_end(&s);
    }
}
END_TEST

/* A tracer stops it at its end, and may look at its memory as long as it likes. */
START_TEST(a_process_that_is_traced_at_its_end_never_is)
{
    int status;
    struct subject s = subject_start(run_large);
    if (ptrace(PTRACE_SEIZE, s.pid, 0, PTRACE_O_TRACEEXIT)) {
        subject_end(&s); /* not permitted here */
        return;
    }
    kill(s.pid, SIGUSR1);
    do
        ck_assert_int_eq(waitpid(s.pid, &status, 0), s.pid);
    while (WIFSTOPPED(status) && status >> 8 != (SIGTRAP | PTRACE_EVENT_EXIT << 8) &&
           ptrace(PTRACE_CONT, s.pid, 0, WSTOPSIG(status)) == 0);
    ck_assert(WIFSTOPPED(status));
    for (int i = 0; i < LOOKS; i++)
        ck_assert(!process_is_exiting(s.pidfd));
    ptrace(PTRACE_CONT, s.pid, 0, 0);
    subject_end(&s);
}
END_TEST

/* --- Pids that are used again -------------------------------------------- */

/* Starts a subject with the pid of one that has been reaped. Returns false, after printing why, if
 * that is not permitted here or another process has the pid by now. */
static bool subject_inherit(struct subject *ret, pid_t pid)
{
    next_pid = pid;
    *ret = subject_start(run_idle);
    if (ret->pid < 0)
        fprintf(stderr, "skipped: the kernel gives no process the pid %d: %s\n", pid,
                strerror(errno));
    next_pid = 0;
    return ret->pid >= 0;
}

START_TEST(a_living_process_with_the_pid_of_a_dead_one_never_is)
{
    struct subject heir, old = subject_start(run_idle);
    int pidfd = dup(old.pidfd);
    kill(old.pid, SIGKILL);
    while (!process_is_exiting(pidfd))
        continue;
    subject_end(&old);
    if (subject_inherit(&heir, old.pid)) {
        ck_assert_int_eq(heir.pid, old.pid);
        for (int i = 0; i < LOOKS; i++) {
            ck_assert(process_is_exiting(pidfd));
            ck_assert(!process_is_exiting(heir.pidfd));
        }
        subject_end(&heir);
        ck_assert(process_is_exiting(pidfd));
    }
    close(pidfd);
}
END_TEST

/* One who looks at a process without pause. */
struct observer {
    int pidfd;
    atomic_bool stop;
    atomic_uint n_exiting; /* looks that found it exiting */
    unsigned n_returned;   /* looks that found it living after that */
};

static void *observe(void *arg)
{
    struct observer *o = arg;
    while (!o->stop)
        if (process_is_exiting(o->pidfd))
            o->n_exiting++;
        else
            o->n_returned += o->n_exiting > 0;
    return NULL;
}

/* Each look falls before, in or after the moment at which the pid passes to the other process. */
START_TEST(a_pid_may_pass_to_a_living_process_during_a_look)
{
    bool may = true;
    for (int i = 0; i < 10 && may; i++) {
        pthread_t thread;
        struct subject heir, old = subject_start(run_large);
        struct observer observer = {.pidfd = dup(old.pidfd)};
        ck_assert_int_eq(pthread_create(&thread, NULL, observe, &observer), 0);
        subject_end(&old);
        may = subject_inherit(&heir, old.pid);
        for (unsigned n = observer.n_exiting; may && observer.n_exiting < n + 100;)
            ck_assert(!process_is_exiting(heir.pidfd));
        observer.stop = true;
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_uint_eq(observer.n_returned, 0);
        if (may)
            subject_end(&heir);
        close(observer.pidfd);
    }
}
END_TEST

/* Runs instead of the tests in a subject that has called exec: calls it again, from a thread. */
__attribute__((constructor)) static void exec_subject(void)
{
    pthread_t thread;
    if (!getenv("SHMVIEW_EXEC_SUBJECT"))
        return;
    usleep(200);
    pthread_create(&thread, NULL, exec_again, NULL);
    for (;;)
        pause();
}

UNIT_MAIN("exiting", UNIT_TEST(a_large_process_is_exiting_before_it_has_ended),
          UNIT_TEST(a_dead_process_is_exiting), UNIT_TEST(a_living_process_never_is),
          UNIT_TEST(a_process_that_is_traced_at_its_end_never_is),
          UNIT_TEST(a_living_process_with_the_pid_of_a_dead_one_never_is),
          UNIT_TEST(a_pid_may_pass_to_a_living_process_during_a_look))
