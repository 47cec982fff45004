/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a store. It is judged, tried and read through one descriptor. Its records are then
 * copied into a new file, which takes its place: LMDB trusts the pages that it changes, and so the
 * daemon changes only pages that it has written itself. */
#ifndef DAEMON_STORE_FILE_H
#define DAEMON_STORE_FILE_H

#include <stddef.h>

#include "daemon/store/store_check.h"

/* A table of the file, as LMDB has it. */
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

/* Opens the file called name in the directory dir, or makes an empty one. One that is not empty is
 * tried by check, which is ended in any case (NULL: not tried), and renewed; where the file system
 * is too full for a second one, the file that was tried is used. Returns a descriptor, which the
 * caller owns; -EUCLEAN if the file is damaged, or is not a file that only this user may write to
 * and that has only this name; or -errno. */
int store_file_open(int dir, const char *name, struct store_check *check);

/* Renames the file to NAME.bad, in place of an older one. Returns 0 or -errno. */
int store_file_set_aside(int dir, const char *name);

/* The path by which LMDB opens a descriptor. */
typedef char store_file_path[32];
void store_file_path_of(int fd, store_file_path ret);

#endif
