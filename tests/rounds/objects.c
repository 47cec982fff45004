/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds/objects.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>

#define SEALED_MOST 10000

/* Returns how many slots are in use by the liveness object of that name. */
static unsigned slots_of(int directory, const char *name)
{
    struct shmview_liveness live;
    unsigned n = 0;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (pread(fd, &live, sizeof live, 0) == sizeof live)
        for (uint32_t k = 0; k < live.high; k++)
            n += live.generation[k] && !(live.generation[k] & SHMVIEW_GENERATION_DEAD);
    close(fd);
    return n;
}

static unsigned count_files(const char *instance, unsigned *slots)
{
    char path[120];
    unsigned n = 0;
    snprintf(path, sizeof path, "/dev/shm/shmview.%s", instance);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "+daemon") == 0 || strcmp(e->d_name, "+presence") == 0)
            continue;
        n++;
        if (strstr(e->d_name, ".liveness"))
            *slots += slots_of(dirfd(dir), e->d_name);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* The daemon may have several descriptors of one object. */
static unsigned count_sealed(pid_t daemon, unsigned *slots)
{
    static ino_t seen[SEALED_MOST];
    char path[64], link[300];
    unsigned n = 0, i;
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", daemon);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        ssize_t got = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        link[got > 0 ? got : 0] = '\0';
        if (strncmp(link, "/memfd:shmview:", 15) || fstatat(dirfd(dir), e->d_name, &st, 0))
            continue;
        for (i = 0; i < n && seen[i] != st.st_ino; i++)
            continue;
        if (i < n || n == SEALED_MOST)
            continue;
        seen[n++] = st.st_ino;
        if (strstr(link, ".liveness"))
            *slots += slots_of(dirfd(dir), e->d_name);
    }
    if (dir)
        closedir(dir);
    return n;
}

unsigned objects_count(const char *instance, pid_t daemon, unsigned *ret_slots)
{
    *ret_slots = 0;
    unsigned n = count_files(instance, ret_slots);
    return daemon ? n + count_sealed(daemon, ret_slots) : n;
}
