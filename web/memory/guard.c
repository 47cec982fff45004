/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#define STATUS_LOST 1
#define STEP_NS     1000000
#define STEPS_MOST  5000 /* the daemon looks at all segments every half a second */

/* Where the handler goes on; NULL: it waits. */
static _Thread_local sigjmp_buf *volatile way_out;

/* The page that this thread waits for, and for how many steps already. */
static _Thread_local uintptr_t volatile missing;
static _Thread_local unsigned volatile n_steps;

/* Whether the page can be read. The kernel reads a word of it, and reports an error where an access
 * would raise the signal. It does not sleep, because the time of the wait is over at once. */
static bool is_there(uintptr_t page)
{
    const struct timespec at_once = {0};
    return syscall(SYS_futex, page, FUTEX_WAIT_PRIVATE, 0, &at_once, NULL, 0) == 0 ||
           errno != EFAULT;
}

/* Calls of the library outside guard_run() read control objects, and cannot be left halfway. So the
 * access is repeated until the daemon has restored the size of the object. */
static void await_repair(uintptr_t page)
{
    static const char text[] = "shmviewctl: web: a client has truncated the memory of a segment, "
                               "and no daemon has restored it\n";
    const struct timespec step = {.tv_nsec = STEP_NS};
    int before = errno;
    n_steps = page == missing ? n_steps + 1 : 0;
    missing = page;
    if (n_steps > STEPS_MOST) {
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(STATUS_LOST);
    }
    nanosleep(&step, NULL);
    if (is_there(page))
        missing = 0; /* a later truncation begins another wait */
    errno = before;
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (way_out)
        siglongjmp(*way_out, 1);
    await_repair((uintptr_t)info->si_addr & ~(uintptr_t)4095);
}

void guard_init(void)
{
    /* The signal is not blocked in the handler, so that no jump must restore a mask: that would be
     * a system call for each read. */
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_NODEFER | SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

bool guard_run(int (*f)(void *arg), void *arg, int *ret)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 0)) {
        way_out = NULL;
        return false;
    }
    way_out = &here;
    *ret = f(arg);
    way_out = NULL;
    return true;
}

void guard_sign(struct shmview_segment *segment)
{
    uint64_t version;
    shmview_read_begin(segment, &version); /* a later call reports the same error */
}
