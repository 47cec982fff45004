/* SPDX-License-Identifier: Apache-2.0 */
/* Checks table.c against a list of what is in it. */
#include "daemon/base/table.h"

#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/unit.h"

#define THINGS 5000

static struct thing {
    struct table_link link;
    uint32_t hash;
    bool is_in;
} things[THINGS];

/* Whether a search by the hash of a thing finds it, exactly once, and nothing with another hash. */
static bool is_found(const struct table *t, const struct thing *thing)
{
    unsigned n = 0;
    for (const struct table_link *l = table_first(t, thing->hash); l; l = table_next(l)) {
        const struct thing *other = CONTAINER_OF(l, struct thing, link);
        ck_assert_uint_eq(other->hash, thing->hash);
        ck_assert(other->is_in);
        n += other == thing;
    }
    ck_assert_uint_le(n, 1);
    return n;
}

static void expect_all(const struct table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < THINGS; i++) {
        ck_assert_int_eq(is_found(t, &things[i]), things[i].is_in);
        n += things[i].is_in;
    }
    ck_assert_uint_eq(t->n, n);
}

static void change(struct table *t, struct thing *thing)
{
    if (thing->is_in)
        table_remove(t, &thing->link);
    else
        table_add(t, &thing->link, thing->hash);
    thing->is_in = !thing->is_in;
}

/* Hashes of all bits; few hashes; hashes that differ in high bits only. */
static void set_hashes(int kind, uint64_t *seed)
{
    for (size_t i = 0; i < THINGS; i++) {
        uint32_t random = (uint32_t)unit_random(seed);
        things[i] = (struct thing){.hash = kind == 0   ? random
                                           : kind == 1 ? random % 100
                                                       : random << 20};
    }
}

START_TEST(same_as_a_list)
{
    uint64_t seed = 7;
    for (int kind = 0; kind < 3; kind++) {
        struct table t = {0};
        set_hashes(kind, &seed);
        for (int round = 0; round < 4; round++) {
            for (size_t i = 0; i < THINGS * (size_t)(round + 1) / 4; i++)
                change(&t, &things[unit_random(&seed) % THINGS]);
            expect_all(&t);
        }
        for (size_t i = 0; i < THINGS; i++)
            if (things[i].is_in)
                change(&t, &things[i]);
        expect_all(&t);
        ck_assert_ptr_null(t.buckets); /* it has freed them */
    }
}
END_TEST

/* No addition may move many objects: each bucket has few, whatever the number. */
START_TEST(grows_by_one_bucket)
{
    struct table t = {0};
    uint64_t seed = 8;
    set_hashes(0, &seed);
    for (size_t i = 0; i < THINGS; i++) {
        uint32_t before = t.n_more;
        change(&t, &things[i]);
        ck_assert_uint_le(t.n_more, before + 1);
        ck_assert_uint_ge(t.n_more + 1, t.n);
    }
    for (size_t i = 0; i < THINGS; i++)
        change(&t, &things[i]);
}
END_TEST

START_TEST(works_without_memory)
{
    struct table t = {0};
    uint64_t seed = 9;
    set_hashes(0, &seed);
    for (size_t i = 0; i < THINGS / 2; i++) {
        faults_begin(FAULTS_MEMORY, 1);
        change(&t, &things[i]);
        faults_end();
    }
    ck_assert_uint_eq(t.n_more, 0);
    expect_all(&t);
    for (size_t i = THINGS / 2; i < THINGS; i++) /* now there is memory */
        change(&t, &things[i]);
    expect_all(&t);
    for (size_t i = 0; i < THINGS; i++)
        change(&t, &things[i]);
}
END_TEST

START_TEST(hashes_differ)
{
    unsigned n_same = 0;
    ck_assert_uint_eq(table_hash_bytes("ab", 1), table_hash_bytes("ac", 1));
    ck_assert_uint_ne(table_hash_bytes("ab", 2), table_hash_bytes("ac", 2));
    ck_assert_uint_ne(table_hash_bytes("", 0), table_hash_bytes("a", 1));
    for (uint64_t i = 0; i < 1000; i++)
        n_same += table_hash_number(i) % 1024 == table_hash_number(i + 1) % 1024;
    ck_assert_uint_le(n_same, 5);
}
END_TEST

UNIT_MAIN("table", UNIT_TEST(same_as_a_list), UNIT_TEST(grows_by_one_bucket),
          UNIT_TEST(works_without_memory), UNIT_TEST(hashes_differ))
