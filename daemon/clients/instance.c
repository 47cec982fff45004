/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/way.h"
#include "daemon/memory/directory.h"

/* How long a lock is awaited that no daemon has, and how long between two attempts. */
#define CHILD_WAIT_MS  2000
#define CHILD_PAUSE_MS 5

#define OPEN_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Marks the lock as that of this process. Its children do not inherit this lock of POSIX, and it
 * ends with the process, or when this process closes any descriptor of the file. Without it the
 * next daemon waits for CHILD_WAIT_MS before it is refused. */
static void mark(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_SETLK, &whole);
}

/* Whether a process that has marked the lock lives. */
static bool is_marked(int dir, const char *name)
{
    struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CLEANUP_FD int fd = openat(dir, name, OPEN_FLAGS);
    return fd >= 0 && (fcntl(fd, F_GETLK, &found) || found.l_type != F_UNLCK);
}

int instance_lock_file(int dir, const char *name)
{
    for (;;) {
        CLEANUP_FD int fd = openat(dir, name, OPEN_FLAGS | O_CREAT, 0600);
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
            if (mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
                mark(fd);
                return steal_fd(&fd);
            }
        } else if (errno != ENOENT) {
            return -errno;
        }
    }
}

int instance_lock_when_free(int dir, const char *name)
{
    int r = instance_lock_file(dir, name);
    for (int ms = 0; r == -EBUSY && ms < CHILD_WAIT_MS && !is_marked(dir, name);
         ms += CHILD_PAUSE_MS) {
        poll(NULL, 0, CHILD_PAUSE_MS);
        r = instance_lock_file(dir, name);
    }
    return r;
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
    r = instance_lock_when_free(directory_fd(), INSTANCE_LOCK_OBJECT);
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
    int r = lock->file_fd = instance_lock_when_free(dir, lock->name);
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
