/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>

#include "common/base/util.h"

const struct store_table_form store_tables[STORE_N_TABLES] = {
    {"meta", MDB_INTEGERKEY, sizeof(uint64_t)},
    {"segments", MDB_INTEGERKEY, sizeof(uint64_t)},
    {"layouts", 0, 2 * sizeof(uint64_t)},
    {"attachments", MDB_INTEGERKEY, sizeof(uint64_t)},
};

/* Opens the file, or makes an empty one. Returns a descriptor, with the size of the file; -EUCLEAN
 * if it is not a file of this user alone, because then another user may have written it or still
 * may; or another -errno. */
static int open_own(int dir, const char *name, off_t *ret_bytes)
{
    struct stat st;
    CLEANUP_FD int fd =
        openat(dir, name, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0) /* EUCLEAN for a link, a directory, a socket or another user's file */
        return errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == EACCES ? -EUCLEAN
                                                                                      : -errno;
    if (fstat(fd, &st))
        return -errno;
    bool is_own = S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
                  !(st.st_mode & (S_IWGRP | S_IWOTH));
    *ret_bytes = st.st_size;
    return is_own ? steal_fd(&fd) : -EUCLEAN;
}

/* --- Renewing ------------------------------------------------------------ */

void store_file_path_of(int fd, store_file_path ret)
{
    snprintf(ret, sizeof(store_file_path), "/proc/self/fd/%d", fd);
}

static int open_env(int fd, size_t bytes, unsigned flags, MDB_env **ret)
{
    store_file_path path;
    store_file_path_of(fd, path);
    int r = mdb_env_create(ret);
    if (r)
        *ret = NULL;
    if (r == 0)
        r = mdb_env_set_maxdbs(*ret, STORE_N_TABLES);
    if (r == 0)
        r = mdb_env_set_mapsize(*ret, bytes);
    return r ? r : mdb_env_open(*ret, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK | flags, 0);
}

/* Copies one table, if it exists. Returns 0 or an error of LMDB, as do the next two functions. */
static int copy_table(MDB_txn *from, MDB_txn *to, const struct store_table_form *table)
{
    MDB_dbi old, new;
    MDB_cursor *cursor;
    MDB_val key, value;
    int r = mdb_dbi_open(from, table->name, table->flags, &old);
    if (r)
        return r == MDB_NOTFOUND ? 0 : r;
    r = mdb_dbi_open(to, table->name, MDB_CREATE | table->flags, &new);
    if (r == 0)
        r = mdb_cursor_open(from, old, &cursor);
    if (r)
        return r;
    while ((r = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        if ((r = mdb_put(to, new, &key, &value, MDB_APPEND)))
            break;
    mdb_cursor_close(cursor);
    return r == MDB_NOTFOUND ? 0 : r;
}

/* Copies all tables in one transaction. */
static int copy_tables(MDB_env *from, MDB_env *to)
{
    MDB_txn *reads, *writes;
    int r = mdb_txn_begin(from, NULL, MDB_RDONLY, &reads);
    if (r)
        return r;
    r = mdb_txn_begin(to, NULL, 0, &writes);
    if (r == 0) {
        for (int i = 0; r == 0 && i < STORE_N_TABLES; i++)
            r = copy_table(reads, writes, &store_tables[i]);
        if (r)
            mdb_txn_abort(writes);
        else
            r = mdb_txn_commit(writes);
    }
    mdb_txn_abort(reads);
    return r;
}

/* Copies the records from one file to the other, which is empty. The map of the new file is twice
 * as large, so that the copy has room in any case. Returns 0 or -errno. */
static int copy_file(int from, int to, size_t bytes)
{
    MDB_env *old = NULL, *new = NULL;
    int r = open_env(from, bytes, MDB_RDONLY, &old);
    if (r == 0)
        r = open_env(to, 2 * bytes, 0, &new);
    if (r == 0)
        r = copy_tables(old, new);
    mdb_env_close(old);
    mdb_env_close(new);
    return r < 0 ? -EUCLEAN : -r;
}

/* Replaces the file by a copy, called NAME.new until it is complete. Returns a descriptor of the
 * new file, or -errno; after an error the old file is unchanged. */
static int renew(int dir, const char *name, int fd, size_t bytes)
{
    char other[PATH_MAX];
    if (snprintf(other, sizeof other, "%s.new", name) >= (int)sizeof other)
        return -ENAMETOOLONG;
    unlinkat(dir, other, 0);
    CLEANUP_FD int new =
        openat(dir, other, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (new < 0)
        return -errno;
    int r = copy_file(fd, new, bytes);
    if (r == 0) /* as large as the old file, so that there is as much room for changes */
        r = -posix_fallocate(new, 0, (off_t)bytes);
    if (r == 0 && renameat(dir, other, dir, name))
        r = -errno;
    if (r == 0)
        return steal_fd(&new);
    unlinkat(dir, other, 0);
    return r;
}

int store_file_open(int dir, const char *name, struct store_check *check)
{
    off_t bytes = 0;
    CLEANUP_FD int fd = open_own(dir, name, &bytes);
    int sound = store_check_end(check, bytes > 0 ? fd : -1);
    if (fd < 0)
        return fd;
    if (sound)
        return sound;
    int r = bytes > 0 ? renew(dir, name, fd, (size_t)bytes) : -ENOSPC;
    return r == -ENOSPC ? steal_fd(&fd) : r;
}

int store_file_set_aside(int dir, const char *name)
{
    char bad[PATH_MAX];
    if (snprintf(bad, sizeof bad, "%s.bad", name) >= (int)sizeof bad)
        return -ENAMETOOLONG;
    if (renameat(dir, name, dir, bad) == 0)
        return 0;
    /* rename() replaces neither a directory by a file nor a file by a directory */
    int flags = errno == EISDIR ? AT_REMOVEDIR : 0;
    if ((errno != EISDIR && errno != ENOTDIR) || unlinkat(dir, bad, flags) ||
        renameat(dir, name, dir, bad))
        return -errno;
    return 0;
}
