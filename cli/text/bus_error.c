/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/bus_error.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/shell/cli.h"

#define STEP_NS    1000000
#define STEPS_MOST 5000 /* the daemon looks at all segments every half a second */

/* Where the handler goes on; NULL: it ends the program. One thread touches segments. */
static sigjmp_buf *volatile way_out;

/* Whether the handler waits instead, and for how many more steps. */
static volatile sig_atomic_t waits, steps_left;

static bus_error_end *before_end;

/* The program exits without cleaning up, because a mutex of the library may be locked. To the
 * daemon and to other clients that is a death. */
static void end_program(const char *text)
{
    if (before_end)
        before_end();
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(EXIT_FAILED);
    _exit(EXIT_FAILED);
}

/* The access is repeated when the handler returns. */
static void await_repair(void)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    int before = errno;
    if (steps_left-- == 0)
        end_program("shmviewctl: a client has truncated the memory of a segment, and no daemon has "
                    "restored it\n");
    nanosleep(&step, NULL);
    errno = before;
}

static void on_bus_error(int signal)
{
    (void)signal;
    if (waits) {
        await_repair();
        return;
    }
    if (way_out)
        siglongjmp(*way_out, 1);
    end_program("shmviewctl: the segment's memory is gone: a client has truncated it; remove the "
                "segment\n");
}

void bus_error_catch(void)
{
    struct sigaction action = {.sa_handler = on_bus_error};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void bus_error_at_end(bus_error_end *f)
{
    before_end = f;
}

bool bus_error_guard(void (*f)(void *arg), void *arg)
{
    sigjmp_buf here;
    if (sigsetjmp(here, true) == 0) {
        way_out = &here;
        f(arg);
        way_out = NULL;
        return true;
    }
    way_out = NULL;
    return false;
}

void bus_error_await(void (*f)(void *arg), void *arg)
{
    steps_left = STEPS_MOST;
    waits = 1;
    f(arg);
    waits = 0;
}
