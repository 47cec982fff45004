/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <err.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/shmview.h>

#include "plan.h"

#define PATIENCE_NS 10000000000

extern char **environ;

int worker_start(const struct worker *worker)
{
    char index[12], count[12];
    char *const argv[] = {
        "phases", WORKER_OPTION, (char *)worker->segment,         (char *)step_name(worker->step),
        index,    count,         worker->dies ? "dies" : "lives", NULL};
    snprintf(index, sizeof index, "%d", worker->index);
    snprintf(count, sizeof count, "%d", worker->count);

    pid_t pid;
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
        errx(1, "cannot start worker %d", worker->index);
    return pid;
}

static struct worker parse(char **arguments)
{
    struct worker worker = {.segment = arguments[0],
                            .step = step_find(arguments[1]),
                            .index = atoi(arguments[2]),
                            .count = atoi(arguments[3]),
                            .dies = strcmp(arguments[4], "dies") == 0};
    if (worker.step == N_STEPS || worker.index < 0 || worker.index >= worker.count)
        errx(2, "%s is only for the program's own use", WORKER_OPTION);
    return worker;
}

static struct range range_of(const struct worker *worker, size_t n)
{
    size_t index = (size_t)worker->index;
    size_t count = (size_t)worker->count;
    return (struct range){n * index / count, n * (index + 1) / count};
}

/* Adds this worker's part to the common result. Only this needs the lock: the
 * ranges of the workers do not touch each other. */
static int merge(const struct worker *worker, struct shmview_segment *segment,
                 const struct arrays *arrays, const struct partial *partial)
{
    struct shmview_death death;
    int result = shmview_lock(segment);
    if (result < 0)
        errx(1, "worker %d: lock: %s", worker->index, shmview_error_text());
    if (worker->dies)
        raise(SIGKILL);
    if (result == SHMVIEW_OWNER_DIED) {
        /* What that one added may be half there; only the parent can start anew. */
        shmview_owner_died(segment, &death);
        warnx("worker %d: '%s' (process %u) left the result half written, giving up", worker->index,
              death.command, death.pid);
        shmview_unlock_not_repaired(segment);
        return 1;
    }
    step_merge(worker->step, arrays, partial);
    shmview_unlock(segment);
    return 0;
}

int worker_main(char **arguments)
{
    const struct worker worker = parse(arguments);
    struct shmview_connection *connection;
    struct shmview_segment *segment;
    struct shmview_phase phase;
    struct arrays arrays = {0};
    if (shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &connection) < 0 ||
        shmview_attach(connection, worker.segment, SHMVIEW_WRITE, 0, &segment) < 0 ||
        shmview_wait_phase(segment, step_layout(worker.step), 0, shmview_deadline(PATIENCE_NS),
                           &phase) < 0 ||
        plan_open(segment, step_layout(worker.step), &arrays) < 0)
        errx(1, "worker %d: %s", worker.index, shmview_error_text());

    struct partial partial;
    step_run(worker.step, &arrays, range_of(&worker, arrays.n), &partial);
    int status = merge(&worker, segment, &arrays, &partial);
    shmview_detach(segment);
    shmview_disconnect(connection);
    return status;
}
