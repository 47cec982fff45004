/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether LMDB can safely use a file. LMDB trusts the pages of its file, and a damaged page
 * can make it abort the process, touch memory that it does not have, or loop. Therefore a child
 * process tries a copy of the file first (store_try.h). If the file is bad, the child dies and the
 * daemon survives.
 *
 * A check that only read all records was not enough: a list of free pages that named a used page
 * passed it, and aborted the daemon at its first change. */
#ifndef DAEMON_STORE_CHECK_H
#define DAEMON_STORE_CHECK_H

#include <sys/types.h>

struct store_check {
    pid_t pid;
    int go; /* the write end of the pipe on which the child waits */
};

/* Starts the child, which waits; it will open the file called name in the directory dir. Call this
 * before the process has threads, because it forks. Also call it before taking the lock of the
 * instance, because the child has copies of all descriptors and would hold the lock as well.
 * Returns 0, and the caller owes store_check_end(); or -errno. */
int store_check_begin(struct store_check *check, int dir, const char *name);

/* Lets the child try the file and waits for its result. fd is the daemon's descriptor of the file:
 * the child tries the file only if the name still leads to it. With fd -1 the child ends without
 * trying anything. check may be NULL; then this returns 0. Returns 0 if the file is sound; -EUCLEAN
 * if it is not, or if the name leads to another file; or another -errno. Blocks until the child has
 * ended. */
int store_check_end(struct store_check *check, int fd);

#endif
