/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/instance.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/util.h"
#include "stress/arena.h"

#define SHM_DIRECTORY "/dev/shm"
#define PATIENCE_NS   10000000000
#define LOOK_US       2000

static void become_daemon(const struct instance *instance, const char *program)
{
    sigset_t none;
    /* the daemon leaves in order even if this program does not */
    prctl(PR_SET_PDEATHSIG, SIGINT);
    int log = open(instance->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setpgid(0, 0); /* an interrupt from the terminal must not reach the daemon */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl(program, program, "--socket", instance->socket, "--config", "/dev/null", (char *)NULL);
    _exit(127);
}

/* Returns whether its log shows that it listens. */
static bool listens(struct instance *instance)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(instance->log, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, ", instance ");
        found = at && strstr(at, ", listening on ") &&
                sscanf(at, ", instance %63[^,]", instance->name) == 1;
    }
    if (f)
        fclose(f);
    return found;
}

static void show_log(const struct instance *instance)
{
    char line[512];
    FILE *f = fopen(instance->log, "re");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "stress: shmviewd: %s", line);
    if (f)
        fclose(f);
}

static void remove_directory(const struct instance *instance)
{
    unlink(instance->socket);
    unlink(instance->log);
    rmdir(instance->directory);
}

/* Waits until the daemon has ended. Returns its status, or -1 if that takes too long. */
static int wait_for_end(const struct instance *instance)
{
    int status;
    for (int64_t until = now_ns() + PATIENCE_NS; now_ns() < until; usleep(LOOK_US))
        if (waitpid(instance->pid, &status, WNOHANG) == instance->pid)
            return status;
    kill(instance->pid, SIGKILL);
    waitpid(instance->pid, &status, 0);
    return -1;
}

int instance_start(struct instance *instance, const char *program)
{
    strcpy(instance->directory, "/tmp/shmview-stress.XXXXXX");
    if (!mkdtemp(instance->directory)) {
        perror("stress: a directory");
        return -1;
    }
    snprintf(instance->socket, sizeof instance->socket, "%s/socket", instance->directory);
    snprintf(instance->log, sizeof instance->log, "%s/log", instance->directory);
    instance->pid = fork();
    if (instance->pid == 0)
        become_daemon(instance, program);
    int64_t until = now_ns() + PATIENCE_NS;
    while (instance->pid > 0 && now_ns() < until && waitpid(instance->pid, NULL, WNOHANG) == 0) {
        if (listens(instance))
            return setenv("SHMVIEW_SOCKET", instance->socket, 1);
        usleep(LOOK_US);
    }
    fprintf(stderr, "stress: %s does not start\n", program);
    show_log(instance);
    if (instance->pid > 0)
        kill(instance->pid, SIGKILL);
    remove_directory(instance);
    return -1;
}

/* Removes the directory of this instance and the objects in it. */
static void remove_objects(const struct instance *instance)
{
    char path[120];
    snprintf(path, sizeof path, SHM_DIRECTORY "/shmview.%s", instance->name);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        report(VIOLATION_LEFT, "%s/%s", path, e->d_name);
        unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
    rmdir(path);
}

void instance_stop(struct instance *instance)
{
    if (instance->pid > 0) {
        kill(instance->pid, SIGINT);
        int status = wait_for_end(instance);
        if (status) {
            report(VIOLATION_CRASH, "shmviewd ended with status 0x%x", (unsigned)status);
            show_log(instance);
        }
    }
    remove_objects(instance);
    if (access(instance->socket, F_OK) == 0)
        report(VIOLATION_LEFT, "%s", instance->socket);
    remove_directory(instance);
}
