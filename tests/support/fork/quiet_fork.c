/* SPDX-License-Identifier: Apache-2.0 */
/* A library to preload: fork() waits until every other thread of the process sleeps.
 *
 * The address sanitizer of gcc 12 has no handlers of pthread_atfork(). If another thread holds a
 * lock of its allocator at a fork, the child never gets that lock. A thread that holds one runs, so
 * a thread that sleeps holds none. The forking thread of an interpreter holds the GIL or GVL, so
 * only threads outside of the interpreter, above all those that begin or end, can wake up between
 * the last look and the fork. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* After so many looks fork() no longer waits: some thread may never sleep. */
#define LOOKS 1000
static const struct timespec pause_between = {.tv_nsec = 200000};

/* Returns whether the thread runs or can run. */
static bool runs(int tasks, const char *id)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "%s/stat", id);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && strlen(name_end) > 2 && strchr("RD", name_end[2]);
}

static bool another_runs(void)
{
    bool found = false;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && !found && (e = readdir(tasks)) != NULL;)
        found = e->d_name[0] != '.' && atoi(e->d_name) != gettid() && runs(dirfd(tasks), e->d_name);
    if (tasks)
        closedir(tasks);
    return found;
}

static void before_fork(void)
{
    for (int i = 0; i < LOOKS && another_runs(); i++)
        nanosleep(&pause_between, NULL);
}

/* Registers before any other library does, so that the handler runs after all others. */
__attribute__((constructor)) static void start(void)
{
    pthread_atfork(before_fork, NULL, NULL);
}
