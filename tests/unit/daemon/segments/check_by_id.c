/* SPDX-License-Identifier: Apache-2.0 */
/* Checks by_id.c against an array that has each segment at the index of its id. */
#include "daemon/segments/by_id.h"

#include "unit/faults.h"
#include "unit/unit.h"

#define IDS 2000

static struct segment segments[IDS + 1];
static bool is_in[IDS + 1];

static void expect_all(const struct by_id *ids)
{
    size_t n = 0;
    struct segment *next = NULL;
    for (uint64_t id = IDS; id > 0; id--) {
        ck_assert_ptr_eq(by_id_next(ids, id), next);
        ck_assert_ptr_eq(by_id_find(ids, id), is_in[id] ? &segments[id] : NULL);
        next = is_in[id] ? &segments[id] : next;
        n += is_in[id];
    }
    ck_assert_ptr_eq(by_id_next(ids, 0), next);
    ck_assert_ptr_null(by_id_find(ids, 0));
    ck_assert_ptr_null(by_id_find(ids, IDS + 1));
    ck_assert_ptr_null(by_id_find(ids, UINT64_MAX));
    ck_assert_ptr_null(by_id_next(ids, UINT64_MAX));
    ck_assert_uint_eq(by_id_count(ids), n);
}

static void change(struct by_id *ids, uint64_t id)
{
    segments[id].id = id;
    if (is_in[id])
        by_id_remove(ids, &segments[id]);
    else
        ck_assert_int_eq(by_id_add(ids, &segments[id]), 0);
    is_in[id] = !is_in[id];
}

START_TEST(ids_that_grow)
{
    struct by_id ids = {0};
    uint64_t seed = 3;
    for (uint64_t id = 1; id <= IDS; id++) {
        change(&ids, id);
        if (unit_random(&seed) % 4 && is_in[id / 2 + 1])
            change(&ids, id / 2 + 1);
        if (id % 100 == 0)
            expect_all(&ids);
    }
    ck_assert_uint_le(ids.n_gaps, ids.n / 2 + 64);
    for (uint64_t id = 1; id <= IDS; id++)
        if (is_in[id])
            change(&ids, id);
    expect_all(&ids);
    ck_assert_ptr_null(ids.list);
}
END_TEST

/* The records of a damaged registry may come in any order. A gap may have the id. */
START_TEST(ids_in_any_order)
{
    struct by_id ids = {0};
    uint64_t seed = 4;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 300; k++)
            change(&ids, unit_random(&seed) % IDS + 1);
        expect_all(&ids);
    }
    for (uint64_t id = 1; id <= IDS; id++)
        if (is_in[id])
            change(&ids, id);
}
END_TEST

START_TEST(no_memory)
{
    struct by_id ids = {0};
    unsigned n_failed = 0;
    for (uint64_t id = 1; id <= IDS; id++) {
        segments[id].id = id;
        faults_begin(FAULTS_MEMORY, 1);
        int r = by_id_add(&ids, &segments[id]);
        if (!faults_end()) {
            ck_assert_int_eq(r, 0);
            is_in[id] = true;
            continue;
        }
        ck_assert_int_eq(r, -ENOMEM);
        n_failed++;
        change(&ids, id);
    }
    ck_assert_uint_gt(n_failed, 3);
    expect_all(&ids);
    for (uint64_t id = 1; id <= IDS; id++)
        change(&ids, id);
}
END_TEST

UNIT_MAIN("by_id", UNIT_TEST(ids_that_grow), UNIT_TEST(ids_in_any_order), UNIT_TEST(no_memory))
