/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/listener.h"
#include "daemon/log.h"

int instance_lock_file(const char *path)
{
    for (;;) {
        CLEANUP_FD int fd =
            open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        struct stat mine, named;
        if (fd < 0)
            return -errno;
        if (fstat(fd, &mine))
            return -errno;
        if (!S_ISREG(mine.st_mode) || mine.st_uid != geteuid())
            return -EPERM;
        if (flock(fd, LOCK_EX | LOCK_NB))
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
        /* the one who had it before us may have removed the name meanwhile */
        if (lstat(path, &named) == 0) {
            if (mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
                return steal_fd(&fd);
        } else if (errno != ENOENT) {
            return -errno;
        }
    }
}

/* What another user has put where the lock of /dev/shm would be. */
static bool is_squatted(int error)
{
    return error == -EPERM || error == -EACCES || error == -ELOOP || error == -EISDIR ||
           error == -ENXIO;
}

static void unlock_file(const char *path, int *fd)
{
    if (*fd < 0)
        return;
    unlink(path);
    close_fdp(fd);
}

int instance_lock(struct instance_lock *lock, const char *socket, const char *instance)
{
    *lock = (struct instance_lock){.file_fd = -1, .object_fd = -1};
    snprintf(lock->path, sizeof lock->path, "%s.lock", socket);
    snprintf(lock->object, sizeof lock->object, "/dev/shm/shmview.%s+daemon", instance);
    int r = listener_make_directories(socket);
    if (r)
        return r;
    const char *where = lock->path;
    lock->file_fd = r = instance_lock_file(lock->path);
    if (r >= 0) {
        where = lock->object;
        lock->object_fd = r = instance_lock_file(lock->object);
        if (is_squatted(r)) {
            log_warning("%s is not ours (%s): going on without it", lock->object, strerror(-r));
            r = 0;
        }
    }
    if (r >= 0)
        return 0;
    log_error("instance %s: %s: %s", instance, where,
              r == -EBUSY ? "another shmviewd serves it" : strerror(-r));
    unlock_file(lock->path, &lock->file_fd);
    return r;
}

void instance_unlock(struct instance_lock *lock)
{
    unlock_file(lock->object, &lock->object_fd);
    unlock_file(lock->path, &lock->file_fd);
}
