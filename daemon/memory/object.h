/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in the instance's directory below /dev/shm (directory.h). No other file opens or
 * removes one, so that the choice of backing stays here.
 *
 * Objects are mode 0600 and are handed out as descriptors only. A name that is
 * opened again is believed only if it is still the object that was created. */
#ifndef DAEMON_OBJECT_H
#define DAEMON_OBJECT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* In the directory: the name of a segment, or "+" id ".control" */
typedef char object_name[NAME_MAX + 1];

/* One object that this daemon created. */
struct object {
    object_name name; /* "" = none */
    dev_t device;
    ino_t inode;
};

/* How much an allocation could still get, in bytes: the least of what /dev/shm
 * has free and what memory and swap can take, less what other allocations were
 * promised and have not committed yet; and the size of /dev/shm, or the limit of the
 * daemon's control group if that is less. */
struct object_space {
    uint64_t free;
    uint64_t limit;
    bool of_group; /* limit is that of the control group */
};

/* That space now. Any thread. */
struct object_space object_space(void);

/* How many more objects there may be; UINT64_MAX: no limit is known. */
uint64_t object_count_free(void);

/* Promises bytes for objects that are wanted together or not at all. Returns 0 or -ENOSPC with
 * *ret_space filled; owes each byte to object_create_promised(), object_commit_promised() or
 * object_unpromise(). */
int object_promise(uint64_t bytes, struct object_space *ret_space);
/* The same without waiting for memory that is being given back: 0 or -EAGAIN. */
int object_promise_now(uint64_t bytes);
/* Creates the object called object->name with bytes of zeroed, committed memory, and settles their
 * promise in any case. Blocks while the kernel zeroes; looks at *cancel (may be NULL) from time to
 * time. Any thread. Returns a read-write descriptor, which the caller owns, or -errno (-ENOSPC,
 * -EEXIST, -ECANCELED, ...); then nothing is left. */
int object_create_promised(struct object *object, uint64_t bytes, const atomic_bool *cancel);
void object_unpromise(uint64_t bytes);
/* Commits bytes more that were promised, from byte `from` of the object; settles the promise in
 * any case. Returns 0 or -errno. */
int object_commit_promised(int fd, uint64_t from, uint64_t bytes, const atomic_bool *cancel);

/* Opens it again, flags O_RDONLY or O_RDWR. Returns a descriptor, or -errno;
 * -ESTALE if the name leads to something else by now. */
int object_open(const struct object *object, int flags);

/* Looks at it. Returns 0 or -errno; -ESTALE if the name leads to something else by now. */
int object_stat(const struct object *object, struct stat *ret);

/* Lets the object have at least bytes, committed. Returns 0 or -errno. */
int object_grow(int fd, uint64_t bytes);

/* Gives it another name, which is not taken. Returns 0 or -errno. */
int object_rename(struct object *object, const object_name name);

/* Removes the name if it is still this object, and forgets it. Much memory is given back
 * later (discard.h), and at the latest when somebody asks for more than there is. */
void object_remove(struct object *object);

/* Removes every object in the directory that belongs to this user, unless keep says otherwise.
 * Returns how many. */
unsigned object_sweep(bool (*keep)(void *arg, const char *name, ino_t inode), void *arg);

#endif
