/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory objects: files in the instance's directory below /dev/shm (directory.h), or sealed
 * memfds (sealed.h). No other module creates, opens or removes one.
 *
 * Objects have mode 0600, and clients get them as descriptors only. The user of the daemon could
 * still replace a file. Therefore every function that takes a struct object compares owner, device
 * and inode first, and treats another file under that name as absent. A sealed object is found by
 * its inode, and nobody can replace it; but it outlives the daemon only where it is kept.
 *
 * All memory of an object is committed when it is created. Without that a full /dev/shm would end a
 * client by SIGBUS at some later access. Several threads commit at once, so a creation first gets a
 * promise: a part of the free memory that no other creation can get. */
#ifndef DAEMON_OBJECT_H
#define DAEMON_OBJECT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct statx; /* sys/stat.h of older releases of musl has none */

/* The name of a file in the directory: "NAME" for the data of a segment; "+ID.control" and so on
 * for its other objects. */
typedef char object_name[NAME_MAX + 1];

enum object_kind {
    OBJECT_FILE,
    OBJECT_SEALED,       /* its size cannot change; a client with a writable descriptor can add
                            seals, as the daemon would to make the bytes immutable */
    OBJECT_SEALED_FULLY, /* and nobody can add another seal */
};

/* One object that a daemon of this instance created. The file is believed to be this object only if
 * device and inode are the same. */
struct object {
    object_name name; /* "" = none */
    enum object_kind kind;
    dev_t device;
    ino_t inode;
    bool own;                    /* a client has made it (own.h), and maker is its user */
    uid_t maker;                 /* undefined otherwise: this user */
    struct placement *placement; /* for its creation, borrowed; NULL: none */
    bool zeroed; /* its creation commits without a placement by writing zeros (zero.h) */
};

struct placement;

/* How much memory an allocation can get, in bytes. */
struct object_space {
    /* the least of: free space of /dev/shm, which does not count for sealed objects; free memory
     * and swap of the machine; free memory of the control groups. Less what was promised and is not
     * committed yet. What pool.h has made ahead counts as free. */
    uint64_t free;
    /* the size of /dev/shm, or for sealed objects of memory and swap; or of the control group, if
     * that is less */
    uint64_t limit;
    bool of_group; /* limit is the limit of a control group */
};

/* Returns the space for objects of that kind now. Any thread. */
struct object_space object_space(enum object_kind kind);

/* How many more files /dev/shm can hold; UINT64_MAX if no limit is known. */
uint64_t object_count_free(void);

/* Promises bytes for several objects of which the caller wants all or none, or for a creation in
 * steps. If there is too little memory, waits for memory that discard.c is freeing, and drains the
 * pool (pool.h), so no thread that makes things for the pool may call this. Returns 0, or
 * -ENOSPC with *ret_space filled.
 *
 * The caller owes each promised byte to object_create_promised(), object_commit() or
 * object_unpromise(). The first two settle their part of the promise also when they fail. Any
 * thread. */
int object_promise(enum object_kind kind, uint64_t bytes, struct object_space *ret_space);
/* Like object_promise(), but neither waits nor drains the pool. Returns 0 or -EAGAIN. */
int object_promise_now(enum object_kind kind, uint64_t bytes);
/* Creates the object called object->name, of object->kind, with `bytes` of zeroed, committed
 * memory, which were promised, and sets its device and inode. A sealed object has `size` bytes at
 * once, of which the rest can be committed later; for a file size does not matter. Blocks while the
 * kernel zeroes the memory; before each step of 64 MiB it returns -ECANCELED if *cancel is true
 * (cancel may be NULL). Returns a read-write descriptor, which the caller owns, or -errno: -ENOSPC,
 * -EEXIST, -EMFILE if there is no room for a sealed object, and others. After an error nothing is
 * left. Any thread. */
int object_create_promised(struct object *object, uint64_t size, uint64_t bytes,
                           const atomic_bool *cancel);
/* Returns promised bytes that are not needed. */
void object_unpromise(enum object_kind kind, uint64_t bytes);
/* Commits `bytes` of the object from byte `from` on, which were promised, as its creation does.
 * With a placement see placement.h, also for the further error -EOPNOTSUPP; settles no promise of
 * memory of the pool of huge pages. fd is a writable descriptor of the object. Returns 0 or -errno.
 */
int object_commit(const struct object *object, int fd, uint64_t from, uint64_t bytes,
                  const atomic_bool *cancel);

/* Opens the object again; flags is O_RDONLY or O_RDWR. Returns a descriptor, which the caller owns,
 * or -errno; -ESTALE if another file has that name. */
int object_open(const struct object *object, int flags);

/* Calls stat() for the object. Returns 0 or -errno; -ESTALE if another file has that name. */
int object_stat(const struct object *object, struct stat *ret);
/* Like object_stat(), but calls statx() with mask. */
int object_statx(const struct object *object, unsigned mask, struct statx *ret);

/* Returns the seals of the object (F_SEAL_*), 0 for a file, or -errno. */
int object_seals(const struct object *object);

/* Commits the bytes from byte `from` to before byte `to`. A file grows if it is shorter; a sealed
 * object must have them. Makes no promise, because it is for a few pages at a time. Returns 0 or
 * -errno. */
int object_grow(int fd, uint64_t from, uint64_t to);

/* Renames the object, unless it is sealed, and stores the name. Returns 0 or -errno; -EEXIST if the
 * name is taken. */
int object_rename(struct object *object, const object_name name);

/* Removes the file if it is still this object, and sets the name to "". From 1 MiB on a thread
 * frees the memory later (discard.h). object_promise() waits for that if it finds too little. */
void object_remove(struct object *object);

/* Removes every file of this user in the directory for which keep() returns false. Calls
 * on_remove() before, unless it is NULL, with a descriptor of the directory. Returns their number.
 */
unsigned object_sweep(bool (*keep)(void *arg, const char *name, ino_t inode),
                      void (*on_remove)(int dir, const char *name), void *arg);

#endif
