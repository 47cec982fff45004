/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB is opened with a writable map and without syncs or its own lock; store.h explains why that
 * is safe. LMDB returns its own errors as negative numbers, and those of the system as positive
 * ones; store_result() turns both into -errno. */
#include "daemon/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/store/store_env.h"
#include "daemon/store/store_record.h"
#include "daemon/store/store_room.h"

#define STORE_VERSION     4u
#define STORE_BYTES_FIRST ((size_t)1 << 20)
#define STORE_BYTES_MOST  ((size_t)1 << 36)
#define PAGES_OF_CHANGE   16 /* that a change may write beside its record */

/* The one record of STORE_META. */
struct meta {
    uint64_t version;
    uint64_t last_id;
    uint64_t starts;
};

_Static_assert(sizeof(struct store_attachment) == 56, "records have no gaps");

int store_result(int r)
{
    if (r == MDB_MAP_FULL || r == MDB_TXN_FULL)
        return -ENOSPC;
    return r < 0 ? -EUCLEAN : -r;
}

/* --- Opening ------------------------------------------------------------- */

static int open_env(struct store *s, unsigned flags)
{
    store_file_path path;
    int r = mdb_env_create(&s->env);
    if (r == 0)
        r = mdb_env_set_maxdbs(s->env, STORE_N_TABLES);
    if (r == 0)
        r = mdb_env_set_mapsize(s->env, s->bytes);
    store_file_path_of(s->fd, path);
    if (r == 0)
        r = mdb_env_open(s->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK | flags, 0600);
    return store_result(r);
}

static int reopen_writable(struct store *s)
{
    mdb_env_close(s->env);
    s->env = NULL;
    return open_env(s, MDB_WRITEMAP);
}

static int open_tables(struct store *s, MDB_txn *txn)
{
    int r = 0;
    for (int i = 0; r == 0 && i < STORE_N_TABLES; i++)
        r = mdb_dbi_open(txn, store_tables[i].name, MDB_CREATE | store_tables[i].flags,
                         &s->tables[i]);
    return r;
}

static int put_meta(struct store *s, MDB_txn *txn, uint64_t last_id)
{
    uint64_t one = 1;
    struct meta meta = {STORE_VERSION, last_id, s->starts};
    MDB_val k = {sizeof one, &one}, v = {sizeof meta, &meta};
    return mdb_put(txn, s->tables[STORE_META], &k, &v, 0);
}

/* Reads the record of STORE_META, or makes it, and counts this start. */
static int begin_meta(struct store *s, MDB_txn *txn)
{
    uint64_t one = 1;
    struct meta meta = {STORE_VERSION, 0, 0};
    MDB_val k = {sizeof one, &one}, v;
    int r = mdb_get(txn, s->tables[STORE_META], &k, &v);
    if (r == 0 && v.mv_size != sizeof meta)
        return MDB_VERSION_MISMATCH;
    if (r == 0)
        memcpy(&meta, v.mv_data, sizeof meta);
    if (meta.version != STORE_VERSION)
        return MDB_VERSION_MISMATCH;
    s->last_id = meta.last_id;
    s->starts = meta.starts + 1;
    return r == 0 || r == MDB_NOTFOUND ? put_meta(s, txn, s->last_id) : r;
}

static int begin(struct store *s)
{
    MDB_txn *txn;
    int r = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (r)
        return store_result(r);
    r = open_tables(s, txn);
    if (r == 0)
        r = begin_meta(s, txn);
    if (r) {
        mdb_txn_abort(txn);
        return store_result(r);
    }
    return store_result(mdb_txn_commit(txn));
}

/* Closes the environment if r is an error. Returns r. */
static int close_if(struct store *s, int r)
{
    if (r) {
        mdb_env_close(s->env);
        s->env = NULL;
    }
    return r;
}

/* Opens the environment of the file, which is open, and its tables. */
static int open_all(struct store *s)
{
    struct stat st;
    if (fstat(s->fd, &st))
        return -errno;
    s->bytes = (size_t)st.st_size > STORE_BYTES_FIRST ? (size_t)st.st_size : STORE_BYTES_FIRST;
    if (s->bytes > STORE_BYTES_MOST)
        return -EUCLEAN;
    /* without a writable map first, because the file may have holes, which are filled next */
    int r = open_env(s, 0);
    if (r == 0)
        r = -posix_fallocate(s->fd, 0, (off_t)s->bytes);
    if (r == 0)
        r = reopen_writable(s);
    if (r == 0)
        r = begin(s);
    return close_if(s, r);
}

static int open_again(struct store *s)
{
    MDB_txn *txn;
    int r = reopen_writable(s);
    if (r == 0)
        r = store_result(mdb_txn_begin(s->env, NULL, 0, &txn));
    if (r)
        return close_if(s, r);
    r = open_tables(s, txn);
    if (r)
        mdb_txn_abort(txn);
    else
        r = mdb_txn_commit(txn);
    return close_if(s, store_result(r));
}

int store_reopen(struct store *store)
{
    return store->env ? 0 : open_again(store);
}

/* After a failed mdb_env_set_mapsize() LMDB has no map, so the file is opened again later. */
static int enlarge(struct store *s)
{
    int r = store_room_grow(s->fd, s->bytes, &s->bytes);
    return r ? r : close_if(s, store_result(mdb_env_set_mapsize(s->env, s->bytes)));
}

static int open_or_set_aside(struct store *s, struct store_check *check, bool *ret_was_bad)
{
    int r = s->fd = store_file_open(s->dir, s->name, check);
    if (r >= 0)
        r = open_all(s);
    if (r != -EUCLEAN && r != -EINVAL) /* EINVAL: the kernel cannot map such a file */
        return r;
    close_fdp(&s->fd);
    r = store_file_set_aside(s->dir, s->name);
    if (r)
        return r;
    *ret_was_bad = true;
    r = s->fd = store_file_open(s->dir, s->name, NULL);
    return r < 0 ? r : open_all(s);
}

int store_open(int dir, const char *name, struct store_check *check, struct store **ret,
               bool *ret_was_bad)
{
    size_t n = strlen(name) + 1;
    struct store *s = calloc(1, sizeof *s + n);
    *ret_was_bad = false;
    if (!s) {
        store_check_end(check, -1);
        return -ENOMEM;
    }
    memcpy(s->name, name, n);
    s->dir = dir;
    int r = open_or_set_aside(s, check, ret_was_bad);
    if (r) {
        close_fdp(&s->fd);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

struct store *store_close(struct store *store, bool remove)
{
    if (!store)
        return NULL;
    mdb_env_close(store->env);
    close_fdp(&store->fd);
    if (remove)
        unlinkat(store->dir, store->name, 0);
    free(store);
    return NULL;
}

/* --- Changing ------------------------------------------------------------ */

/* Runs one transaction. */
static int change_once(struct store *s, int (*change)(struct store *, MDB_txn *, void *), void *arg)
{
    MDB_txn *txn;
    int r = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (r)
        return r;
    r = change(s, txn, arg);
    if (r) {
        mdb_txn_abort(txn);
        return r;
    }
    return mdb_txn_commit(txn);
}

/* Runs the transaction again after enlarging the file, as often as it is full. */
static int change(struct store *s, int (*what)(struct store *, MDB_txn *, void *), void *arg)
{
    int r = store_reopen(s);
    while (r == 0) {
        r = change_once(s, what, arg);
        if (r != MDB_MAP_FULL || s->bytes >= STORE_BYTES_MOST)
            return store_result(r);
        r = enlarge(s);
    }
    return r;
}

static int put(struct store *s, MDB_txn *txn, enum store_table table, const void *key,
               size_t key_bytes, const void *value, size_t value_bytes)
{
    MDB_val k = {key_bytes, (void *)(uintptr_t)key}, v = {value_bytes, (void *)(uintptr_t)value};
    return mdb_put(txn, s->tables[table], &k, &v, 0);
}

static int put_segment(struct store *s, MDB_txn *txn, void *arg)
{
    const struct store_segment *segment = arg;
    char record[sizeof *segment];
    size_t n = store_record_write(segment, record);
    int r = put(s, txn, STORE_SEGMENTS, &segment->id, sizeof segment->id, record, n);
    return r == 0 && segment->id > s->last_id ? put_meta(s, txn, segment->id) : r;
}

int store_put_segment(struct store *store, const struct store_segment *segment)
{
    int r = store ? change(store, put_segment, (void *)(uintptr_t)segment) : 0;
    if (store && r == 0 && segment->id > store->last_id)
        store->last_id = segment->id;
    return r;
}

static int put_attachment(struct store *s, MDB_txn *txn, void *arg)
{
    const struct store_attachment *a = arg;
    return put(s, txn, STORE_ATTACHMENTS, &a->id, sizeof a->id, a, sizeof *a);
}

int store_put_attachment(struct store *store, const struct store_attachment *attachment)
{
    return store ? change(store, put_attachment, (void *)(uintptr_t)attachment) : 0;
}

struct layout_record {
    struct layout_key key;
    const char *text;
};

/* Maps the pages of a new record that is large, because a fault for each of them takes several
 * times as long, up to a millisecond of the loop's time for the largest layout. */
static void populate(char *record, size_t n)
{
    const uintptr_t page = 4096, from = (uintptr_t)record & ~(page - 1);
    if (n >= 4 * page) /* if the kernel cannot do it, the pages are mapped one by one */
        madvise((void *)from, (uintptr_t)record + n - from, MADV_POPULATE_WRITE);
}

static int put_layout(struct store *s, MDB_txn *txn, void *arg)
{
    const struct layout_record *l = arg;
    const size_t n = strlen(l->text) + 1;
    MDB_stat stat;
    int r = mdb_stat(txn, s->tables[STORE_LAYOUTS], &stat);
    if (r)
        return r;
    size_t pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    r = -store_room_for_layouts(s->fd, s->bytes, pages * stat.ms_psize + n);
    if (r)
        return r;
    MDB_val k = {sizeof l->key, (void *)(uintptr_t)&l->key}, v = {n, NULL};
    r = mdb_put(txn, s->tables[STORE_LAYOUTS], &k, &v, MDB_RESERVE);
    if (r)
        return r;
    populate(v.mv_data, n);
    memcpy(v.mv_data, l->text, n);
    return 0;
}

/* LMDB may have free pages instead, but then the end stays where it is, and the file grows once. */
void store_make_room(struct store *store, size_t n)
{
    struct store *s = store;
    MDB_envinfo info;
    MDB_stat stat;
    if (!s || !s->env || mdb_env_info(s->env, &info) || mdb_env_stat(s->env, &stat))
        return;
    size_t taken = (info.me_last_pgno + 1 + PAGES_OF_CHANGE) * stat.ms_psize;
    if (taken + n > s->bytes && s->bytes < STORE_BYTES_MOST)
        enlarge(s);
}

int store_put_layout(struct store *store, uint64_t segment, uint32_t index, const char *text)
{
    struct layout_record record = {layout_key(segment, index), text};
    return store ? change(store, put_layout, &record) : 0;
}

static int delete (struct store *s, MDB_txn *txn, enum store_table table, const void *key, size_t n)
{
    MDB_val k = {n, (void *)(uintptr_t)key};
    int r = mdb_del(txn, s->tables[table], &k, NULL);
    return r == MDB_NOTFOUND ? 0 : r;
}

static int delete_segment(struct store *s, MDB_txn *txn, void *arg)
{
    const uint64_t *id = arg;
    MDB_cursor *cursor;
    struct layout_key from = layout_key(*id, 0);
    MDB_val k = {sizeof from, &from}, v;
    int r = mdb_cursor_open(txn, s->tables[STORE_LAYOUTS], &cursor);
    if (r)
        return r;
    while ((r = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE)) == 0 && k.mv_size == sizeof from &&
           memcmp(k.mv_data, &from.segment, sizeof from.segment) == 0) {
        r = mdb_cursor_del(cursor, 0);
        if (r)
            break;
        k = (MDB_val){sizeof from, &from};
    }
    mdb_cursor_close(cursor);
    if (r && r != MDB_NOTFOUND)
        return r;
    return delete (s, txn, STORE_SEGMENTS, id, sizeof *id);
}

int store_delete_segment(struct store *store, uint64_t id)
{
    return store ? change(store, delete_segment, &id) : 0;
}

static int delete_attachment(struct store *s, MDB_txn *txn, void *arg)
{
    return delete (s, txn, STORE_ATTACHMENTS, arg, sizeof(uint64_t));
}

int store_delete_attachment(struct store *store, uint64_t id)
{
    return store ? change(store, delete_attachment, &id) : 0;
}

/* --- Reading ------------------------------------------------------------- */

uint64_t store_last_id(const struct store *store)
{
    return store ? store->last_id : 0;
}

uint64_t store_starts(const struct store *store)
{
    return store ? store->starts : 0;
}
