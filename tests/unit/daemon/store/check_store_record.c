/* SPDX-License-Identifier: Apache-2.0 */
/* Checks store_record.c: a record gives back what was written, and bytes of another form are
 * refused. */
#include "daemon/store/store_record.h"

#include "unit/unit.h"

static char record[sizeof(struct store_segment)];

static struct store_segment segment_of(unsigned n_entries, size_t name_bytes)
{
    struct store_segment s = {.id = 7, .size = 4096, .lifetime = 1, .access = {.mode = 0600}};
    s.access.n_entries = n_entries;
    for (unsigned i = 0; i < n_entries && i < LIMIT_ACL_ENTRIES; i++)
        s.access.entries[i] =
            (struct access_entry){.id = 1000 + i, .kind = ACCESS_USER, .perms = 4};
    memset(s.name, 'n', name_bytes);
    return s;
}

/* Returns the bytes of the record. */
static size_t give_back(const struct store_segment *want)
{
    struct store_segment got;
    memset(&got, 0xa5, sizeof got);
    size_t bytes = store_record_write(want, record);
    ck_assert_uint_le(bytes, sizeof record);
    ck_assert(store_record_read(record, bytes, &got));
    ck_assert_mem_eq(&got, want, sizeof got);
    return bytes;
}

START_TEST(shortest_and_longest)
{
    struct store_segment least = segment_of(0, 1),
                         most = segment_of(LIMIT_ACL_ENTRIES, LIMIT_NAME_BYTES);
    size_t n = give_back(&least);
    ck_assert_uint_eq(give_back(&most), n + LIMIT_ACL_ENTRIES * sizeof least.access.entries[0] +
                                            LIMIT_NAME_BYTES - 1);
}
END_TEST

START_TEST(no_shorter_record)
{
    struct store_segment s = segment_of(2, 5), got;
    size_t n = store_record_write(&s, record);
    for (size_t bytes = 0; bytes < n; bytes++)
        ck_assert_msg(!store_record_read(record, bytes, &got), "%zu of %zu bytes", bytes, n);
    ck_assert(store_record_read(record, n, &got));
}
END_TEST

START_TEST(names_end_at_the_end)
{
    struct store_segment s = segment_of(0, 5), got;
    size_t n = store_record_write(&s, record);
    record[n - 3] = record[n - 2] = 0; /* an end, and an empty label */
    ck_assert(!store_record_read(record, n, &got));
    record[n - 2] = 'n';
    record[n - 3] = record[n - 1] = 'n'; /* none */
    ck_assert(!store_record_read(record, n, &got));
    s.name[0] = 0; /* no name */
    ck_assert(!store_record_read(record, store_record_write(&s, record), &got));
    s.name[0] = 'n';
    /* two bytes, of which the first one ends the name */
    s.name[1] = 0;
    n = store_record_write(&s, record);
    record[n - 2] = 0;
    ck_assert(!store_record_read(record, n, &got));
}
END_TEST

START_TEST(labels)
{
    char longer[sizeof record + 2];
    struct store_segment s = segment_of(2, LIMIT_NAME_BYTES), got;
    size_t n = give_back(&s);
    s.label[0] = 'x';
    ck_assert_uint_eq(give_back(&s), n + 2);
    memset(s.label, 'x', LIMIT_LABEL_BYTES);
    ck_assert_uint_eq(give_back(&s), n + LIMIT_LABEL_BYTES + 1);
    n = store_record_write(&s, longer);
    ck_assert(!store_record_read(longer, n - 1, &got)); /* no end */
    longer[n] = 0;
    ck_assert(!store_record_read(longer, n + 1, &got)); /* something after it */
    longer[n - 1] = 'x';
    ck_assert(!store_record_read(longer, n + 1, &got)); /* 64 bytes */
}
END_TEST

START_TEST(names_have_a_limit)
{
    char longer[sizeof record + 2];
    struct store_segment s = segment_of(0, LIMIT_NAME_BYTES), got;
    size_t n = store_record_write(&s, longer);
    longer[n - 1] = 'n';
    longer[n] = 0;
    ck_assert(!store_record_read(longer, n + 1, &got));
}
END_TEST

/* The number of entries is read before the entries, so it must not lead beyond the record. */
START_TEST(entries_have_a_limit)
{
    char longer[sizeof record + 16];
    struct store_segment s = segment_of(LIMIT_ACL_ENTRIES, 5), got;
    size_t n = store_record_write(&s, longer), name = n - 6;
    char *at = longer + offsetof(struct store_segment, access) + offsetof(struct access, n_entries);
    const uint32_t wrong[] = {LIMIT_ACL_ENTRIES + 1, UINT32_MAX / 8 + 1, UINT32_MAX};
    memmove(longer + name + sizeof s.access.entries[0], longer + name, 6); /* room for one more */
    memset(longer + name, 0, sizeof s.access.entries[0]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(at, &wrong[i], sizeof wrong[i]);
        ck_assert_msg(!store_record_read(longer, n + sizeof s.access.entries[0], &got),
                      "%u entries", wrong[i]);
    }
}
END_TEST

UNIT_MAIN("store_record", UNIT_TEST(shortest_and_longest), UNIT_TEST(no_shorter_record),
          UNIT_TEST(names_end_at_the_end), UNIT_TEST(labels), UNIT_TEST(names_have_a_limit),
          UNIT_TEST(entries_have_a_limit))
