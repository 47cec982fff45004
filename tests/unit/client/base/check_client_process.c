/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what a process keeps for itself: its epoch, its mutexes, and the presence that it
 * inherits by a fork. */
#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "client/link/connection.h"
#include "client/lock/lock.h"
#include "unit/faults.h"
#include "unit/stub.h"

static int wait_for(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(one_epoch_for_a_process)
{
    ck_assert_int_eq(process_init(), 0);
    struct process_page *page = process;
    uint32_t epoch = process_epoch();
    ck_assert_uint_ne(epoch, 0);
    ck_assert_uint_ne(epoch, NO_LOCK_EPOCH);
    ck_assert_int_eq(process_init(), 0);
    ck_assert_ptr_eq(process, page);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(process_epoch(), epoch);
}
END_TEST

static void *ask(void *arg)
{
    (void)arg;
    return (void *)(uintptr_t)(process_init() ? 0 : process_epoch());
}

START_TEST(one_epoch_for_all_threads)
{
    pthread_t threads[8];
    void *epochs[8];
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], &epochs[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_ptr_eq(epochs[i], (void *)(uintptr_t)process_epoch());
    ck_assert_ptr_ne(epochs[0], NULL);
}
END_TEST

/* Each generation has its own epoch, even if no ancestor asked for one. */
START_TEST(children_and_grandchildren)
{
    for (int asked = 0; asked < 2; asked++) {
        ck_assert_int_eq(process_init(), 0);
        uint32_t mine = asked ? process_epoch() : 0;
        pid_t pid = fork();
        if (pid == 0) {
            if (atomic_load(&process->epoch) != 0)
                _exit(1);
            uint32_t childs = process_epoch();
            pid_t grandchild = fork();
            if (grandchild == 0) {
                uint32_t its = process_epoch();
                _exit(its == childs || its == mine || its == 0 ? 2 : 0);
            }
            int status = wait_for(grandchild);
            _exit(childs == mine || childs == 0 || process_epoch() != childs ? 3
                                                                             : WEXITSTATUS(status));
        }
        ck_assert_int_eq(wait_for(pid), 0);
        if (asked)
            ck_assert_uint_eq(process_epoch(), mine);
    }
}
END_TEST

/* The mutexes are free in the child, even if a thread held them during the fork. */
START_TEST(mutexes_are_free_in_a_child)
{
    ck_assert_int_eq(process_init(), 0);
    process_epoch();
    pthread_mutex_lock(&process->mutex);
    pthread_mutex_lock(&process->locks);
    pid_t pid = fork();
    if (pid == 0) {
        int r = pthread_mutex_trylock(&process->locks);
        _exit(r || process_epoch() == 0 || pthread_mutex_trylock(&process->mutex) ? 1 : 0);
    }
    pthread_mutex_unlock(&process->locks);
    pthread_mutex_unlock(&process->mutex);
    ck_assert_int_eq(wait_for(pid), 0);
    ck_assert_int_eq(pthread_mutex_trylock(&process->mutex), 0);
    pthread_mutex_unlock(&process->mutex);
}
END_TEST

/* A child puts something of its own in the place of its parent's presence. */
START_TEST(a_child_disconnects_what_it_inherits)
{
    int file = memfd_create("shmview-unit", MFD_CLOEXEC);
    const struct stub_step step = {.method = "Claim",
                                   .reply =
                                       "{'parameters':{'held':[],'descriptors':1,'presence':0}}",
                                   .fds = {file},
                                   .n_fds = 1};
    static struct stub stub;
    struct shmview_connection *conn;
    ck_assert_int_eq(ftruncate(file, 1), 0);
    stub_start(&stub, &step, 1);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    void *at = conn->presence;
    ck_assert_ptr_nonnull(at);
    for (int handlers = 0; handlers < 2; handlers++) {
        int status;
        pid_t pid = handlers ? fork() : _Fork();
        if (pid == 0) {
            volatile char *mine = mmap(at, 4096, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (mine != at || shmview_disconnect(conn))
                _exit(1);
            *mine = 1;
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "status %x", (unsigned)status);
        ck_assert_ptr_eq(conn->presence, at);
    }
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    close(file);
}
END_TEST

/* The variable that lets a program of this file only check what becomes of this call's failure. */
#define FAILS "SHMVIEW_UNIT_FAILS"

/* Runs before the library makes its page. */
__attribute__((constructor(101))) static void fail_to_make_the_page(void)
{
    const char *name = getenv(FAILS);
    if (!name)
        return;
    bool maps = strcmp(name, "mmap") == 0;
    int wanted = maps ? -SHMVIEW_ERR_NO_MEMORY : -SHMVIEW_ERR_SYSTEM;
    faults_begin_call(name, 1, maps ? ENOMEM : EINVAL, false);
    bool right = process_init() == wanted && faults_end() && process_init() == wanted && !process &&
                 strstr(shmview_error_text(), "wiped on fork");
    _exit(right ? 0 : 1);
}

/* If the page cannot be made, every call returns the error, not only the first. */
START_TEST(no_page_to_be_had)
{
    const char *names[] = {"mmap", "madvise"};
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            setenv(FAILS, names[i], 1);
            execl("/proc/self/exe", "check_client_process", (char *)NULL);
            _exit(2);
        }
        ck_assert_int_eq(wait_for(pid), 0);
    }
}
END_TEST

UNIT_MAIN("process", UNIT_TEST(one_epoch_for_a_process), UNIT_TEST(one_epoch_for_all_threads),
          UNIT_TEST(children_and_grandchildren), UNIT_TEST(mutexes_are_free_in_a_child),
          UNIT_TEST(a_child_disconnects_what_it_inherits), UNIT_TEST(no_page_to_be_had))
