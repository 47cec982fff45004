/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a copy of a registry in every way in which the daemon would use the file itself:
 *
 *   1. counts the free pages: none may be free twice, or lie outside the file;
 *   2. reads every record;
 *   3. changes at least one record on every page, so that LMDB takes free pages and copies each
 * page of its trees;
 *   4. reads every record again: none may have changed;
 *   5. empties the tables, and counts the free pages again: if a page was both used and free, it is
 *      now free twice. */
#ifndef DAEMON_STORE_TRY_H
#define DAEMON_STORE_TRY_H

#include <stddef.h>

/* Tries the file at path, which has `bytes`, and destroys its contents. Call this in a child
 * process, because a damaged file can make LMDB abort, crash or loop. Returns 0 if the file is
 * sound; -EUCLEAN if it is not; or -ENOMEM, -EMFILE, -ENFILE or -EAGAIN if memory or descriptors
 * are short. */
int store_try(const char *path, size_t bytes);

/* Returns how long the file is at the end of a trial. */
size_t store_try_bytes(size_t bytes);

#endif
