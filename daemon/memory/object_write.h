/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to objects that clients have, in a way that no client can delay.
 *
 * The kernel holds the lock of an inode while it executes a write() or a fallocate(), and waits for
 * it uninterruptibly. A client whose write() reads memory that never comes (of a file system in
 * user space, or of a handler of userfaultfd) holds the lock of its object without limit. A daemon
 * that called pwrite() for that object would sleep until the client ends. Memory that is mapped
 * needs no such lock. Storing to the map is no way, because a client can truncate a file, and the
 * store would then end the daemon by SIGBUS. Therefore these functions map the bytes and let the
 * kernel write to them, which reports missing memory as an error. */
#ifndef DAEMON_OBJECT_WRITE_H
#define DAEMON_OBJECT_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* Writes n bytes at the offset `at`. fd is a read-write descriptor of an object of ordinary pages,
 * with a description that no client has, because one could set O_APPEND in it. A client that reads
 * at the same time may find a part of the bytes. Returns 0 or -errno; -EIO if the object is too
 * short to have a page of these bytes, or if there is no memory for one. Where the kernel has no
 * process_vm_writev() (CONFIG_CROSS_MEMORY_ATTACH), or a filter refuses it, this calls pwrite(),
 * which may wait. Any thread. */
int object_write(int fd, const void *bytes, size_t n, uint64_t at);

/* Commits the pages with the bytes from byte `from` to before byte `to`, of which there must be
 * one; the object must have them. For the rest as object_write(). Returns 0 or -errno; -ENOSPC if
 * there is no memory. On a kernel before 5.14 this calls posix_fallocate(). */
int object_populate(int fd, uint64_t from, uint64_t to);

#endif
