/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#define STATUS_LOST 1

/* Where the handler goes on; NULL: it ends the program. */
static _Thread_local sigjmp_buf *volatile way_out;

static void on_bus_error(int signal)
{
    (void)signal;
    if (way_out)
        siglongjmp(*way_out, 1);
    _exit(STATUS_LOST);
}

void guard_init(void)
{
    /* The signal is not blocked in the handler, so that no jump must restore a mask: that would be
     * a system call for each read. */
    struct sigaction action = {.sa_handler = on_bus_error, .sa_flags = SA_NODEFER};
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
