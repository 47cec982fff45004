/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed objects: memfds, whose size nobody can change.
 *
 * A memfd has no name by which it could be opened again. Therefore this module keeps one descriptor
 * of each, in a table by inode. It passes that descriptor to nobody, because a client could set
 * flags such as O_APPEND in the open file description that it shares. Every receiver gets a
 * description of its own, made by /proc/self/fd.
 *
 * Memory that a client has made (own.h) belongs to that user. A daemon of another user can open it
 * again for reading only. Those who may write then get the description of the client. The daemon
 * neither reads nor writes through it.
 *
 * The descriptors count against RLIMIT_NOFILE, so their number is bounded. They end with the
 * process; copies are kept elsewhere for the next daemon (keeping.h).
 *
 * For object.c, which has the memory committed. Any thread. */
#ifndef DAEMON_SEALED_H
#define DAEMON_SEALED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct statx; /* sys/stat.h of older releases of musl has none */

/* What a link of /proc/PID/fd to such an object begins with. */
#define SEALED_LINK "/memfd:shmview:"

/* In the inode of an object of huge pages. The kernel numbers these by another counter than other
 * memfds, so that two objects can have the same number. */
#define SEALED_HUGE ((ino_t)1 << 63)

/* Calls fstat(), and marks the inode of an object of huge pages with SEALED_HUGE. Every inode that
 * this module takes or returns is marked so. Returns 0 or -1 with errno. */
int sealed_mark(int fd, struct stat *ret);

/* How many sealed objects the daemon can have, and how many more it can have now. */
struct sealed_room {
    unsigned most, free;
};

/* Sets how many sealed objects there may be; without this call there is no limit. */
void sealed_limit(unsigned most);

/* Returns the room now. */
struct sealed_room sealed_room(void);

/* Creates an object of `bytes` bytes, none of which is committed, with mode 0600. It has
 * F_SEAL_SHRINK and F_SEAL_GROW; if `fully` is true also F_SEAL_SEAL, with which nobody can add
 * another seal. Returns a read-write descriptor, which the caller owns, and fills in *ret_st; or
 * -errno: -EMFILE if there is no room. After success the caller owes sealed_take(). */
int sealed_create(uint64_t bytes, bool fully, struct stat *ret_st);

/* Adds an object that a client has made, which own_check() has accepted with the status st. Takes
 * over fd if this succeeds; the caller owes sealed_take() then. Returns 0; -EEXIST if it is here
 * already; -EMFILE if there is no room; or another -errno. */
int sealed_take_over(int fd, const struct stat *st);

/* Like sealed_create(), but of huge pages of 2 MiB, which the kernel reserves for it now; `bytes`
 * is a multiple. Returns -ENOSPC if its pool has too few. */
int sealed_create_huge(uint64_t bytes, struct stat *ret_st);

/* Opens the object again; flags is O_RDONLY or O_RDWR. Returns a descriptor, which the caller owns;
 * -ENOENT if there is no such object; or another -errno. */
int sealed_open(ino_t inode, int flags);

/* Like statx() for the object. Returns 0, -ENOENT or another -errno. */
int sealed_statx(ino_t inode, unsigned mask, struct statx *ret);
int sealed_stat(ino_t inode, struct stat *ret);

/* Returns the seals of the object (F_SEAL_*), which clients can add to; or -errno. */
int sealed_seals(ino_t inode);

/* Takes over descriptors that an earlier daemon had kept (keeping.h): those of sealed memfds.
 * Whose they must be is in the records of their segments. Loop only, once, before other calls.
 * Returns 0; or -errno, and a later daemon can take over all of them. */
int sealed_recover(void);
/* Whether there is such an object. */
bool sealed_has(ino_t inode);
/* Takes over one more object that an earlier daemon had, and the descriptor in any case. Drops it
 * if it is no sealed memfd, or if this module has it already. The object is offered to a keeper
 * again. Returns 0 or -errno: there is no room. */
int sealed_adopt(int fd);
/* Marks an object as one of a segment. */
void sealed_claim(ino_t inode);
/* Frees all objects that were recovered and not claimed. Calls on_remove() before, unless it is
 * NULL, with a descriptor of the object. Returns their number. */
unsigned sealed_drop_unclaimed(void (*on_remove)(int fd));

enum sealed_settled {
    SEALED_SETTLED, /* nothing is left to give */
    SEALED_MORE,    /* the caller must call again soon */
};
/* Gives the keeper or the service manager what it could not accept before, and a new keeper all
 * objects if the last one has ended. Takes less than a millisecond, unless it must start a keeper
 * or wait for one (keeping.h). Returns an enum sealed_settled; or -errno if it was not accepted,
 * and the caller must call again later. */
int sealed_settle(void);

/* Like sealed_settle() until all is given, two seconds at most; then ends the connection to the
 * keeper. Once, before the process ends. */
void sealed_end(void);

/* Forgets the object. Returns the last descriptor of this module, which the caller owns; or
 * -ENOENT. */
int sealed_take(ino_t inode);

#endif
