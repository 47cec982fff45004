/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes of threads and of processes: order, dead owners, forged words, and reused ids. */
#include "unit/unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <shmview/family.h>

#include "unit/faults.h"

#define LONG_NS  20000000000
#define SHORT_NS 2000000

static struct shmview_anonymous memory;
static struct shmview_mutex *threads, *processes; /* one mutex of each kind */

static void set_up(void)
{
    ck_assert_int_eq(shmview_anonymous_create(4096, &memory), 0);
    threads = memory.data;
    processes = threads + 1;
    ck_assert_int_eq(shmview_mutex_init(threads, SHMVIEW_MUTEX_OF_THREADS), 0);
    ck_assert_int_eq(shmview_mutex_init(processes, SHMVIEW_MUTEX_OF_PROCESSES), 0);
}

static void tear_down(void)
{
    shmview_anonymous_close(&memory);
}

static struct shmview_mutex_status status_of(struct shmview_mutex *m)
{
    struct shmview_mutex_status status;
    ck_assert_int_eq(shmview_mutex_query(m, &status), 0);
    return status;
}

static int lock_long(struct shmview_mutex *m)
{
    return shmview_mutex_lock(m, shmview_deadline(LONG_NS));
}

/* Runs f in a child process. Returns its result. */
static int in_child(int (*f)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(f());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int in_thread(int (*f)(void))
{
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))f, NULL), 0);
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}

static void assert_holds(struct shmview_mutex *m, bool is_mine, uint32_t depth, pid_t pid)
{
    struct shmview_mutex_status s = status_of(m);
    ck_assert(s.is_held && s.is_mine == is_mine);
    ck_assert_uint_eq(s.depth, depth);
    ck_assert_uint_eq(s.pid, (uint32_t)pid);
}

/* --- In order ------------------------------------------------------------- */

static int try_threads(void)
{
    return -shmview_mutex_trylock(threads);
}
static int unlock_threads(void)
{
    return -shmview_mutex_unlock(threads);
}
static int unlock_processes(void)
{
    return -shmview_mutex_unlock(processes);
}

START_TEST(of_threads)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_unlock(threads), -SHMVIEW_ERR_NOT_OWNER);
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), 0);
    ck_assert_int_eq(shmview_mutex_lock(threads, SHMVIEW_FOREVER), 0);
    ck_assert_int_eq(shmview_mutex_trylock(threads), 0);
    assert_holds(threads, true, 3, getpid());
    ck_assert_int_eq(in_thread(try_threads), SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(in_child(try_threads), SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(in_thread(unlock_threads), SHMVIEW_ERR_NOT_OWNER);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    ck_assert(!status_of(threads).is_held);
    ck_assert_uint_eq(status_of(threads).pid, 0);
    ck_assert_int_eq(in_thread(try_threads), 0);
    tear_down();
}
END_TEST

START_TEST(of_processes)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_unlock(processes), -SHMVIEW_ERR_NOT_OWNER);
    ck_assert_int_eq(shmview_mutex_lock(processes, SHMVIEW_FOREVER), 0);
    assert_holds(processes, true, 1, getpid());
    ck_assert_int_eq(shmview_mutex_trylock(processes), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(shmview_mutex_lock(processes, shmview_deadline(SHORT_NS)),
                     -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(in_thread(unlock_processes), 0);
    ck_assert_int_eq(shmview_mutex_lock(processes, SHMVIEW_FOREVER), 0);
    ck_assert_int_eq(in_child(unlock_processes), 0);
    ck_assert(!status_of(processes).is_held);
    tear_down();
}
END_TEST

START_TEST(nested_too_deep)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), 0);
    threads->depth = UINT32_MAX;
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), -SHMVIEW_ERR_TOO_DEEP);
    ck_assert_uint_eq(threads->depth, UINT32_MAX);
    tear_down();
}
END_TEST

/* --- Deaths --------------------------------------------------------------- */

static int lock_threads(void)
{
    return -shmview_mutex_lock(threads, 0);
}
static int lock_processes(void)
{
    return -shmview_mutex_lock(processes, 0);
}

/* Returns a child that died with the mutex locked; that of threads it had locked twice. */
static pid_t die_inside(struct shmview_mutex *m)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(shmview_mutex_lock(m, 0) < 0 || (m == threads && shmview_mutex_lock(m, 0)));
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return pid;
}

START_TEST(the_next_owner_learns_of_a_death)
{
    set_up();
    for (struct shmview_mutex *m = threads; m <= processes; m++) {
        pid_t dead = die_inside(m);
        ck_assert_int_eq(shmview_mutex_trylock(m), -SHMVIEW_ERR_TIMED_OUT);
        ck_assert_int_eq(lock_long(m), SHMVIEW_OWNER_DIED);
        ck_assert_uint_eq(status_of(m).died, (uint32_t)dead);
        assert_holds(m, true, 1, getpid());
        ck_assert_int_eq(shmview_mutex_unlock_not_repaired(m), 0);
        ck_assert_int_eq(shmview_mutex_trylock(m), SHMVIEW_OWNER_DIED);
        ck_assert_uint_eq(status_of(m).died, (uint32_t)dead);
        ck_assert_int_eq(shmview_mutex_unlock(m), 0);
        ck_assert_int_eq(shmview_mutex_trylock(m), 0);
        ck_assert_uint_eq(status_of(m).died, 0);
        ck_assert_int_eq(shmview_mutex_unlock_not_repaired(m), 0);
        ck_assert_int_eq(shmview_mutex_lock(m, 0), SHMVIEW_OWNER_DIED);
        ck_assert_uint_eq(status_of(m).died, (uint32_t)getpid());
        ck_assert_int_eq(shmview_mutex_unlock(m), 0);
        dead = die_inside(m);
        ck_assert_int_eq(shmview_mutex_lock(m, 0), SHMVIEW_OWNER_DIED); /* a try detects it */
        ck_assert_uint_eq(status_of(m).died, (uint32_t)dead);
    }
    tear_down();
}
END_TEST

/* A mutex of threads loses its owner when the thread ends; one of processes keeps it. */
START_TEST(a_thread_that_ends)
{
    set_up();
    ck_assert_int_eq(in_thread(lock_threads), 0);
    ck_assert_int_eq(in_thread(lock_processes), 0);
    ck_assert_int_eq(lock_long(threads), SHMVIEW_OWNER_DIED);
    ck_assert_uint_eq(status_of(threads).died, (uint32_t)getpid());
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), -SHMVIEW_ERR_TIMED_OUT);
    assert_holds(processes, true, 1, getpid());
    tear_down();
}
END_TEST

START_TEST(a_stopped_owner_is_alive)
{
    set_up();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int r = shmview_mutex_lock(threads, 0) || shmview_mutex_lock(processes, 0);
        raise(SIGSTOP);
        _exit(r);
    }
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), -SHMVIEW_ERR_TIMED_OUT);
    kill(pid, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), SHMVIEW_OWNER_DIED); /* a zombie */
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), SHMVIEW_OWNER_DIED);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    tear_down();
}
END_TEST

/* The first thread ends and another one goes on, so the process is alive. */
static void *go_on(void *pipe)
{
    char byte;
    _exit(read(((int *)pipe)[0], &byte, 1) != 1);
}

START_TEST(a_process_without_its_first_thread)
{
    set_up();
    int pipes[2], status;
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        if (shmview_mutex_lock(threads, 0) || shmview_mutex_lock(processes, 0) ||
            pthread_create(&thread, NULL, go_on, pipes))
            _exit(1);
        syscall(SYS_exit, 0);
    }
    while (!status_of(processes).is_held)
        sched_yield();
    ck_assert_int_eq(lock_long(threads), SHMVIEW_OWNER_DIED);
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_int_eq(write(pipes[1], "", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), SHMVIEW_OWNER_DIED);
    close(pipes[0]);
    close(pipes[1]);
    tear_down();
}
END_TEST

/* The id of a living process with another birth belongs to a dead owner. */
START_TEST(an_id_that_is_reused)
{
    set_up();
    for (struct shmview_mutex *m = threads; m <= processes; m++) {
        ck_assert_int_eq(shmview_mutex_lock(m, 0), 0);
        uint64_t mine = m->owner;
        ck_assert_uint_eq(mine & SHMVIEW_MUTEX_ID, (uint64_t)getpid());
        ck_assert_uint_ne(mine >> 32, 0);
        m->owner = mine + (UINT64_C(1) << 32);
        m->pid = 0;
        ck_assert(!status_of(m).is_mine);
        ck_assert_int_eq(shmview_mutex_lock(m, 0), SHMVIEW_OWNER_DIED);
        ck_assert_uint_eq(m->owner & ~(uint64_t)SHMVIEW_MUTEX_WAITERS, mine);
        ck_assert_uint_eq(status_of(m).died, (uint32_t)getpid());
        ck_assert_int_eq(shmview_mutex_unlock(m), 0);
        m->owner = (uint32_t)getppid(); /* an unknown birth counts as alive */
        ck_assert_int_eq(shmview_mutex_lock(m, 0), -SHMVIEW_ERR_TIMED_OUT);
    }
    tear_down();
}
END_TEST

/* --- Forks, waits, bytes -------------------------------------------------- */

/* Such a child runs no handler of pthread_atfork(). */
START_TEST(a_child_is_not_its_parent)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), 0);
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), 0);
    int status;
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit((shmview_mutex_lock(threads, 0) != -SHMVIEW_ERR_TIMED_OUT) |
              (int)(status_of(threads).is_mine || status_of(processes).is_mine) << 1 |
              (shmview_mutex_unlock(threads) != -SHMVIEW_ERR_NOT_OWNER) << 2);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    tear_down();
}
END_TEST

static int end_third(void *n)
{
    return ++*(int *)n == 3;
}

START_TEST(the_caller_ends_a_wait)
{
    set_up();
    int n = 0;
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), 0);
    shmview_on_wait(end_third, &n);
    ck_assert_int_eq(shmview_mutex_lock(processes, SHMVIEW_FOREVER), -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(shmview_mutex_unlock(processes), 0);
    ck_assert_int_eq(shmview_mutex_trylock(processes), 0);
    tear_down();
}
END_TEST

/* Holds the mutex until the flag is set. */
static void *hold_until(void *is_over)
{
    ck_assert_int_eq(shmview_mutex_lock(threads, SHMVIEW_FOREVER), 0);
    while (!atomic_load((_Atomic int *)is_over))
        sched_yield();
    ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    return NULL;
}

static int lock_and_keep(void *is_over)
{
    atomic_store((_Atomic int *)is_over, 1);
    ck_assert_int_eq(shmview_mutex_lock(threads, SHMVIEW_FOREVER), 0);
    return 0;
}

/* The wait must notice that its own thread has the mutex, otherwise it waits for itself. */
START_TEST(the_function_keeps_the_mutex)
{
    set_up();
    _Atomic int is_over = 0;
    pthread_t holder;
    ck_assert_int_eq(pthread_create(&holder, NULL, hold_until, &is_over), 0);
    while (!status_of(threads).pid)
        sched_yield();
    shmview_on_wait(lock_and_keep, &is_over);
    ck_assert_int_eq(shmview_mutex_lock(threads, SHMVIEW_FOREVER), 0);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(pthread_join(holder, NULL), 0);
    ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    ck_assert_int_eq(shmview_mutex_unlock(threads), -SHMVIEW_ERR_NOT_OWNER);
    tear_down();
}
END_TEST

START_TEST(a_deadline_of_long_ago)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), 0);
    ck_assert_int_eq(shmview_mutex_lock(processes, INT64_MIN), -SHMVIEW_ERR_TIMED_OUT);
    tear_down();
}
END_TEST

static int end(void *arg)
{
    (void)arg;
    return 1;
}

/* Each park must be interrupted, otherwise the test would never end. */
START_TEST(a_signal_lets_the_caller_end_a_wait)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_lock(processes, 0), 0);
    shmview_on_wait(end, NULL);
    faults_begin_call("syscall", 1, EINTR, true);
    int r = shmview_mutex_lock(processes, SHMVIEW_FOREVER);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    tear_down();
}
END_TEST

static void await_waiter(void)
{
    while (!(atomic_load((_Atomic uint64_t *)&threads->owner) & SHMVIEW_MUTEX_WAITERS))
        sched_yield();
}

static void *lock_and_unlock(void *arg)
{
    (void)arg;
    int r = shmview_mutex_lock(threads, SHMVIEW_FOREVER);
    return (void *)(intptr_t)(r ? r : shmview_mutex_unlock(threads));
}

START_TEST(an_unlock_wakes_every_waiter_in_turn)
{
    set_up();
    pthread_t waiters[4];
    void *result;
    ck_assert_int_eq(shmview_mutex_lock(threads, 0), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&waiters[i], NULL, lock_and_unlock, NULL), 0);
    await_waiter();
    ck_assert_int_eq(shmview_mutex_unlock(threads), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(waiters[i], &result);
        ck_assert_ptr_null(result);
    }
    tear_down();
}
END_TEST

static int every_call(struct shmview_mutex *m)
{
    struct shmview_mutex_status status;
    int r = shmview_mutex_lock(m, SHMVIEW_FOREVER);
    ck_assert_int_eq(shmview_mutex_trylock(m), r);
    ck_assert_int_eq(shmview_mutex_unlock(m), r);
    ck_assert_int_eq(shmview_mutex_unlock_not_repaired(m), r);
    ck_assert_int_eq(shmview_mutex_query(m, &status), r);
    return -r;
}

START_TEST(wrong_bytes)
{
    set_up();
    struct shmview_mutex good = *threads;
    ck_assert_int_eq(every_call(threads + 2), SHMVIEW_ERR_INVALID); /* never initialised */
    threads->version = 2;
    ck_assert_int_eq(every_call(threads), SHMVIEW_ERR_LAYOUT_VERSION);
    *threads = good;
    threads->pid_namespace ^= 1;
    ck_assert_int_eq(every_call(threads), SHMVIEW_ERR_INVALID);
    *threads = good;
    threads->time_namespace ^= 1; /* its births are not comparable */
    ck_assert_int_eq(every_call(threads), SHMVIEW_ERR_INVALID);
    threads->time_namespace = 0; /* the process that made it did not know its namespace */
    threads->pid_namespace = 0;
    ck_assert_int_eq(shmview_mutex_trylock(threads), 0);
    for (uint64_t seed = 1, i = 0; i < 2000; i++) {
        uint32_t *words = (uint32_t *)threads;
        for (int k = 2; k < 16; k++)
            words[k] = unit_random(&seed) % 3 ? words[k] : (uint32_t)unit_random(&seed);
        threads->pid_namespace = good.pid_namespace;
        threads->time_namespace = good.time_namespace;
        shmview_mutex_lock(threads, 0);
        shmview_mutex_unlock(threads);
        status_of(threads);
    }
    tear_down();
}
END_TEST

START_TEST(wrong_arguments)
{
    set_up();
    ck_assert_int_eq(shmview_mutex_init(threads, 0), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(shmview_mutex_init(threads, 3), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(shmview_mutex_init((void *)((char *)memory.data + 4), 1),
                     -SHMVIEW_ERR_INVALID);
    tear_down();
}
END_TEST

UNIT_MAIN("mutex", UNIT_TEST(of_threads), UNIT_TEST(of_processes), UNIT_TEST(nested_too_deep),
          UNIT_TEST(the_next_owner_learns_of_a_death), UNIT_TEST(a_thread_that_ends),
          UNIT_TEST(a_stopped_owner_is_alive), UNIT_TEST(a_process_without_its_first_thread),
          UNIT_TEST(an_id_that_is_reused), UNIT_TEST(a_child_is_not_its_parent),
          UNIT_TEST(the_caller_ends_a_wait), UNIT_TEST(the_function_keeps_the_mutex),
          UNIT_TEST(a_deadline_of_long_ago), UNIT_TEST(a_signal_lets_the_caller_end_a_wait),
          UNIT_TEST(an_unlock_wakes_every_waiter_in_turn), UNIT_TEST(wrong_bytes),
          UNIT_TEST(wrong_arguments))
