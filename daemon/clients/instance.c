/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/way.h"
#include "daemon/memory/directory.h"

int instance_lock_file(int dir, const char *name)
{
    for (;;) {
        CLEANUP_FD int fd = openat(
            dir, name, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        struct stat mine, named;
        if (fd < 0)
            return -errno;
        if (fstat(fd, &mine))
            return -errno;
        if (!S_ISREG(mine.st_mode) || mine.st_uid != geteuid())
            return -EPERM;
        if (flock(fd, LOCK_EX | LOCK_NB))
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
        /* the daemon that held the lock before may have removed the name since openat(). Then this
         * lock is on a file that nobody else will find: try again */
        if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0) {
            if (mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
                return steal_fd(&fd);
        } else if (errno != ENOENT) {
            return -errno;
        }
    }
}

/* Removes the name while the lock is still held, so that it removes no file of a next daemon. */
static void unlock_file(int dir, const char *name, int *fd)
{
    if (*fd < 0)
        return;
    unlinkat(dir, name, 0);
    close_fdp(fd);
}

/* Takes the second lock. After an error the directory of the objects is closed again. */
static int lock_objects(struct instance_lock *lock, const char *instance)
{
    int r = directory_open(instance);
    if (r) {
        log_error("cannot make a directory in " DIRECTORY_SHM ": %s", strerror(-r));
        return r;
    }
    r = instance_lock_file(directory_fd(), INSTANCE_LOCK_OBJECT);
    if (r >= 0) {
        lock->object_fd = r;
        return 0;
    }
    log_error("instance %s: %s/" INSTANCE_LOCK_OBJECT ": %s", instance, directory_path(),
              r == -EBUSY ? "another shmviewd serves it" : strerror(-r));
    directory_close();
    return r;
}

int instance_lock(struct instance_lock *lock, int dir, const char *socket, const char *instance)
{
    *lock = (struct instance_lock){.dir = dir, .object_fd = -1};
    snprintf(lock->name, sizeof lock->name, "%s.lock", way_name(socket));
    int r = lock->file_fd = instance_lock_file(dir, lock->name);
    if (r < 0) {
        log_error("instance %s: %s.lock: %s", instance, socket,
                  r == -EBUSY ? "another shmviewd serves it" : strerror(-r));
        return r;
    }
    r = lock_objects(lock, instance);
    if (r)
        unlock_file(dir, lock->name, &lock->file_fd);
    return r;
}

void instance_unlock(struct instance_lock *lock)
{
    unlock_file(directory_fd(), INSTANCE_LOCK_OBJECT, &lock->object_fd);
    directory_close();
    unlock_file(lock->dir, lock->name, &lock->file_fd);
}
