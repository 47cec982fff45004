/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a store that LMDB can be trusted with: it believes what its pages say,
 * and rubbish in them would end whoever reads it. */
#ifndef DAEMON_STORE_CHECK_H
#define DAEMON_STORE_CHECK_H

/* Looks at the file at path in a process of its own, which may well end there. That has our
 * descriptors for a moment: call it before there are threads, and locks that it would hold
 * on to if we were killed meanwhile. Returns 0 if the file is sound, or empty, or not there;
 * -EUCLEAN if not, or if it is not this user's own; or -errno. */
int store_check(const char *path);

#endif
