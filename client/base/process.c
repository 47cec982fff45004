/* SPDX-License-Identifier: Apache-2.0 */
/* Forks and epochs. The handlers of pthread_atfork() keep a fork out of NOT_FORKED blocks. A
 * program that forks without them (by a bare system call) still gets a new epoch, because the
 * kernel zeroes the page. */
#include "client/base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "client/base/error.h"
#include "client/base/wait.h"

struct process_page *process;

static uint32_t last_epoch; /* of this process and its ancestors */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_error;
static void (*forgets[N_PROCESS_ROOMS])(void);
/* Whether this thread is inside NOT_FORKED, or about to enter. Its own signal handler reads it. */
static __thread volatile sig_atomic_t forks_off __attribute__((tls_model("initial-exec")));

/* The flag is set before the mutex is taken, so that a signal handler that forks in between sees
 * it. */
void fork_off(void)
{
    forks_off = 1;
    pthread_mutex_lock(&process->forks);
}

void fork_back(const char *unused)
{
    (void)unused;
    pthread_mutex_unlock(&process->forks);
    forks_off = 0;
}

void details_lock(void)
{
    pthread_mutex_lock(&process->details);
}

void details_unlock(const char *unused)
{
    (void)unused;
    pthread_mutex_unlock(&process->details);
}

/* If forks_off is set, a signal handler of this thread forks while the thread is about to take, or
 * holds, process->forks; taking it here could deadlock. The child may inherit a half-made change,
 * but that is harmless: after a fork in a signal handler it must not call the library
 * (shmview.h). */
static void before_fork(void)
{
    if (!forks_off)
        pthread_mutex_lock(&process->forks);
}

static void after_fork_in_parent(void)
{
    if (!forks_off)
        pthread_mutex_unlock(&process->forks);
}

/* Runs in the only thread of the child. The kernel has zeroed the page, so nothing is locked. The
 * thread sanitizer cannot see that. */
static void after_fork_in_child(void)
{
#ifdef __SANITIZE_THREAD__
    if (!forks_off) {
        __tsan_mutex_pre_unlock(&process->forks, 0);
        __tsan_mutex_post_unlock(&process->forks, 0);
    }
#endif
    wait_forget();
    for (size_t i = 0; i < N_PROCESS_ROOMS; i++)
        if (forgets[i])
            forgets[i]();
}

void process_at_fork(enum process_room room, void (*forget)(void))
{
    forgets[room] = forget;
}

static void make_page(void)
{
    /* on Linux a zeroed mutex is an initialised one, here and in a child */
    void *p =
        mmap(NULL, sizeof *process, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || madvise(p, sizeof *process, MADV_WIPEONFORK)) {
        init_error = errno;
        return;
    }
    process = p; /* before the handlers are registered, because they use it */
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
        init_error = ENOMEM;
}

/* As the library is loaded, because prepare handlers run in reverse order. Those that the program
 * registers later run before before_fork(), and may use the library. In an archive the priority
 * lets this run before constructors of the program.
 *
 * The handlers of a replaced malloc() must run after before_fork(), because another thread may
 * allocate memory where forks wait for it. Such an allocator registers them at its first call. */
__attribute__((constructor(102))) static void init_at_load(void)
{
    void *volatile memory = malloc(1);
    free(memory);
    pthread_once(&once, make_page);
}

int process_init(void)
{
    pthread_once(&once, make_page);
    spins_allowed(); /* makes its system call now, not in the first contended lock */
    return init_error ? fail_errno("a page that is wiped on fork", init_error) : 0;
}

uint32_t process_epoch(void)
{
    uint32_t epoch = atomic_load_explicit(&process->epoch, memory_order_acquire);
    if (epoch)
        return epoch;
    pthread_mutex_lock(&process->mutex);
    epoch = atomic_load_explicit(&process->epoch, memory_order_relaxed);
    if (!epoch) {
        epoch = ++last_epoch;
        atomic_store_explicit(&process->epoch, epoch, memory_order_release);
    }
    pthread_mutex_unlock(&process->mutex);
    return epoch;
}
