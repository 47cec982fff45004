/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include <shmview/shmview.h>

#include "support/await.h"
#include "support/place.h"

struct keeper_news {
    _Atomic pid_t pid; /* 0: no daemon runs */
    atomic_uint deaths;
    atomic_uint ends_at; /* of the next daemon */
    atomic_bool paused, leaves, at_point;
};

/* --- The keeper's process ------------------------------------------------ */

static pid_t launch(const struct keeper *keeper)
{
    const char *program = daemon_program();
    char point[16];
    snprintf(point, sizeof point, "%u", atomic_exchange(&keeper->news->ends_at, 0));
    pid_t pid = fork();
    if (pid)
        return pid;
    int log = open(keeper->daemon.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("SHMVIEWD_ENDS_AT", point, 1);
    execl(program, program, "--socket", keeper->daemon.socket, (char *)NULL);
    _exit(127);
}

static void keep(struct child *me, void *arg)
{
    const struct keeper *keeper = arg;
    struct keeper_news *news = keeper->news;
    int status = 0;
    for (;;) {
        pid_t pid = launch(keeper);
        atomic_store(&news->pid, pid);
        if (waitpid(pid, &status, 0) != pid)
            _exit(3);
        atomic_store(&news->pid, 0);
        bool at_point = WIFEXITED(status) && WEXITSTATUS(status) == POINT_STATUS;
        bool died = at_point || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        bool gone = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!died && (!gone || atomic_load(&news->leaves)))
            break;
        if (at_point)
            atomic_store(&news->at_point, true);
        atomic_fetch_add(&news->deaths, 1);
        if (atomic_load(&news->paused))
            child_pause(me);
    }
    if (status)
        fprintf(stderr, "a daemon ended with status 0x%x\n", (unsigned)status);
    _exit(status ? 2 : 0);
}

/* --- The test's ---------------------------------------------------------- */

void keeper_find_instance(struct keeper *keeper)
{
    char line[512];
    FILE *f = fopen(keeper->daemon.log, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        if (at && sscanf(at, ", instance %63[^,]", keeper->daemon.instance) == 1)
            break;
    }
    fclose(f);
    ck_assert(keeper->daemon.instance[0]);
    place_note_instance(keeper->daemon.instance);
}

void keeper_start(struct keeper *keeper, const char *name, unsigned ends_at)
{
    *keeper = (struct keeper){0};
    struct daemon *d = &keeper->daemon;
    snprintf(d->socket, sizeof d->socket, "%s/%s", place_directory(), name);
    snprintf(d->log, sizeof d->log, "%s.log", d->socket);
    keeper->news =
        mmap(NULL, sizeof *keeper->news, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(keeper->news, MAP_FAILED);
    keeper->is_armed = ends_at > 0;
    atomic_store(&keeper->news->ends_at, ends_at);
    child_start(&keeper->child, keep, keeper);
}

unsigned keeper_deaths(const struct keeper *keeper)
{
    return atomic_load(&keeper->news->deaths);
}

bool keeper_at_point(const struct keeper *keeper)
{
    return atomic_load(&keeper->news->at_point);
}

static pid_t running(const struct keeper *keeper)
{
    pid_t pid;
    AWAIT((pid = atomic_load(&keeper->news->pid)) > 0);
    return pid;
}

void keeper_kill(struct keeper *keeper)
{
    unsigned before = keeper_deaths(keeper);
    atomic_store(&keeper->news->paused, true);
    kill(running(keeper), SIGKILL);
    AWAIT(keeper_deaths(keeper) > before);
}

void keeper_go_on(struct keeper *keeper, unsigned ends_at)
{
    atomic_store(&keeper->news->ends_at, ends_at);
    atomic_store(&keeper->news->paused, false);
    child_cue(&keeper->child);
}

void keeper_replace(struct keeper *keeper)
{
    unsigned before = keeper_deaths(keeper);
    kill(running(keeper), SIGTERM);
    AWAIT(keeper_deaths(keeper) > before);
}

/* Waits for a daemon that answers, because such a daemon has set up its signal handlers. Returns
 * its pid. It must have run before and after the answer, because a daemon may end at its point
 * and the next one may answer. */
static pid_t await_answer(const struct keeper *keeper)
{
    struct shmview_connection *c = NULL;
    pid_t pid;
    do {
        pid = running(keeper);
        AWAIT(shmview_connect(keeper->daemon.socket, SHMVIEW_CONNECT_NO_START, &c) == 0);
        shmview_disconnect(c);
    } while (running(keeper) != pid);
    return pid;
}

/* Waits until the daemon pid has ended: the keeper has exited, or the next daemon runs. Returns
 * whether the keeper has exited; then stores its status. */
static bool has_ended(struct keeper *keeper, pid_t pid, int *status)
{
    bool left = false;
    AWAIT((left = waitpid(keeper->child.pid, status, WNOHANG) == keeper->child.pid) ||
          (atomic_load(&keeper->news->pid) > 0 && atomic_load(&keeper->news->pid) != pid));
    return left;
}

bool keeper_stop(struct keeper *keeper)
{
    int status;
    char left[2048] = "";
    pid_t pid;
    struct daemon *d = &keeper->daemon;
    atomic_store(&keeper->news->leaves, true);
    do {
        if (waitpid(keeper->child.pid, &status, WNOHANG) == keeper->child.pid)
            break;
        pid = await_answer(keeper);
        kill(pid, SIGINT);
    } while (!has_ended(keeper, pid, &status));
    bool at_point = keeper_at_point(keeper);
    close(keeper->child.fd);
    munmap(keeper->news, sizeof *keeper->news);
    ck_assert_msg(status == 0, "a daemon does not leave in order");
    ck_assert_msg(access(d->socket, F_OK) != 0, "the daemon left its socket");
    unsigned n = place_objects(d->instance, left, sizeof left);
    ck_assert_msg(n == 0, "the daemon left %u objects:\n%s", n, left);
    return at_point;
}
