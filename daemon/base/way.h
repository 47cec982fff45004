/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a file: every directory above it. A user who may change one of them can exchange the
 * file at any time, so each must belong to root or to this user, and must be writable for nobody
 * else. A sticky directory may be writable: there, others cannot exchange what this user owns. */
#ifndef DAEMON_WAY_H
#define DAEMON_WAY_H

/* Opens the directory that path is in. Makes those that are missing: mode 0700, or 0755 on the
 * way to the system's socket. Symbolic links are refused. Returns a descriptor for openat(),
 * which the caller owns, or -errno, and logs the cause. In a sticky directory others may have
 * put files: look at a file there through its descriptor before you use it. */
int way_open(const char *path);

/* What path is called in that directory. */
const char *way_name(const char *path);

#endif
