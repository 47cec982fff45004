/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the n-th call of LMDB fail (faults.h, FAULTS_STORE), and lists the contents of a store. */
#ifndef UNIT_FAULTS_STORE_H
#define UNIT_FAULTS_STORE_H

#include "unit/unit.h"

#include <inttypes.h>
#include <lmdb.h>

#include "daemon/store/store.h"
#include "unit/faults.h"

#define STORE_FAULT(name, parameters, arguments)                                                   \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return faults_fail(FAULTS_STORE, #name) ? errno : __real_##name arguments;                 \
    }

STORE_FAULT(mdb_env_create, (MDB_env * *env), (env))
STORE_FAULT(mdb_env_open, (MDB_env * env, const char *path, unsigned flags, mdb_mode_t mode),
            (env, path, flags, mode))
STORE_FAULT(mdb_env_set_maxdbs, (MDB_env * env, MDB_dbi n), (env, n))
STORE_FAULT(mdb_txn_begin, (MDB_env * env, MDB_txn *parent, unsigned flags, MDB_txn **txn),
            (env, parent, flags, txn))
STORE_FAULT(mdb_dbi_open, (MDB_txn * txn, const char *name, unsigned flags, MDB_dbi *dbi),
            (txn, name, flags, dbi))
STORE_FAULT(mdb_get, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *value),
            (txn, dbi, key, value))
STORE_FAULT(mdb_env_set_mapsize, (MDB_env * env, size_t bytes), (env, bytes))
STORE_FAULT(mdb_put, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned flags),
            (txn, dbi, key, value, flags))
STORE_FAULT(mdb_del, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *value),
            (txn, dbi, key, value))
STORE_FAULT(mdb_cursor_open, (MDB_txn * txn, MDB_dbi dbi, MDB_cursor **cursor), (txn, dbi, cursor))
STORE_FAULT(mdb_cursor_get,
            (MDB_cursor * cursor, MDB_val *key, MDB_val *value, MDB_cursor_op operation),
            (cursor, key, value, operation))
STORE_FAULT(mdb_dbi_flags, (MDB_txn * txn, MDB_dbi dbi, unsigned *flags), (txn, dbi, flags))
STORE_FAULT(mdb_drop, (MDB_txn * txn, MDB_dbi dbi, int del), (txn, dbi, del))
STORE_FAULT(mdb_stat, (MDB_txn * txn, MDB_dbi dbi, MDB_stat *stat), (txn, dbi, stat))
STORE_FAULT(mdb_env_info, (MDB_env * env, MDB_envinfo *info), (env, info))
STORE_FAULT(mdb_env_stat, (MDB_env * env, MDB_stat *stat), (env, stat))
STORE_FAULT(mdb_cursor_del, (MDB_cursor * cursor, unsigned flags), (cursor, flags))

/* A commit that fails has ended its transaction as well. */
int __real_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn)
{
    if (!faults_fail(FAULTS_STORE, "mdb_txn_commit"))
        return __real_mdb_txn_commit(txn);
    int error = errno;
    mdb_txn_abort(txn);
    return error;
}

/* --- What it holds ------------------------------------------------------- */

struct store_text {
    char text[4000];
    size_t n;
    uint64_t segments[32];
    unsigned n_segments, n_attachments;
};

static inline void store_text_segment(void *arg, uint64_t id, const struct store_segment *s)
{
    struct store_text *t = arg;
    ck_assert_ptr_nonnull(s);
    t->segments[t->n_segments++] = id;
    t->n +=
        (size_t)sprintf(t->text + t->n, "segment %" PRIu64 " %s %" PRIu64 " %u %u uid %u %o\n", id,
                        s->name, s->size, s->flags, s->lifetime, s->access.uid, s->access.mode);
}

static inline void store_text_attachment(void *arg, uint64_t id, const struct store_attachment *a)
{
    struct store_text *t = arg;
    ck_assert_ptr_nonnull(a);
    t->n_attachments++;
    t->n += (size_t)sprintf(t->text + t->n, "attachment %" PRIu64 " of %" PRIu64 " pid %u %u\n", id,
                            a->segment, a->holder.pid, a->slot);
}

static inline void store_text_layout(void *arg, uint32_t index, const char *text)
{
    struct store_text *t = arg;
    t->n += (size_t)sprintf(t->text + t->n, "layout %u %.40s\n", index, text);
}

/* Returns the contents as text, which is valid until the next call but one. */
static inline const struct store_text *store_tell(struct store *store)
{
    static struct store_text texts[2];
    static unsigned turn;
    struct store_text *t = &texts[turn++ % 2];
    *t = (struct store_text){0};
    ck_assert_int_eq(store_each_segment(store, store_text_segment, t), 0);
    for (unsigned i = 0; i < t->n_segments; i++)
        ck_assert_int_eq(store_each_layout(store, t->segments[i], store_text_layout, t), 0);
    ck_assert_int_eq(store_each_attachment(store, store_text_attachment, t), 0);
    return t;
}

#endif
