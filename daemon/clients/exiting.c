/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/exiting.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/clients/peer.h"

/* Of the flags of a thread (PF_EXITING of the kernel). Once set, it stays. */
#define FLAG_EXITING 0x4u

#define TEXT_BYTES 1024

/* Fields of /proc/PID/task/TID/stat, see proc(5). */
#define STAT_FLAGS   9
#define STAT_THREADS 20

/* What a look at all threads has found. */
struct threads {
    long n;
    long ids[EXITING_THREADS_MAX];
};

/* Reads a file of /proc into text. Returns whether it could. */
static bool read_text(int folder, const char *path, char text[TEXT_BYTES])
{
    CLEANUP_FD int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
    text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* Returns the pid of the process as the /proc of this daemon has it, or 0. It may be another one
 * than the client's socket reports, because /proc may belong to another pid namespace. */
static long pid_in_proc(int pidfd)
{
    char path[48], text[TEXT_BYTES];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    const char *p = read_text(AT_FDCWD, path, text) ? strstr(text, "\nPid:") : NULL;
    long pid = p ? strtol(p + sizeof "\nPid:" - 1, NULL, 10) : 0;
    return pid > 0 ? pid : 0;
}

/* Finds the flags of a thread and the number of threads of its process in the text of its file.
 * Returns whether it could. */
static bool parse_thread(const char *text, unsigned *ret_flags, long *ret_n_threads)
{
    /* the second field, the command, may have spaces and parentheses */
    const char *p = strrchr(text, ')');
    for (int field = 2; p && field < STAT_THREADS; field++) {
        p = strchr(p + 1, ' ');
        if (p && field + 1 == STAT_FLAGS)
            *ret_flags = (unsigned)strtoul(p, NULL, 10);
    }
    if (p)
        *ret_n_threads = strtol(p, NULL, 10);
    return p;
}

/* Reads the flags and the number from the file of the thread. tasks is the descriptor of
 * /proc/PID/task. */
static bool read_thread(int tasks, long tid, unsigned *ret_flags, long *ret_n_threads)
{
    char path[32], text[TEXT_BYTES];
    snprintf(path, sizeof path, "%ld/stat", tid);
    return read_text(tasks, path, text) && parse_thread(text, ret_flags, ret_n_threads);
}

static bool thread_is_exiting(int tasks, long tid)
{
    unsigned flags = 0;
    long n;
    return read_thread(tasks, tid, &flags, &n) && flags & FLAG_EXITING;
}

/* Lists the threads. Returns whether each of them is exiting and they are few enough. */
static bool list_exiting(DIR *dir, struct threads *ret)
{
    const struct dirent *e;
    ret->n = 0;
    rewinddir(dir);
    while ((e = readdir(dir))) {
        long tid = strtol(e->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        if (ret->n == EXITING_THREADS_MAX || !thread_is_exiting(dirfd(dir), tid))
            return false;
        ret->ids[ret->n++] = tid;
    }
    return ret->n > 0;
}

/* One listing is not enough: a thread that was listed may have started another one, which the
 * listing missed, before it began to exit. So the threads are listed twice, and counted between. If
 * both listings are equal, each of their threads existed when they were counted. If there were as
 * many, there were no others, and an exiting thread starts none. */
static bool all_are_exiting(DIR *dir, long pid)
{
    struct threads first, second;
    unsigned flags;
    long n = 0;
    return list_exiting(dir, &first) && read_thread(dirfd(dir), pid, &flags, &n) && n == first.n &&
           list_exiting(dir, &second) && second.n == first.n &&
           memcmp(first.ids, second.ids, (size_t)first.n * sizeof *first.ids) == 0;
}

/* Looks at the first thread of the process, from an open file. Returns whether it is exiting. */
static bool first_is_exiting(int stat, long *ret_n_threads)
{
    char text[TEXT_BYTES];
    unsigned flags = 0;
    ssize_t n = pread(stat, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return parse_thread(text, &flags, ret_n_threads) && flags & FLAG_EXITING;
}

static bool others_are_exiting(long pid)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    bool is_exiting = all_are_exiting(dir, pid);
    closedir(dir);
    return is_exiting;
}

bool process_first_is_exiting(int stat)
{
    long n = 0;
    return first_is_exiting(stat, &n) && n == 1 && first_is_exiting(stat, &n) && n == 1;
}

/* Looks at the first thread first, because in a process that lives it is rarely exiting. If it is,
 * most processes have no other thread, and need no listings. */
static bool looks_exiting(long pid)
{
    char path[64];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", pid, pid);
    CLEANUP_FD int stat = open(path, O_RDONLY | O_CLOEXEC);
    if (stat < 0 || !first_is_exiting(stat, &n))
        return false;
    return process_first_is_exiting(stat) || others_are_exiting(pid);
}

/* Returns the first thread of the list that is not exiting, or 0. */
static long list_living(DIR *dir)
{
    const struct dirent *e;
    while ((e = readdir(dir))) {
        unsigned flags = 0;
        long n, tid = strtol(e->d_name, NULL, 10);
        if (tid > 0 && read_thread(dirfd(dir), tid, &flags, &n) && !(flags & FLAG_EXITING))
            return tid;
    }
    return 0;
}

/* The first thread comes first, because it seldom ends before the others. */
long process_living_thread(int pidfd)
{
    char path[48];
    unsigned flags = 0;
    long n, tid = 0, pid = pid_in_proc(pidfd);
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    CLEANUP_FD int tasks = pid ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (tasks < 0)
        return 0;
    if (read_thread(tasks, pid, &flags, &n) && !(flags & FLAG_EXITING))
        return pid;
    DIR *dir = fdopendir(tasks);
    if (!dir)
        return 0;
    steal_fd(&tasks);
    tid = list_living(dir);
    closedir(dir);
    return tid;
}

int process_open_first(int pidfd)
{
    char path[64];
    long pid = pid_in_proc(pidfd);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", pid, pid);
    CLEANUP_FD int fd = pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || peer_has_ended(pidfd)) /* then the pid may be that of another process */
        return -1;
    return steal_fd(&fd);
}

bool process_is_exiting(int pidfd)
{
    long pid = pidfd < 0 ? 0 : pid_in_proc(pidfd);
    bool is_exiting = pid && looks_exiting(pid);
    /* the kernel gives the pid to another process only after the pidfd is readable, so if it is
     * not, the files were those of this process */
    return peer_has_ended(pidfd) || is_exiting;
}
