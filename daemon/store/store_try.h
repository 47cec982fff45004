/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a copy of a store in every way in which the daemon would use the store itself. */
#ifndef DAEMON_STORE_TRY_H
#define DAEMON_STORE_TRY_H

#include <stddef.h>

/* Tries the file at path, of that many bytes, which is spoiled by it. LMDB may abort the process
 * or touch memory that is not there, so call it in a process of its own. Returns 0 if the file is
 * sound; -ENOMEM, -EMFILE, -ENFILE or -EAGAIN where memory or descriptors are short; or -EUCLEAN.
 */
int store_try(const char *path, size_t bytes);

#endif
