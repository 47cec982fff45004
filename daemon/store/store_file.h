/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the file of a registry safely.
 *
 *   open -> check owner, mode, links -> a child tries a copy -> copy records into a new file
 *
 * All steps use one descriptor, so nobody can exchange the file in between. The records are copied
 * because LMDB trusts the pages that it changes: after the copy the daemon changes only pages that
 * it has written itself. */
#ifndef DAEMON_STORE_FILE_H
#define DAEMON_STORE_FILE_H

#include <stddef.h>

#include "daemon/store/store_check.h"

/* The tables of the file. */
enum store_table {
    STORE_META,
    STORE_SEGMENTS,
    STORE_LAYOUTS,
    STORE_ATTACHMENTS,
    STORE_N_TABLES
};
extern const struct store_table_form {
    const char *name;
    unsigned flags;
    size_t key_bytes;
} store_tables[STORE_N_TABLES];

/* Opens the file called name in the directory dir, or makes an empty one. A file that is not empty
 * is tried by check and replaced by a copy. If the file system is too full for a second file, the
 * file that was tried is used. check is ended in any case; if it is NULL, the file is not tried.
 *
 * Returns a descriptor, which the caller owns; -EUCLEAN if the file is damaged, belongs to another
 * user, is writable by others, has a second name or is not a regular file; or another -errno. */
int store_file_open(int dir, const char *name, struct store_check *check);

/* Renames the file to NAME.bad and replaces an older one. Returns 0 or -errno. */
int store_file_set_aside(int dir, const char *name);

/* Makes a path for a descriptor, because LMDB opens files only by path. */
typedef char store_file_path[32];
void store_file_path_of(int fd, store_file_path ret);

#endif
