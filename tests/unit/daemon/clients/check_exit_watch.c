/* SPDX-License-Identifier: Apache-2.0 */
/* Checks exit_watch.c: it reports the end of threads and processes, and its threads end. */
#include "unit/unit.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/hurry.h"
#include "daemon/clients/exit_watch.h"
#include "daemon/clients/exiting.h"
#include "unit/faults.h"

#define HEAP_BYTES ((size_t)64 << 20)
#define LIMIT_NS   INT64_C(30000000000)

static uv_loop_t loop;
static struct exit_watches *watches;
static int64_t kept_ns; /* when await_notice() has kept the watch last */
static const struct store_holder holder = {.client = 7, .uid = 1, .pid = 2, .birth = 3};

static struct {
    unsigned n;
    unsigned n_found;  /* of them with a process that was found exiting */
    bool is_exiting;   /* at the last of them */
    int pidfd;         /* of the process that was to be watched */
    uint64_t slice_ns; /* of the loop at the last of them */
} noticed;

/* A child that runs a function after a byte from its parent. */
static struct subject {
    pid_t pid;
    int pidfd;
    int order; /* a pipe */
} subject;

static uint64_t slice_of_loop(void)
{
    struct schedule s = {0};
    syscall(SYS_sched_getattr, 0, &s, sizeof s, 0);
    return s.runtime_ns;
}

static void on_noticed(void *arg, const struct store_holder *of, bool is_exiting)
{
    ck_assert_ptr_eq(arg, &noticed);
    ck_assert_uint_eq(of->client, holder.client);
    noticed.n++;
    noticed.is_exiting = process_is_exiting(noticed.pidfd);
    noticed.n_found += is_exiting;
    noticed.slice_ns = slice_of_loop();
    ck_assert(!is_exiting || noticed.is_exiting);
}

static void begin(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    watches = exit_watches_open(&loop, on_noticed, &noticed);
    ck_assert_ptr_nonnull(watches);
    memset(&noticed, 0, sizeof noticed);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_close(handle, NULL);
}

static void close_watches(void)
{
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    exit_watches_close(STEAL(watches));
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void pause_for_ever(void)
{
    for (;;)
        pause();
}

static void *stay(void *arg)
{
    pause_for_ever();
    return arg;
}

/* Starts a child that has a heap and one or two threads. Its first thread runs a function later. */
static void subject_start_of(unsigned n_threads, void (*run)(void))
{
    int order[2], ready[2];
    char byte;
    ck_assert_int_eq(pipe2(order, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    subject.pid = fork();
    if (subject.pid == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(order[1]);
        mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
             -1, 0);
        if (n_threads > 1)
            ck_assert_int_eq(pthread_create(&thread, NULL, stay, NULL), 0);
        ck_assert_int_eq(write(ready[1], "r", 1), 1);
        if (read(order[0], &byte, 1) == 1)
            run();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(order[0]);
    subject.order = order[1];
    subject.pidfd = noticed.pidfd = (int)syscall(SYS_pidfd_open, subject.pid, 0);
    ck_assert_int_ge(subject.pidfd, 0);
}

static void subject_start(void (*run)(void))
{
    subject_start_of(2, run);
}

static void subject_end(void)
{
    kill(subject.pid, SIGKILL);
    ck_assert_int_eq(waitpid(subject.pid, NULL, 0), subject.pid);
    close(subject.pidfd);
    close(subject.order);
}

/* --- The threads of this process ----------------------------------------- */

/* Reads a file of a thread. Returns whether it could. */
static bool read_of(long tid, const char *what, char text[2048])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/%s", tid, what);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, 2047);
    text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* Returns the thread of the only watch if it sleeps, 0 if there is no watch, otherwise -1. */
static long find_thread(void)
{
    long found = 0;
    char text[2048];
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e; !found && (e = readdir(dir));) {
        long tid = strtol(e->d_name, NULL, 10);
        if (!tid || !read_of(tid, "comm", text) || strcmp(text, EXIT_WATCH_THREAD "\n") != 0)
            continue;
        found = -1;
        if (read_of(tid, "stat", text) && strncmp(strrchr(text, ')'), ") S", 3) == 0)
            found = tid;
    }
    closedir(dir);
    return found;
}

static void pass_time(int64_t limit)
{
    ck_assert_int_lt(now_ns(), limit);
    usleep(1000);
    uv_run(&loop, UV_RUN_NOWAIT);
}

/* Watches the subject, and waits until the thread sleeps. */
static void watch_subject(void)
{
    int64_t limit = now_ns() + LIMIT_NS;
    do {
        ck_assert(exit_watch_keep(watches, &holder, subject.pidfd));
        usleep(1000);
    } while (find_thread() <= 0 && now_ns() < limit);
    ck_assert_int_gt(find_thread(), 0);
    ck_assert_uint_eq(noticed.n, 0);
}

/* Waits for a notice, and keeps the watch as a client that waits does. */
static void await_notice(void)
{
    int64_t limit = now_ns() + LIMIT_NS;
    for (unsigned n = noticed.n; noticed.n == n; pass_time(limit)) {
        exit_watch_keep(watches, &holder, subject.pidfd);
        kept_ns = now_ns();
    }
}

static void await_end_of_watches(void)
{
    int64_t limit = now_ns() + LIMIT_NS;
    while (exit_watches_count(watches))
        pass_time(limit);
}

static void await_end_of_threads(void)
{
    int64_t limit = now_ns() + LIMIT_NS;
    for (; find_thread(); usleep(1000))
        ck_assert_int_lt(now_ns(), limit);
}

/* Whether the kernel of this machine lets a futex name a thread of another process. */
static bool kernel_can_watch(void)
{
    struct timespec past = {0};
    uint32_t word = (uint32_t)getppid();
    return syscall(SYS_futex, &word, FUTEX_LOCK_PI2, 0, &past, NULL, 0) < 0 && errno == ETIMEDOUT;
}

/* --- Tests --------------------------------------------------------------- */

START_TEST(the_end_of_a_process_is_noticed)
{
    begin();
    subject_start(pause_for_ever);
    watch_subject();
    kill(subject.pid, SIGKILL);
    while (!noticed.is_exiting)
        await_notice();
    await_end_of_watches();
    subject_end();
    close_watches();
}
END_TEST

/* If this process is suspended at a kill, the other one has ended before the watch looks. */
START_TEST(a_process_of_one_thread_is_found_exiting)
{
    int64_t limit = now_ns() + LIMIT_NS;
    do {
        ck_assert_int_lt(now_ns(), limit);
        begin();
        subject_start_of(1, pause_for_ever);
        watch_subject();
        kill(subject.pid, SIGKILL);
        while (!noticed.is_exiting)
            await_notice();
        await_end_of_watches();
        subject_end();
        close_watches();
    } while (!noticed.n_found);
}
END_TEST

static void end_thread(void)
{
    syscall(SYS_exit, 0);
}

static void call_exec(void)
{
    execlp("sleep", "sleep", "1000", NULL);
}

/* The process lives on. */
START_TEST(after_the_end_of_a_thread_the_watch_goes_on)
{
    static void (*const ends[])(void) = {end_thread, call_exec};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        begin();
        subject_start(ends[i]);
        watch_subject();
        ck_assert_int_eq(write(subject.order, "r", 1), 1);
        await_notice();
        ck_assert(!noticed.is_exiting);
        long tid;
        while ((tid = find_thread()) < 0)
            usleep(100);
        /* otherwise this process was suspended, and the watch is over */
        if (now_ns() < kept_ns + EXIT_WATCH_KEEP_NS)
            ck_assert_int_gt(tid, 0);
        kill(subject.pid, SIGKILL);
        while (!noticed.is_exiting)
            await_notice();
        await_end_of_watches();
        subject_end();
        close_watches();
    }
}
END_TEST

/* Keeps the watch for longer than it lasts by itself. Returns the longest time between two calls:
 * this process may be suspended. */
static int64_t keep_for_long(void)
{
    int64_t longest = 0, last = now_ns(), now = last,
            until = last + 2 * (int64_t)EXIT_WATCH_KEEP_NS;
    for (; now < until; usleep(1000)) {
        ck_assert(exit_watch_keep(watches, &holder, subject.pidfd));
        last = now;
        now = now_ns();
        longest = now - last > longest ? now - last : longest;
    }
    return longest;
}

START_TEST(a_watch_ends_unless_it_is_kept)
{
    int64_t longest;
    long before, after;
    begin();
    subject_start(pause_for_ever);
    do {
        watch_subject();
        before = find_thread();
        longest = keep_for_long();
        while ((after = find_thread()) < 0)
            usleep(100);
    } while (longest > EXIT_WATCH_KEEP_NS / 2);
    ck_assert_int_eq(after, before);
    await_end_of_watches();
    await_end_of_threads();
    ck_assert_uint_eq(noticed.n, 0);
    subject_end();
    close_watches();
}
END_TEST

/* Watches the subject as if it were many processes of a user. Returns how many could be. */
static unsigned watch_many(uint32_t uid)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < 2 * EXIT_WATCHES_MAX; i++)
        n += exit_watch_keep(watches, &(struct store_holder){.client = i, .uid = uid},
                             subject.pidfd);
    return n;
}

/* The threads sleep longer than this takes; if not, there is room again. */
START_TEST(there_are_at_most_so_many)
{
    int64_t start;
    begin();
    subject_start(pause_for_ever);
    do {
        await_end_of_watches();
        start = now_ns();
        unsigned first = watch_many(1), second = watch_many(2), third = watch_many(3);
        unsigned again = watch_many(1);
        if (now_ns() - start < EXIT_WATCH_KEEP_NS) {
            ck_assert_uint_eq(first, EXIT_WATCHES_MAX_USER);
            ck_assert_uint_eq(second, EXIT_WATCHES_MAX - EXIT_WATCHES_MAX_USER);
            ck_assert_uint_eq(third, 0);
            ck_assert_uint_eq(again, EXIT_WATCHES_MAX_USER);
        }
        ck_assert_uint_le(exit_watches_count(watches), EXIT_WATCHES_MAX);
    } while (now_ns() - start >= EXIT_WATCH_KEEP_NS);
    await_end_of_watches();
    await_end_of_threads();
    subject_end();
    close_watches();
}
END_TEST

/* The loop does not wait for the threads, and the last one of them frees what is left. */
START_TEST(threads_end_without_the_loop)
{
    begin();
    subject_start(pause_for_ever);
    watch_subject();
    close_watches();
    subject_end();
    await_end_of_threads();
}
END_TEST

/* A filter of system calls may forbid the futex. */
START_TEST(without_such_futexes_nothing_is_watched)
{
    static const int errors[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        begin();
        subject_start(pause_for_ever);
        faults_begin_call("syscall", 2, errors[i], true);
        exit_watch_keep(watches, &holder, subject.pidfd);
        await_end_of_watches();
        ck_assert(faults_end());
        ck_assert(!exit_watch_keep(watches, &holder, subject.pidfd));
        ck_assert_uint_eq(noticed.n, 0);
        await_end_of_threads();
        subject_end();
        close_watches();
    }
}
END_TEST

START_TEST(what_cannot_be_watched_is_not)
{
    ck_assert(!exit_watch_keep(NULL, &holder, 0));
    exit_watches_close(NULL);
    faults_begin_call("calloc", 1, ENOMEM, false);
    ck_assert_ptr_null(exit_watches_open(&loop, on_noticed, &noticed));
    ck_assert(faults_end());
    begin();
    ck_assert(!exit_watch_keep(watches, &holder, -1));
    ck_assert_uint_eq(exit_watches_count(watches), 0);
    close_watches();
}
END_TEST

/* The loop may wake on the CPU on which the kernel ends the process (hurry.h). */
START_TEST(the_loop_hurries_for_a_notice_only)
{
    uint64_t usual_ns = slice_of_loop();
    begin();
    subject_start(pause_for_ever);
    watch_subject();
    ck_assert_uint_eq(slice_of_loop(), usual_ns);
    kill(subject.pid, SIGKILL);
    while (!noticed.is_exiting)
        await_notice();
    if (usual_ns) /* otherwise this kernel grants no slices */
        ck_assert_uint_lt(noticed.slice_ns, usual_ns);
    await_end_of_watches();
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(slice_of_loop(), usual_ns);
    subject_end();
    close_watches();
}
END_TEST

/* The kernel lends the priority of a thread that waits to the thread that it waits for. */
START_TEST(a_watch_lends_no_priority_and_takes_no_signals)
{
    struct sched_param real_time = {1}, usual = {0};
    char text[2048];
    begin();
    subject_start(pause_for_ever);
    bool may = syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &real_time) == 0;
    watch_subject();
    long tid = find_thread();
    if (may)
        ck_assert_int_eq(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &usual), 0);
    ck_assert_int_eq(syscall(SYS_sched_getscheduler, tid), SCHED_OTHER);
    ck_assert_int_eq(syscall(SYS_sched_getscheduler, subject.pid), SCHED_OTHER);
    ck_assert(read_of(tid, "status", text));
    unsigned long long blocked = strtoull(strstr(text, "SigBlk:") + 7, NULL, 16);
    ck_assert(blocked >> (SIGTERM - 1) & 1 && blocked >> (SIGHUP - 1) & 1);
    subject_end();
    await_end_of_threads();
    close_watches();
}
END_TEST

/* The first loop of a process opens descriptors for good. The third test and the later ones need
 * such futexes. */
int main(void)
{
    const struct unit_test tests[] = {
        UNIT_TEST(without_such_futexes_nothing_is_watched),
        UNIT_TEST(what_cannot_be_watched_is_not),
        UNIT_TEST(the_end_of_a_process_is_noticed),
        UNIT_TEST(a_process_of_one_thread_is_found_exiting),
        UNIT_TEST(after_the_end_of_a_thread_the_watch_goes_on),
        UNIT_TEST(the_loop_hurries_for_a_notice_only),
        UNIT_TEST(a_watch_ends_unless_it_is_kept),
        UNIT_TEST(there_are_at_most_so_many),
        UNIT_TEST(threads_end_without_the_loop),
        UNIT_TEST(a_watch_lends_no_priority_and_takes_no_signals),
    };
    uv_loop_init(&loop);
    uv_loop_close(&loop);
    return unit_main("exit_watch", tests, kernel_can_watch() ? ARRAY_LEN(tests) : 2);
}
