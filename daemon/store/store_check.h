/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a store that LMDB can be trusted with: LMDB believes its pages, and rubbish in
 * them can abort the process that uses it. So another process tries a copy first: it reads every
 * record, changes records on every page, and empties the tables, after which every page must be
 * free exactly once. */
#ifndef DAEMON_STORE_CHECK_H
#define DAEMON_STORE_CHECK_H

#include <sys/types.h>

struct store_check {
    pid_t pid;
    int go; /* a pipe on which the process waits */
};

/* Starts the process, which waits. Begin before the instance's lock is taken, because the process
 * has all descriptors for a moment, and before there are threads. It will open the file called
 * name in the directory dir. Returns 0 and owes store_check_end(), or -errno. */
int store_check_begin(struct store_check *check, int dir, const char *name);

/* Lets the process try the file, of which fd is a descriptor; with fd -1 it ends unused. Takes
 * NULL. Returns 0 if the file is sound; -EUCLEAN if it is not, or if the name leads to another
 * file; or -errno. */
int store_check_end(struct store_check *check, int fd);

#endif
