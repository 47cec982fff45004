/* SPDX-License-Identifier: Apache-2.0 */
/* Checks store_read.c: a record that does not fit is reported by its id, and no other record is
 * lost. Also checks a store that is NULL. */
#include "unit/unit.h"

#include <shmview/shmview.h>

#include "daemon/store/store_env.h"
#include "unit/faults.h"
#include "unit/faults_store.h"

static const char *path(void)
{
    static char text[100];
    snprintf(text, sizeof text, "%s/registry", unit_directory());
    return text;
}

static struct store *open_store(void)
{
    struct store *store = NULL;
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    ck_assert(!was_bad);
    return store;
}

/* Puts a record without the functions of the store. */
static void put_raw(struct store *store, enum store_table table, const void *key, size_t key_bytes,
                    const void *value, size_t value_bytes)
{
    MDB_txn *txn;
    MDB_val k = {key_bytes, (void *)(uintptr_t)key}, v = {value_bytes, (void *)(uintptr_t)value};
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_put(txn, store->tables[table], &k, &v, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

/* The ids in order, negative for a record that does not fit. */
struct seen {
    int64_t ids[16];
    size_t n;
};

static void see(struct seen *seen, uint64_t id, bool fits)
{
    ck_assert_uint_lt(seen->n, 16);
    seen->ids[seen->n++] = fits ? (int64_t)id : -(int64_t)id;
}

static void see_segment(void *arg, uint64_t id, const struct store_segment *s)
{
    ck_assert(!s || s->id == id);
    see(arg, id, s);
}

static void see_attachment(void *arg, uint64_t id, const struct store_attachment *a)
{
    ck_assert(!a || a->id == id);
    see(arg, id, a);
}

static void see_layout(void *arg, uint32_t index, const char *text)
{
    ck_assert_uint_lt(strlen(text), 100);
    see(arg, index, true);
}

static void seen_are(const struct seen *seen, const int64_t *ids, size_t n)
{
    ck_assert_uint_eq(seen->n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(seen->ids[i], ids[i]);
}

static struct store_segment segment(uint64_t id)
{
    struct store_segment s = {.id = id, .size = 100, .lifetime = SHMVIEW_MANUAL};
    snprintf(s.name, sizeof s.name, "s%d", (int)id);
    return s;
}

START_TEST(segments_that_do_not_fit)
{
    static const int64_t want[] = {1, -2, -3, -4, -5, -6, -7, 8};
    struct seen seen = {.n = 0};
    struct store *store = open_store();
    struct store_segment s = segment(1);
    strcpy(s.label, "a label");
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    s = segment(2);
    strcpy(s.label, "an \033[31m escape");
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    s = segment(3);
    s.lifetime = SHMVIEW_ATTACHED - 1;
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    s = segment(4);
    s.lifetime = SHMVIEW_CREATOR + 1;
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    s = segment(5);
    strcpy(s.name, "../x");
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    const uint64_t six = 6, seven = 7;
    put_raw(store, STORE_SEGMENTS, &six, sizeof six, "short", 5);
    put_raw(store, STORE_SEGMENTS, &seven, sizeof seven, &s, 0);
    s = segment(8);
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    ck_assert_int_eq(store_each_segment(store, see_segment, &seen), 0);
    seen_are(&seen, want, 8);
    store_close(store, true);
}
END_TEST

/* A record under the id of another one would be deleted with it, and then come back. */
START_TEST(records_under_another_id)
{
    char record[sizeof(struct store_segment)] = {0};
    struct store_attachment a = {.id = 1, .segment = 1, .access = SHMVIEW_READ};
    struct seen seen = {.n = 0};
    struct store *store = open_store();
    struct store_segment s = segment(1);
    const uint64_t two = 2;
    MDB_txn *txn;
    MDB_val k = {sizeof s.id, &s.id}, v;
    ck_assert_int_eq(store_put_segment(store, &s), 0);
    ck_assert_int_eq(store_put_attachment(store, &a), 0);
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_get(txn, store->tables[STORE_SEGMENTS], &k, &v), 0);
    size_t n = v.mv_size;
    memcpy(record, v.mv_data, n);
    mdb_txn_abort(txn);
    put_raw(store, STORE_SEGMENTS, &two, sizeof two, record, n);
    put_raw(store, STORE_ATTACHMENTS, &two, sizeof two, &a, sizeof a);
    static const int64_t want[] = {1, -2};
    ck_assert_int_eq(store_each_segment(store, see_segment, &seen), 0);
    seen_are(&seen, want, 2);
    seen.n = 0;
    ck_assert_int_eq(store_each_attachment(store, see_attachment, &seen), 0);
    seen_are(&seen, want, 2);
    store_close(store, true);
}
END_TEST

START_TEST(attachments_that_do_not_fit)
{
    static const int64_t want[] = {1, 2, -3, -4, -5, 6};
    struct store_attachment a = {.segment = 1};
    struct seen seen = {.n = 0};
    struct store *store = open_store();
    const int accesses[] = {SHMVIEW_PEEK, SHMVIEW_WRITE, SHMVIEW_PEEK - 1, SHMVIEW_WRITE + 1, 0,
                            SHMVIEW_READ};
    for (a.id = 1; a.id <= 6; a.id++) {
        __typeof__(a.access) access = (__typeof__(a.access))accesses[a.id - 1];
        a.access = access;
        if (a.id == 5)
            put_raw(store, STORE_ATTACHMENTS, &a.id, sizeof a.id, &a, sizeof a - 1);
        else
            ck_assert_int_eq(store_put_attachment(store, &a), 0);
    }
    ck_assert_int_eq(store_each_attachment(store, see_attachment, &seen), 0);
    seen_are(&seen, want, 6);
    store_close(store, true);
}
END_TEST

/* The layouts of a segment end at the first one that is no text, or whose key is no key. */
START_TEST(layouts_that_do_not_fit)
{
    static const struct {
        const char *value;
        size_t n;
    } wrong[] = {{"no end", 6}, {"", 0}};
    static const int64_t want[] = {0, 1};
    const struct store_segment s = segment(7);
    for (size_t i = 0; i < 3; i++) {
        struct seen seen = {.n = 0};
        struct store *store = open_store();
        struct layout_key key = layout_key(7, 2);
        ck_assert_int_eq(store_put_segment(store, &s), 0);
        ck_assert_int_eq(store_put_layout(store, 7, 0, "zero"), 0);
        ck_assert_int_eq(store_put_layout(store, 7, 1, "one"), 0);
        ck_assert_int_eq(store_put_layout(store, 8, 0, "of another segment"), 0);
        if (i < 2)
            put_raw(store, STORE_LAYOUTS, &key, sizeof key, wrong[i].value, wrong[i].n);
        else
            put_raw(store, STORE_LAYOUTS, &key, sizeof key - 1, "text", 5);
        ck_assert_int_eq(store_each_layout(store, 7, see_layout, &seen), 0);
        seen_are(&seen, want, 2);
        ck_assert_int_eq(store_delete_segment(store, 7), 0);
        seen.n = 0;
        ck_assert_int_eq(store_each_layout(store, 7, see_layout, &seen), 0);
        ck_assert_uint_eq(seen.n, 0);
        ck_assert_int_eq(store_each_layout(store, 8, see_layout, &seen), 0);
        ck_assert_uint_eq(seen.n, 1);
        store_close(store, true);
    }
}
END_TEST

/* Each call that opens the file again may fail. Nothing is lost, and the next call tries again. */
START_TEST(opened_again)
{
    static const int errors[] = {ENOMEM, EMFILE, MDB_CORRUPTED};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        bool failed = true;
        struct store *store = open_store();
        const struct store_segment s = segment(1);
        ck_assert_int_eq(store_put_segment(store, &s), 0);
        faults_errno(errors[i]);
        for (unsigned n = 1; failed; n++) {
            struct seen seen = {.n = 0};
            unsigned before = unit_fds_before + 1; /* that of the file */
            mdb_env_close(store->env);
            store->env = NULL;
            faults_begin(FAULTS_STORE, n);
            int r = store_each_segment(store, see_segment, &seen);
            failed = faults_end();
            ck_assert_int_eq(r, !failed ? 0 : errors[i] < 0 ? -EUCLEAN : -errors[i]);
            ck_assert(store->env || unit_fds() == before);
            seen.n = 0;
            ck_assert_int_eq(store_each_segment(store, see_segment, &seen), 0);
            ck_assert_uint_eq(seen.n, 1);
        }
        store_close(store, true);
    }
}
END_TEST

START_TEST(a_store_that_keeps_nothing)
{
    struct seen seen = {.n = 0};
    const struct store_segment s = segment(1);
    const struct store_attachment a = {.id = 1};
    ck_assert_int_eq(store_put_segment(NULL, &s), 0);
    ck_assert_int_eq(store_put_attachment(NULL, &a), 0);
    ck_assert_int_eq(store_put_layout(NULL, 1, 0, "text"), 0);
    ck_assert_int_eq(store_each_segment(NULL, see_segment, &seen), 0);
    ck_assert_int_eq(store_each_attachment(NULL, see_attachment, &seen), 0);
    ck_assert_int_eq(store_each_layout(NULL, 1, see_layout, &seen), 0);
    ck_assert_uint_eq(seen.n, 0);
    ck_assert_int_eq(store_delete_segment(NULL, 1), 0);
    ck_assert_int_eq(store_delete_attachment(NULL, 1), 0);
    ck_assert_uint_eq(store_last_id(NULL), 0);
    ck_assert_uint_eq(store_starts(NULL), 0);
    ck_assert_ptr_null(store_close(NULL, true));
}
END_TEST

UNIT_MAIN("store_read", UNIT_TEST(segments_that_do_not_fit), UNIT_TEST(records_under_another_id),
          UNIT_TEST(attachments_that_do_not_fit), UNIT_TEST(layouts_that_do_not_fit),
          UNIT_TEST(opened_again), UNIT_TEST(a_store_that_keeps_nothing))
