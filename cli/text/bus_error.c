/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/bus_error.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "cli/shell/cli.h"

/* Where the handler goes on; NULL: it ends the program. One thread touches segments. */
static sigjmp_buf *volatile way_out;

/* A handler can only call functions that are safe in one, so it writes a constant text and exits
 * without cleaning up. To the daemon and to other clients that is a death. */
static void on_bus_error(int signal)
{
    if (way_out)
        siglongjmp(*way_out, 1);
    static const char text[] = "shmviewctl: the segment's memory is gone: a program that has it "
                               "attached for writing has truncated it; remove the segment\n";
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(EXIT_FAILED);
    _exit(EXIT_FAILED);
}

void bus_error_catch(void)
{
    struct sigaction action = {.sa_handler = on_bus_error};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
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
