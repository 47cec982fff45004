/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include <err.h>
#include <string.h>
#include <sys/wait.h>

#include "parts.h"
#include "worker.h"

static void report_end(enum step step, int index, int pid, int status)
{
    if (WIFSIGNALED(status))
        warnx("step %s: worker %d (process %d) was killed by signal %d (%s)", step_name(step),
              index, pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        warnx("step %s: worker %d (process %d) failed with status %d", step_name(step), index, pid,
              WEXITSTATUS(status));
}

void crew_run(const char *segment, const struct arrays *arrays, enum step step, int n_workers,
              int dies)
{
    int pids[CREW_MAX];
    for (int i = 0; i < n_workers; i++) {
        struct worker worker = {segment, step, i, n_workers, dies && i == 0};
        pids[i] = worker_start(&worker);
    }

    for (int n = 0; n < n_workers;) {
        int status, i = 0;
        pid_t pid = wait(&status);
        if (pid < 0)
            err(1, "wait");
        while (i < n_workers && pids[i] != pid)
            i++;
        if (i == n_workers)
            continue; /* a child that this process had before it ran this program */
        n++;
        report_end(step, i, pid, status);
        parts_give_up(arrays, i);
    }
}
