/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_try.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <lmdb.h>

#include "common/base/util.h"
#include "daemon/store/store_file.h"

#define TABLES_MOST 16
/* The map of a trial is five times as large as the file, and ROOM_BYTES. A changed page is copied
 * and may be split, and a value with pages of its own is written twice, before anything is free. */
#define ROOM_PARTS     ((size_t)5)
#define ROOM_BYTES     ((size_t)4 << 20)
#define FREE_DBI       0 /* LMDB's table of free pages, by transaction */
#define MAIN_DBI       1 /* LMDB's table of tables */
#define KEY_BYTES_MOST 16
#define META_PAGES     2

/* Keys of records to change: the first one on each page, and those whose values have pages of their
 * own. */
struct keys {
    unsigned char (*list)[KEY_BYTES_MOST];
    size_t n, capacity;
};

/* The state of a trial. Steps return false if the file is bad; or if is_short, because there was no
 * memory for something of a fixed size. What a change needs depends on the file, so there ENOMEM is
 * no excuse. Nothing is freed, because the process ends afterwards. */
struct trial {
    MDB_env *env;
    size_t page_bytes;
    size_t last_page, last_txn; /* as the file claims */
    struct keys keys[STORE_N_TABLES];
    uint64_t hash; /* of all records */
    bool is_short; /* memory was short */
};

/* --- Reading ------------------------------------------------------------- */

/* FNV-1a over the value and its length. */
static uint64_t add_bytes(uint64_t hash, const MDB_val *value)
{
    const unsigned char *bytes = value->mv_data;
    for (size_t i = 0; i < value->mv_size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return (hash ^ value->mv_size) * 0x100000001b3u;
}

static bool add_key(struct trial *t, struct keys *keys, const MDB_val *key)
{
    if (keys->n == keys->capacity) {
        size_t capacity = keys->capacity ? keys->capacity * 2 : 64;
        void *list = realloc(keys->list, capacity * sizeof *keys->list);
        t->is_short = !list;
        if (!list)
            return false;
        keys->list = list;
        keys->capacity = capacity;
    }
    memcpy(keys->list[keys->n++], key->mv_data, key->mv_size);
    return true;
}

/* Reads every byte of every record, and checks the order and the number of the keys. A damaged tree
 * can have them wrong, and LMDB would not notice. Collects keys unless keys is NULL. */
static bool read_table(struct trial *t, MDB_txn *txn, MDB_dbi dbi, size_t key_bytes,
                       struct keys *keys)
{
    MDB_cursor *cursor;
    MDB_val key, value, last = {0};
    MDB_stat stat;
    size_t n = 0;
    int r = mdb_cursor_open(txn, dbi, &cursor);
    t->is_short = r == ENOMEM;
    if (r)
        return false;
    while ((r = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (key.mv_size != key_bytes || (n++ && mdb_cmp(txn, dbi, &last, &key) >= 0))
            return false;
        size_t page = (uintptr_t)key.mv_data / t->page_bytes;
        bool is_due = n == 1 || page != (uintptr_t)last.mv_data / t->page_bytes ||
                      page != (uintptr_t)value.mv_data / t->page_bytes;
        if (keys && is_due && !add_key(t, keys, &key))
            return false;
        t->hash = add_bytes(add_bytes(t->hash, &key), &value);
        last = key;
    }
    mdb_cursor_close(cursor);
    return r == MDB_NOTFOUND && mdb_stat(txn, dbi, &stat) == 0 && stat.ms_entries == n;
}

/* Opens the tables; 0 stands for one that does not exist. Any further table is an error. */
static bool open_tables(struct trial *t, MDB_txn *txn, MDB_dbi ret[STORE_N_TABLES])
{
    MDB_stat stat;
    size_t n = 0;
    for (int i = 0; i < STORE_N_TABLES; i++) {
        unsigned flags;
        int r = mdb_dbi_open(txn, store_tables[i].name, 0, &ret[i]);
        if (r == MDB_NOTFOUND) {
            ret[i] = 0;
            continue;
        }
        t->is_short = r == ENOMEM;
        if (r || mdb_dbi_flags(txn, ret[i], &flags) || flags != store_tables[i].flags)
            return false;
        n++;
    }
    return mdb_stat(txn, MAIN_DBI, &stat) == 0 && stat.ms_entries == n;
}

static bool read_tables(struct trial *t, MDB_txn *txn, bool wants_keys)
{
    MDB_dbi tables[STORE_N_TABLES];
    t->hash = 0xcbf29ce484222325u;
    if (!open_tables(t, txn, tables))
        return false;
    for (int i = 0; i < STORE_N_TABLES; i++)
        if (tables[i] && !read_table(t, txn, tables[i], store_tables[i].key_bytes,
                                     wants_keys ? &t->keys[i] : NULL))
            return false;
    return true;
}

/* Marks the pages of one list of free pages: their count, then their numbers in falling order.
 * Returns false if a page is marked already or cannot be free. */
static bool mark_pages(const struct trial *t, const MDB_val *value, unsigned char *marks)
{
    size_t n = value->mv_size / sizeof(size_t);
    const size_t *list = value->mv_data;
    if (n == 0 || list[0] >= n)
        return false;
    for (size_t i = 1; i <= list[0]; i++) {
        if (list[i] < META_PAGES || list[i] > t->last_page || (i > 1 && list[i] >= list[i - 1]) ||
            marks[list[i]])
            return false;
        marks[list[i]] = 1;
    }
    return true;
}

/* Checks that no page is free twice. Adds the number of free pages to *n_free. */
static bool read_free_pages(struct trial *t, MDB_txn *txn, size_t *n_free)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    CLEANUP_FREE unsigned char *marks = calloc(t->last_page + 1, 1);
    int r = marks ? mdb_cursor_open(txn, FREE_DBI, &cursor) : ENOMEM;
    t->is_short = r == ENOMEM;
    if (r)
        return false;
    while ((r = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (key.mv_size != sizeof(size_t) || *(const size_t *)key.mv_data > t->last_txn ||
            !mark_pages(t, &value, marks))
            return false;
        *n_free += *(const size_t *)value.mv_data;
    }
    mdb_cursor_close(cursor);
    return r == MDB_NOTFOUND;
}

/* Adds the number of pages of a table. */
static bool count_used(MDB_txn *txn, MDB_dbi dbi, size_t *n_used)
{
    MDB_stat stat;
    if (mdb_stat(txn, dbi, &stat))
        return false;
    *n_used += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    return true;
}

/* Checks the free pages, and that they and the pages of LMDB's own tables are not more than the
 * file has. When all other tables are empty, these are all pages: then a page that is both used and
 * free is found. */
static bool count_pages(struct trial *t, MDB_txn *txn)
{
    size_t n = META_PAGES;
    MDB_envinfo info;
    if (mdb_env_info(t->env, &info))
        return false;
    t->last_page = info.me_last_pgno;
    t->last_txn = info.me_last_txnid;
    return read_free_pages(t, txn, &n) && count_used(txn, FREE_DBI, &n) &&
           count_used(txn, MAIN_DBI, &n) && n <= t->last_page + 1;
}

/* --- Changing ------------------------------------------------------------ */

/* Enlarges the record, removes it, and writes it back as it was. */
static bool change_record(struct trial *t, MDB_txn *txn, MDB_dbi dbi, MDB_val *key)
{
    MDB_val value;
    if (mdb_get(txn, dbi, key, &value))
        return false;
    CLEANUP_FREE char *copy = calloc(1, value.mv_size + 1);
    t->is_short = !copy;
    if (!copy)
        return false;
    memcpy(copy, value.mv_data, value.mv_size);
    MDB_val same = {value.mv_size, copy}, longer = {value.mv_size + 1, copy};
    return mdb_put(txn, dbi, key, &longer, 0) == 0 && mdb_del(txn, dbi, key, NULL) == 0 &&
           mdb_put(txn, dbi, key, &same, 0) == 0;
}

static bool change_tables(struct trial *t, MDB_txn *txn)
{
    MDB_dbi tables[STORE_N_TABLES];
    if (!open_tables(t, txn, tables))
        return false;
    for (int i = 0; i < STORE_N_TABLES; i++)
        for (size_t k = 0; k < t->keys[i].n; k++) {
            MDB_val key = {store_tables[i].key_bytes, t->keys[i].list[k]};
            if (!change_record(t, txn, tables[i], &key))
                return false;
        }
    return true;
}

static bool empty_tables(struct trial *t, MDB_txn *txn)
{
    MDB_dbi tables[STORE_N_TABLES];
    if (!open_tables(t, txn, tables))
        return false;
    for (int i = 0; i < STORE_N_TABLES; i++)
        if (tables[i] && mdb_drop(txn, tables[i], 1))
            return false;
    return true;
}

/* --- All of it ----------------------------------------------------------- */

static bool read_first(struct trial *t, MDB_txn *txn)
{
    return count_pages(t, txn) && read_tables(t, txn, true);
}

static bool read_again(struct trial *t, MDB_txn *txn)
{
    uint64_t before = t->hash;
    return read_tables(t, txn, false) && t->hash == before;
}

/* Runs all steps, each in a transaction of its own. Returns 0 or -errno. */
static int run(struct trial *t)
{
    static const struct {
        unsigned flags;
        bool (*step)(struct trial *, MDB_txn *);
    } steps[] = {
        {MDB_RDONLY, read_first}, {0, change_tables},        {MDB_RDONLY, read_again},
        {0, empty_tables},        {MDB_RDONLY, count_pages},
    };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        MDB_txn *txn;
        int r = mdb_txn_begin(t->env, NULL, steps[i].flags, &txn);
        if (r == 0 && !steps[i].step(t, txn))
            return t->is_short ? -ENOMEM : -EUCLEAN;
        if (r == 0)
            r = mdb_txn_commit(txn);
        if (r)
            return r < 0 ? -EUCLEAN : -r;
    }
    return 0;
}

size_t store_try_bytes(size_t bytes)
{
    return ROOM_PARTS * bytes + ROOM_BYTES;
}

/* Whether there is address space for twice the map of the trial, which is more than LMDB needs in
 * all; with PROT_WRITE also memory, where the kernel limits how much it promises
 * (vm.overcommit_memory). */
static bool has_room(size_t bytes, int prot)
{
    size_t room = 2 * store_try_bytes(bytes);
    void *p = mmap(NULL, room, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, room);
    return p != MAP_FAILED;
}

static int try_env(struct trial *t, const char *path, size_t bytes)
{
    MDB_stat stat;
    MDB_envinfo info;
    int r = mdb_env_create(&t->env);
    if (r == 0)
        r = mdb_env_set_maxdbs(t->env, TABLES_MOST);
    if (r == 0)
        r = mdb_env_set_mapsize(t->env, store_try_bytes(bytes));
    if (r == 0) {
        r = mdb_env_open(t->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK | MDB_WRITEMAP, 0);
        if (r == ENOMEM && has_room(bytes, PROT_READ))
            r = EINVAL; /* the file claims to need a far larger map */
    }
    if (r == 0)
        r = mdb_env_stat(t->env, &stat);
    if (r == 0)
        r = mdb_env_info(t->env, &info);
    if (r == ENOMEM || r == EMFILE || r == ENFILE || r == EAGAIN)
        return -r;
    if (r || stat.ms_psize == 0 || info.me_last_pgno >= bytes / stat.ms_psize)
        return -EUCLEAN;
    t->page_bytes = stat.ms_psize;
    return run(t);
}

int store_try(const char *path, size_t bytes)
{
    struct trial t = {0};
    if (!has_room(bytes, PROT_READ))
        return -ENOMEM;
    int r = try_env(&t, path, bytes);
    /* if memory is short, a sound file fails, too: do not call it damaged */
    return r == -EUCLEAN && !has_room(bytes, PROT_READ | PROT_WRITE) ? -ENOMEM : r;
}
