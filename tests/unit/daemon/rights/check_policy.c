/* SPDX-License-Identifier: Apache-2.0 */
/* Compares policy.c with a slow model, for every mode, every list of up to two entries and every
 * user of a small world. */
#include "unit/unit.h"

#include <shmview/shmview.h>

#include "daemon/rights/policy.h"

#define IDS 3 /* users and groups are 1, 2, 3 */

/* Whom an entry of the access is about, from the closest to the farthest. */
enum closeness {
    OWNER,
    NAMED,
    GROUP,
    OTHERS,
    N_CLOSENESS
};

/* Collects every entry that applies to the user, by closeness. The closest ones decide. */
static unsigned model(const struct access *a, const struct who *who)
{
    unsigned said[N_CLOSENESS] = {0};
    bool says[N_CLOSENESS] = {[OTHERS] = true};
    bool in[IDS + 1] = {0};
    in[who->gid] = true;
    for (size_t i = 0; i < who->n_groups; i++)
        in[who->groups[i]] = true;
    if (who->is_admin)
        return 6;
    says[OWNER] = a->uid == who->uid;
    said[OWNER] = a->mode / 0100 % 010;
    says[GROUP] = in[a->gid];
    said[GROUP] = in[a->gid] ? a->mode / 010 % 010 : 0;
    said[OTHERS] = a->mode % 010;
    for (uint32_t i = 0; i < a->n_entries; i++) {
        const struct access_entry *e = &a->entries[i];
        enum closeness c = e->kind == ACCESS_USER ? NAMED : GROUP;
        if (c == NAMED ? e->id != who->uid : !in[e->id])
            continue;
        says[c] = true;
        said[c] |= e->perms;
    }
    for (int c = 0; c < N_CLOSENESS; c++)
        if (says[c])
            return said[c] & 4 ? said[c] & 6 : 0;
    return 0;
}

static bool agrees(const struct access *a, const struct who *who)
{
    unsigned want = model(a, who);
    bool manages = who->is_admin || who->uid == a->uid;
    return policy_rights(a, who) == want && policy_manages(a, who) == manages &&
           policy_may_see(a, who) == (manages || want) &&
           policy_may_attach(a, who, SHMVIEW_PEEK) == (want != 0) &&
           policy_may_attach(a, who, SHMVIEW_READ) == (want != 0) &&
           policy_may_attach(a, who, SHMVIEW_WRITE) == (want == 6);
}

/* Compares every user of that world: own group, other groups, administrator or not. */
static void compare_all(const struct access *a)
{
    for (unsigned n = 0; n < IDS * IDS * 8 * 2; n++) {
        gid_t groups[IDS];
        struct who who = {
            .uid = 1 + n % IDS,
            .gid = 1 + n / IDS % IDS,
            .groups = groups,
            .is_admin = n / (IDS * IDS * 8),
        };
        for (unsigned g = 0; g < IDS; g++)
            if (n / (IDS * IDS) & 1u << g)
                groups[who.n_groups++] = 1 + g;
        if (!agrees(a, &who))
            ck_abort_msg("mode %o, %u entries, uid %u, gid %u, groups %u: %u", a->mode,
                         a->n_entries, who.uid, who.gid, n / (IDS * IDS), policy_rights(a, &who));
    }
}

/* Returns entry k of all: users and groups 2 and 3, with each of 4 rights. */
static struct access_entry entry(unsigned k)
{
    return (struct access_entry){
        .id = 2 + k % 2,
        .kind = k / 2 % 2 ? ACCESS_USER : ACCESS_GROUP,
        .perms = (uint16_t)(k / 4 * 2),
    };
}

START_TEST(modes_and_entries)
{
    for (unsigned mode = 0; mode < 512; mode++) {
        if (mode & ~ACCESS_MODES)
            continue;
        for (unsigned k = 0; k < 17 * 17; k++) {
            struct access a = {.uid = 1, .gid = 2, .mode = mode};
            if (k % 17)
                a.entries[a.n_entries++] = entry(k % 17 - 1);
            if (k / 17)
                a.entries[a.n_entries++] = entry(k / 17 - 1);
            if (a.n_entries == 2 && a.entries[0].id == a.entries[1].id &&
                a.entries[0].kind == a.entries[1].kind)
                continue;
            compare_all(&a);
        }
    }
}
END_TEST

START_TEST(who_may_change_what)
{
    const gid_t groups[] = {7};
    const struct access mine = {.uid = 1, .gid = 5}, his = {.uid = 2, .gid = 5};
    const struct access given = {.uid = 2, .gid = 5}, other = {.uid = 1, .gid = 6};
    const struct access own = {.uid = 1, .gid = 4}, second = {.uid = 1, .gid = 7};
    const struct access mode = {.uid = 1, .gid = 5, .mode = 0666};
    struct who me = {.uid = 1, .gid = 4, .groups = groups, .n_groups = 1};
    struct who admin = {.uid = 9, .is_admin = true};
    ck_assert(policy_may_change(&mine, &mode, &me));
    ck_assert(policy_may_change(&mine, &own, &me));
    ck_assert(policy_may_change(&mine, &second, &me));
    ck_assert(!policy_may_change(&mine, &other, &me)); /* a group of which this user is no member */
    ck_assert(!policy_may_change(&mine, &given, &me));
    ck_assert(!policy_may_change(&his, &his, &me));
    ck_assert(policy_may_change(&his, &other, &admin));
}
END_TEST

START_TEST(people)
{
    const gid_t groups[] = {7, 8};
    const struct access_entry entries[] = {{.id = 1, .kind = ACCESS_USER},
                                           {.id = 8, .kind = ACCESS_GROUP}};
    const struct who user = {.uid = 1, .gid = 100},
                     member = {.uid = 2, .groups = groups, .n_groups = 2};
    const struct who stranger = {.uid = 8, .gid = 1};
    ck_assert(policy_is_among(&user, entries, 2));
    ck_assert(policy_is_among(&member, entries, 2));
    ck_assert(!policy_is_among(&member, entries, 1));
    ck_assert(!policy_is_among(&stranger, entries, 2)); /* a uid is not a gid */
    ck_assert(!policy_is_among(&user, entries, 0));
}
END_TEST

/* Equal ones are shared, whatever bytes follow the used entries. */
START_TEST(equal_ones_are_shared)
{
    struct access a = {.uid = 1,
                       .gid = 2,
                       .mode = 0640,
                       .n_entries = 1,
                       .entries = {{3, ACCESS_USER, 4}, {4, ACCESS_USER, 4}}};
    struct access b = a;
    b.entries[1].id = 99;
    const struct access *first = access_share(&a), *second = access_share(&b);
    ck_assert_ptr_eq(first, second);
    b.entries[0].perms = 6;
    const struct access *third = access_share(&b);
    ck_assert_ptr_ne(first, third);
    ck_assert_uint_eq(third->entries[0].perms, 6);
    access_unshare(first);
    ck_assert_uint_eq(second->entries[0].id, 3);
    access_unshare(second);
    access_unshare(third);
    ck_assert_ptr_null(access_unshare(NULL));
}
END_TEST

UNIT_MAIN("policy", UNIT_TEST(modes_and_entries), UNIT_TEST(who_may_change_what), UNIT_TEST(people),
          UNIT_TEST(equal_ones_are_shared))
