/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/stop.h"

#include <signal.h>

#include <shmview/shmview.h>

static volatile sig_atomic_t wanted;

static void on_signal(int signal)
{
    (void)signal;
    wanted = 1;
}

void stop_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool stop_is_wanted(void)
{
    return wanted;
}

int64_t stop_slice(int64_t end)
{
    int64_t slice = shmview_deadline(STOP_SLICE_NS);
    return slice < end ? slice : end;
}
