/* SPDX-License-Identifier: Apache-2.0 */
/* Makes sure that only one daemon serves an instance. Two daemons would remove each other's
 * objects.
 *
 * The daemon holds flock() on two files, which end with the process in any case:
 *   - SOCKET.lock beside the socket. Only the user of the instance can write that directory, so
 *     nobody else can take the lock.
 *   - INSTANCE_LOCK_OBJECT among the objects in /dev/shm. Two containers may share /dev/shm and not
 *     their other files; their daemons would meet only here.
 *
 * A child of a daemon has both locks until its exec, for example a keeper (daemon/memory/keeping.c)
 * that is being started when the daemon is killed. A daemon also has a lock of POSIX on each file,
 * which no child inherits, so that the next daemon can wait for the end of such a moment. */
#ifndef DAEMON_INSTANCE_H
#define DAEMON_INSTANCE_H

#include "common/base/address.h"

#define INSTANCE_LOCK_OBJECT "+daemon"

/* Both locks. Filled by instance_lock(). */
struct instance_lock {
    char name[sizeof(address_path) + sizeof ".lock"]; /* of the file, in dir */
    int dir;                                          /* borrowed */
    int file_fd, object_fd;                           /* owned; the locks end with them */
};

/* Takes both locks of the instance that has that name, and opens the directory of its objects.
 * socket is a path, and dir the directory of it, which is borrowed until instance_unlock(). Does
 * not wait for another daemon that lives. Returns 0, and the caller owes instance_unlock(); or logs
 * the cause and returns -errno. */
int instance_lock(struct instance_lock *lock, int dir, const char *socket, const char *instance);
/* Removes both files and gives the locks back. Closes the directory of the objects. */
void instance_unlock(struct instance_lock *lock);

/* Takes one lock: the file with that name in the directory dir; creates it if needed. Returns a
 * descriptor, which the caller must keep open. Returns -EBUSY if another process holds the lock,
 * -EPERM if the file belongs to another user or is not a regular file, or another -errno. */
int instance_lock_file(int dir, const char *name);
/* Like instance_lock_file(), but waits for up to 2 s while only a child of a daemon that has ended
 * holds the lock. */
int instance_lock_when_free(int dir, const char *name);

#endif
