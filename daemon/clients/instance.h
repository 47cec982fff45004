/* SPDX-License-Identifier: Apache-2.0 */
/* One daemon an instance. The lock is a file beside the socket, where only the instance's
 * own user can write: nobody else can take it. A second one lies among the instance's objects,
 * for daemons that share /dev/shm and not their files, as those of two containers may: they
 * would sweep each other's objects. */
#ifndef DAEMON_INSTANCE_H
#define DAEMON_INSTANCE_H

#include "common/base/address.h"

#define INSTANCE_LOCK_OBJECT "+daemon"

struct instance_lock {
    char name[sizeof(address_path) + sizeof ".lock"]; /* of the file, in dir */
    int dir;                                          /* borrowed */
    int file_fd, object_fd;
};

/* Takes the lock of the instance that is called instance, for the life of the process, and
 * opens the directory of its objects. dir is that of the path socket, and is borrowed until
 * instance_unlock(). Returns 0 and owes that, or -errno and has logged the cause. */
int instance_lock(struct instance_lock *lock, int dir, const char *socket, const char *instance);
void instance_unlock(struct instance_lock *lock);

/* One lock: the file of that name in the directory dir, which is this user's own. Returns a
 * descriptor to keep open; -EBUSY if another process has it; -EPERM if it is another user's, or
 * no file; or -errno. */
int instance_lock_file(int dir, const char *name);

#endif
