/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"

static int fd = -1;
static char path[sizeof DIRECTORY_SHM + NAME_MAX + 1];

int directory_fd(void)
{
    return fd;
}

const char *directory_path(void)
{
    return path;
}

/* Opens `path` if it is a directory of this user, and corrects its mode. Returns a descriptor,
 * which the caller owns; -EPERM if the directory belongs to another user; or another -errno. */
static int open_own(void)
{
    CLEANUP_FD int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (dir < 0 || fstat(dir, &st))
        return -errno;
    if (st.st_uid != geteuid())
        return -EPERM;
    if ((st.st_mode & 07777) != 0700 && fchmod(dir, 0700))
        return -errno;
    return steal_fd(&dir);
}

/* Whether open_own() failed because the name is free, or is used by something that is not a
 * directory of this user. Any other error is a failure of the machine. */
static bool is_not_own(int error)
{
    return error == -ENOENT || error == -EPERM || error == -EACCES || error == -ENOTDIR ||
           error == -ELOOP;
}

/* Opens the directory that an earlier daemon made because the plain name was taken. Sets `path`.
 * Returns a descriptor, or -errno; is_not_own() if there is no such directory. */
static int open_suffixed(const char *plain)
{
    size_t n = strlen(plain);
    int r = -ENOENT;
    DIR *shm = opendir(DIRECTORY_SHM);
    if (!shm)
        return -errno;
    for (struct dirent *e; is_not_own(r) && (e = readdir(shm));)
        if (strncmp(e->d_name, plain, n) == 0 && e->d_name[n] == '~') {
            snprintf(path, sizeof path, DIRECTORY_SHM "/%s", e->d_name);
            r = open_own();
        }
    closedir(shm);
    return r;
}

/* Makes a directory with a random suffix, because another user has taken the plain name. That user
 * cannot guess the suffix and take this name too. Returns a descriptor or -errno. */
static int make_suffixed(const char *plain)
{
    uint32_t suffix;
    if (getrandom(&suffix, sizeof suffix, 0) != sizeof suffix)
        return -errno;
    snprintf(path, sizeof path, DIRECTORY_SHM "/%s~%08x", plain, suffix);
    if (mkdir(path, 0700))
        return -errno;
    log_warning(DIRECTORY_SHM "/%s belongs to another user: the objects of this instance are in %s",
                plain, path);
    return open_own();
}

/* Opens the directory with the plain name or, if that fails, one with a suffix, and makes one if
 * there is neither. Sets `path`. Returns a descriptor or -errno. */
static int open_or_make(const char *plain)
{
    snprintf(path, sizeof path, DIRECTORY_SHM "/%s", plain);
    int r = open_own();
    if (is_not_own(r))
        r = open_suffixed(plain);
    if (!is_not_own(r))
        return r;
    snprintf(path, sizeof path, DIRECTORY_SHM "/%s", plain);
    if (mkdir(path, 0700) && errno != EEXIST)
        return -errno;
    r = open_own(); /* EEXIST may have been a directory of this user */
    return is_not_own(r) ? make_suffixed(plain) : r;
}

int directory_open(const char *instance)
{
    char plain[NAME_MAX - 16];
    if (snprintf(plain, sizeof plain, "shmview.%s", instance) >= (int)sizeof plain)
        return -ENAMETOOLONG;
    int r = open_or_make(plain);
    if (r < 0)
        return r;
    fd = r;
    return 0;
}

void directory_close(void)
{
    close_fdp(&fd);
    rmdir(path);
}
