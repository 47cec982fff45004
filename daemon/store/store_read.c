/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the records, for a daemon that takes over. Nothing in them is trusted. */
#include <endian.h>
#include <string.h>

#include <shmview/placement.h>
#include <shmview/shmview.h>

#include "common/base/name.h"
#include "daemon/store/store_env.h"
#include "daemon/store/store_record.h"

/* Visits the records of a table from the key *from on (NULL: from the first), until visit() returns
 * false. */
static int each(struct store *s, enum store_table table, MDB_val *from,
                bool (*visit)(void *arg, const MDB_val *key, const MDB_val *value), void *arg)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val k, v;
    int r = store_reopen(s);
    if (r)
        return r;
    r = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn);
    if (r)
        return store_result(r);
    r = mdb_cursor_open(txn, s->tables[table], &cursor);
    if (r == 0) {
        if (from)
            k = *from;
        r = mdb_cursor_get(cursor, &k, &v, from ? MDB_SET_RANGE : MDB_FIRST);
        while (r == 0 && visit(arg, &k, &v))
            r = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return r == MDB_NOTFOUND ? 0 : store_result(r);
}

/* The caller's function, and its argument, of one of the store_each_...() below. */
struct visit {
    void (*segment)(void *, uint64_t, const struct store_segment *);
    void (*attachment)(void *, uint64_t, const struct store_attachment *);
    void (*layout)(void *, uint32_t, const char *);
    void *arg;
    uint64_t id;
};

static uint64_t id_of(const MDB_val *key)
{
    uint64_t id = 0;
    if (key->mv_size == sizeof id)
        memcpy(&id, key->mv_data, sizeof id);
    return id;
}

/* Whether all members have values that a daemon writes: replies name them by tables. */
static bool placement_is_sound(const struct store_placement *p)
{
    return p->huge <= SHMVIEW_HUGE_REQUIRED && p->numa <= SHMVIEW_NUMA_NODE &&
           p->by <= SHMVIEW_HUGE_BY_THP && p->missing <= SHMVIEW_HUGE_UNSUPPORTED &&
           p->huge_bytes <= INT64_MAX && p->nodes <= INT64_MAX;
}

static bool visit_segment(void *arg, const MDB_val *key, const MDB_val *value)
{
    const struct visit *v = arg;
    struct store_segment segment;
    uint64_t id = id_of(key);
    bool fits = store_record_read(value->mv_data, value->mv_size, &segment) && segment.id == id &&
                name_is_valid(segment.name, LIMIT_NAME_BYTES) &&
                (!segment.label[0] || label_is_valid(segment.label)) &&
                segment.lifetime >= SHMVIEW_ATTACHED && segment.lifetime <= SHMVIEW_CREATOR &&
                placement_is_sound(&segment.placement);
    v->segment(v->arg, id, fits ? &segment : NULL);
    return true;
}

int store_each_segment(struct store *store,
                       void (*visit)(void *arg, uint64_t id, const struct store_segment *),
                       void *arg)
{
    struct visit v = {.segment = visit, .arg = arg};
    return store ? each(store, STORE_SEGMENTS, NULL, visit_segment, &v) : 0;
}

static bool visit_attachment(void *arg, const MDB_val *key, const MDB_val *value)
{
    const struct visit *v = arg;
    struct store_attachment a = {0};
    uint64_t id = id_of(key);
    if (value->mv_size == sizeof a)
        memcpy(&a, value->mv_data, sizeof a);
    bool fits = value->mv_size == sizeof a && a.id == id && a.access >= SHMVIEW_PEEK &&
                a.access <= SHMVIEW_WRITE;
    v->attachment(v->arg, id, fits ? &a : NULL);
    return true;
}

int store_each_attachment(struct store *store,
                          void (*visit)(void *arg, uint64_t id, const struct store_attachment *),
                          void *arg)
{
    struct visit v = {.attachment = visit, .arg = arg};
    return store ? each(store, STORE_ATTACHMENTS, NULL, visit_attachment, &v) : 0;
}

static bool visit_layout(void *arg, const MDB_val *key, const MDB_val *value)
{
    const struct visit *v = arg;
    struct layout_key k;
    if (key->mv_size != sizeof k)
        return false;
    memcpy(&k, key->mv_data, sizeof k);
    if (be64toh(k.segment) != v->id || value->mv_size == 0 ||
        ((const char *)value->mv_data)[value->mv_size - 1])
        return false;
    v->layout(v->arg, (uint32_t)be64toh(k.index), value->mv_data);
    return true;
}

int store_each_layout(struct store *store, uint64_t segment,
                      void (*visit)(void *arg, uint32_t index, const char *text), void *arg)
{
    struct layout_key from = layout_key(segment, 0);
    MDB_val key = {sizeof from, &from};
    struct visit v = {.layout = visit, .arg = arg, .id = segment};
    return store ? each(store, STORE_LAYOUTS, &key, visit_layout, &v) : 0;
}
