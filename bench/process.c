/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define WAIT_NS 10000000000

void cpus_read(struct cpus *ret)
{
    *ret = (struct cpus){0};
    sched_getaffinity(0, sizeof ret->all, &ret->all);
    for (unsigned i = 0; i < CPU_SETSIZE && ret->n < CPUS_MAX; i++)
        if (CPU_ISSET(i, &ret->all))
            ret->cpu[ret->n++] = i;
}

const char *place_name(enum place place)
{
    static const char *const names[] = {"two cores", "same core", "not pinned"};
    return names[place];
}

bool place_exists(const struct cpus *cpus, enum place place)
{
    return place != PLACE_TWO || cpus->n >= 2;
}

void place_process(const struct cpus *cpus, enum place place, int side, pid_t pid)
{
    cpu_set_t set = cpus->all;
    if (place != PLACE_FREE) {
        CPU_ZERO(&set);
        CPU_SET(cpus->cpu[place == PLACE_TWO ? side % cpus->n : 0], &set);
    }
    if (pid == 0) {
        sched_setaffinity(0, sizeof set, &set);
        return;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            sched_setaffinity((pid_t)strtol(e->d_name, NULL, 10), sizeof set, &set);
    closedir(dir);
}

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int wait_for(const volatile uint32_t *word, uint32_t value)
{
    int64_t deadline = now_ns() + WAIT_NS;
    while (*word < value) {
        if (now_ns() > deadline)
            return -1;
        usleep(50);
    }
    return 0;
}

pid_t child_start(void (*run)(void *), void *arg)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        run(arg);
    _exit(0);
}

void child_end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

int failed(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return -1;
}
