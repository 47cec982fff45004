/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include <err.h>
#include <string.h>
#include <sys/wait.h>

#include "worker.h"

static int tell_end(enum step step, int index, int pid, int status)
{
    if (WIFSIGNALED(status))
        warnx("step %s: worker %d (process %d) was killed by signal %d (%s)", step_name(step),
              index, pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        warnx("step %s: worker %d (process %d) failed with status %d", step_name(step), index, pid,
              WEXITSTATUS(status));
    return status != 0;
}

int crew_run(const char *segment, enum step step, int n_workers, int dies)
{
    int pids[CREW_MAX];
    for (int i = 0; i < n_workers; i++) {
        struct worker worker = {segment, step, i, n_workers, dies && i == 0};
        pids[i] = worker_start(&worker);
    }

    int n_failed = 0;
    for (int i = 0; i < n_workers; i++) {
        int status;
        if (waitpid(pids[i], &status, 0) != pids[i])
            err(1, "waitpid");
        n_failed += tell_end(step, i, pids[i], status);
    }
    return n_failed;
}
