/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <err.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "parts.h"
#include "plan.h"

#define PATIENCE_NS 10000000000
#define LOOK_US     1000 /* pause of a worker without a part between two looks */

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

/* Adds a part to the common result. If this worker dies between the two states, the result may
 * contain the part partly or wholly, and the next owner of the lock cannot know which. */
static void merge(const struct worker *worker, const struct arrays *arrays, size_t part,
                  const struct partial *partial)
{
    arrays->parts[part] = PART_COUNTING;
    step_merge(worker->step, arrays, partial);
    if (worker->dies)
        raise(SIGKILL);
    arrays->parts[part] = PART_DONE;
}

/* Does parts until all are done. A worker without a part goes on looking, because another worker
 * may die and leave one. Only merging and taking parts needs the lock, because the parts do not
 * touch each other. */
static void work(const struct worker *worker, struct shmview_segment *segment,
                 const struct arrays *arrays)
{
    size_t part = (size_t)worker->index;
    struct partial partial;
    char who[32];
    snprintf(who, sizeof who, "worker %d", worker->index);
    if (arrays->parts[part] !=
        PART_TAKEN + worker->index) /* done by an earlier worker of this index */
        part = arrays->n_parts;
    for (;;) {
        if (part < arrays->n_parts) {
            step_run(worker->step, arrays, parts_range(arrays, part));
            step_count(worker->step, arrays, parts_range(arrays, part), &partial);
        }
        parts_lock(who, worker->step, segment, arrays);
        if (part < arrays->n_parts)
            merge(worker, arrays, part, &partial);
        part = parts_take(arrays, worker->index);
        size_t n_left = parts_left(arrays);
        shmview_unlock(segment);
        if (n_left == 0)
            return;
        if (part == arrays->n_parts)
            usleep(LOOK_US);
        else if (part < (size_t)worker->count)
            warnx("%s: takes over part %zu from worker %zu", who, part, part);
    }
}

int worker_main(char **arguments)
{
    const struct worker worker = parse(arguments);
    /* Without its parent a worker must end, because only the parent frees parts of dead workers. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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

    work(&worker, segment, &arrays);
    shmview_detach(segment);
    shmview_disconnect(connection);
    return 0;
}
