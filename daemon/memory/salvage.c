/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/salvage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/memory/sealed.h"

/* Makes room for one more element. Returns whether there is some. */
static bool grow(void *array, size_t n, size_t *most, size_t bytes)
{
    void *old, *new;
    if (n < *most)
        return true;
    memcpy(&old, array, sizeof old);
    size_t more = *most ? *most * 2 : 64;
    if (!(new = realloc(old, more * bytes)))
        return false;
    memcpy(array, &new, sizeof new);
    *most = more;
    return true;
}

int salvage_want(struct salvage *s, uint64_t device, uint64_t inode)
{
    if (!grow(&s->inodes, s->n_inodes, &s->inodes_most, sizeof *s->inodes))
        return -ENOMEM;
    if (!(inode & SEALED_HUGE))
        s->device = device;
    s->inodes[s->n_inodes++] = inode;
    return 0;
}

int salvage_ask(struct salvage *s, uint32_t pid)
{
    if (pid == 0 || (s->n_pids && s->pids[s->n_pids - 1] == pid))
        return 0;
    if (!grow(&s->pids, s->n_pids, &s->pids_most, sizeof *s->pids))
        return -ENOMEM;
    s->pids[s->n_pids++] = pid;
    return 0;
}

static int compare_inodes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int compare_pids(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Whether the entry of /proc/PID/fd is one of our memfds, by its name; the name proves nothing. */
static bool has_our_name(int directory, const char *entry)
{
    char link[64];
    ssize_t n = readlinkat(directory, entry, link, sizeof link);
    return n >= (ssize_t)(sizeof SEALED_LINK - 1) &&
           memcmp(link, SEALED_LINK, sizeof SEALED_LINK - 1) == 0;
}

static int lack(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
}

/* Returns 1 if the entry is a missing object, 0 if not, or -errno: this process lacks something. */
static int is_wanted(const struct salvage *s, int directory, const char *entry)
{
    struct stat st;
    if (!has_our_name(directory, entry))
        return 0;
    CLEANUP_FD int fd = openat(directory, entry, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return lack();
    if (sealed_mark(fd, &st) || (st.st_dev != s->device && !(st.st_ino & SEALED_HUGE)))
        return 0;
    uint64_t inode = st.st_ino;
    return bsearch(&inode, s->inodes, s->n_inodes, sizeof inode, compare_inodes) &&
           !sealed_has(st.st_ino);
}

/* The process may replace the descriptor between two calls. Therefore sealed_adopt() checks what
 * was opened, and opening a FIFO or a terminal has no effect. */
static int look_at(const struct salvage *s, uint32_t pid)
{
    char path[32];
    int r = 0;
    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return lack();
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        r = is_wanted(s, dirfd(dir), e->d_name);
        if (r <= 0)
            continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        r = fd < 0 ? lack() : sealed_adopt(fd);
    }
    closedir(dir);
    return r;
}

int salvage_run(struct salvage *s)
{
    int r = 0;
    if (s->n_inodes == 0 || s->n_pids == 0)
        return 0;
    qsort(s->inodes, s->n_inodes, sizeof *s->inodes, compare_inodes);
    qsort(s->pids, s->n_pids, sizeof *s->pids, compare_pids);
    for (size_t i = 0; i < s->n_pids && r == 0; i++)
        if (i == 0 || s->pids[i] != s->pids[i - 1])
            r = look_at(s, s->pids[i]);
    return r;
}

void salvage_deinit(struct salvage *s)
{
    free(s->inodes);
    free(s->pids);
}
