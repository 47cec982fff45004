/* SPDX-License-Identifier: Apache-2.0 */
/* Checks registry.c: names and ids of segments, and the removal of their objects. */
#include "unit/unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/segments/registry.h"
#include "daemon/segments/use.h"
#include "unit/faults.h"
#include "unit/whole.h"

static struct registry registry;

static void begin(void)
{
    memset(&registry, 0, sizeof registry);
    home_init(&registry.home);
}

static struct segment *reserve(const char *name)
{
    struct segment *s = registry_reserve(&registry, name);
    ck_assert_ptr_nonnull(s);
    s->lifetime = SHMVIEW_MANUAL;
    return s;
}

/* Makes a segment with objects. */
static struct segment *make(const char *name, bool lock)
{
    struct object_space space;
    struct segment *s = reserve(name);
    s->size = 100;
    s->lock = lock;
    ck_assert_int_eq(whole_segment(s, NULL, &space), 0);
    s->allocated = true;
    return s;
}

static void attach(struct segment *s)
{
    struct segment_grip a;
    ck_assert_int_eq(segment_attach(s, SHMVIEW_PEEK, &a), 0);
}

START_TEST(reserve_and_find)
{
    begin();
    struct segment *a = reserve("a"), *b = reserve("b");
    ck_assert_ptr_eq(registry_find(&registry, "a"), a);
    ck_assert_ptr_eq(registry_find(&registry, "b"), b);
    ck_assert_ptr_null(registry_find(&registry, "c"));
    ck_assert_ptr_null(registry_find(&registry, ""));
    ck_assert_ptr_null(registry_find(&registry, "A"));
    ck_assert_ptr_null(registry_find(&registry, "aa"));
    ck_assert_uint_ne(a->id, b->id);
    ck_assert_ptr_eq(registry_find_id(&registry, a->id), a);
    ck_assert_ptr_eq(registry_find_id(&registry, b->id), b);
    ck_assert_ptr_null(registry_find_id(&registry, 0));
    ck_assert_ptr_null(registry_find_id(&registry, UINT64_MAX));
    ck_assert(a->named && !a->allocated);
    ck_assert_uint_eq(unit_objects(), 0); /* it has none yet */
    registry_deinit(&registry);
}
END_TEST

START_TEST(name_that_is_taken)
{
    begin();
    struct segment *a = reserve("a");
    errno = 0;
    ck_assert_ptr_null(registry_reserve(&registry, "a"));
    ck_assert_int_eq(errno, EEXIST);
    registry_remove(&registry, a, ACTOR_NONE);
    ck_assert_ptr_null(registry_find(&registry, "a"));
    struct segment *again = reserve("a");
    ck_assert_ptr_eq(registry_find(&registry, "a"), again);
    registry_deinit(&registry);
}
END_TEST

START_TEST(ids_are_never_used_again)
{
    uint64_t last = 0;
    begin();
    for (int i = 0; i < 1000; i++) {
        struct segment *s = reserve("a");
        ck_assert_uint_gt(s->id, last);
        last = s->id;
        registry_remove(&registry, s, ACTOR_NONE);
        ck_assert_ptr_null(registry_find_id(&registry, last));
    }
    registry_deinit(&registry);
}
END_TEST

/* No two objects have the same name, whatever the names of segments: those of clients cannot equal
 * those made from an id. */
START_TEST(names_of_objects)
{
    char longest[LIMIT_NAME_BYTES + 1];
    memset(longest, 'n', LIMIT_NAME_BYTES);
    longest[LIMIT_NAME_BYTES] = '\0';
    begin();
    const char *names[] = {"1.control", "1.data", "1", "daemon", "-", longest};
    struct segment *s[6];
    struct object o[6][N_SEGMENT_PARTS];
    for (int i = 0; i < 6; i++) {
        s[i] = reserve(names[i]);
        for (int part = 0; part < N_SEGMENT_PARTS; part++) {
            segment_object(s[i], (enum segment_part)part, &o[i][part]);
            ck_assert_uint_lt(strlen(o[i][part].name), NAME_MAX + 1);
            ck_assert_ptr_null(strchr(o[i][part].name, '/'));
        }
        ck_assert_str_eq(o[i][DATA].name, names[i]);
    }
    for (int i = 0; i < 6 * N_SEGMENT_PARTS; i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(o[i / N_SEGMENT_PARTS][i % N_SEGMENT_PARTS].name,
                             o[k / N_SEGMENT_PARTS][k % N_SEGMENT_PARTS].name);
    ck_assert_ptr_eq(registry_find(&registry, longest), s[5]);
    registry_deinit(&registry);
}
END_TEST

START_TEST(remove_takes_the_objects)
{
    begin();
    registry_remove(&registry, make("plain", false), ACTOR_NONE);
    ck_assert_uint_eq(unit_objects(), 0);
    struct segment *s = make("locked", true);
    ck_assert_uint_eq(unit_objects(), 3);
    registry_remove(&registry, s, ACTOR_NONE);
    ck_assert_uint_eq(unit_objects(), 0);
    registry_deinit(&registry);
}
END_TEST

START_TEST(deinit_takes_everything)
{
    begin();
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        make(name, i % 2);
    }
    ck_assert_uint_eq(unit_objects(), 40);
    registry_deinit(&registry);
    ck_assert_uint_eq(unit_objects(), 0);
    ck_assert_uint_eq(registry_count(&registry), 0);
}
END_TEST

START_TEST(remove_while_attached)
{
    begin();
    struct segment *s = make("a", false);
    uint64_t id = s->id;
    attach(s);
    registry_remove(&registry, s, ACTOR_NONE);
    ck_assert(!s->named);
    ck_assert_ptr_null(registry_find(&registry, "a"));
    ck_assert_ptr_eq(registry_find_id(&registry, id), s); /* for clients that know its id */
    ck_assert_uint_eq(unit_objects(), 1);
    registry_remove(&registry, s, ACTOR_NONE); /* a second removal changes nothing */
    struct segment *second = make("a", false);
    ck_assert_ptr_eq(registry_find(&registry, "a"), second);
    ck_assert_uint_ne(second->id, id);
    attach(s); /* by its id */
    segment_detach(s, SLOT_NONE);
    registry_release(&registry, s, ACTOR_NONE);
    ck_assert_ptr_eq(registry_find_id(&registry, id), s);
    segment_detach(s, SLOT_NONE);
    registry_release(&registry, s, ACTOR_NONE);
    ck_assert_ptr_null(registry_find_id(&registry, id));
    ck_assert_uint_eq(unit_objects(), 1);
    registry_deinit(&registry);
}
END_TEST

START_TEST(release_by_lifetime)
{
    const int64_t lifetimes[] = {SHMVIEW_ATTACHED, SHMVIEW_MANUAL, SHMVIEW_CREATOR};
    begin();
    for (int i = 0; i < 3; i++) {
        struct segment *s = make("a", true);
        s->lifetime = (uint8_t)lifetimes[i];
        attach(s);
        attach(s);
        segment_detach(s, SLOT_NONE);
        registry_release(&registry, s, ACTOR_NONE);
        ck_assert_ptr_eq(registry_find(&registry, "a"), s);
        segment_detach(s, SLOT_NONE);
        registry_release(&registry, s, ACTOR_NONE);
        ck_assert_int_eq(registry_find(&registry, "a") != NULL, i > 0);
        ck_assert_uint_eq(unit_objects(), i > 0 ? 3 : 0);
        if (i > 0)
            registry_remove(&registry, s, ACTOR_NONE);
    }
    registry_deinit(&registry);
}
END_TEST

/* Reserves and removes random names, and compares with a simple list. */
START_TEST(random_against_a_model)
{
    struct segment *known[64] = {0};
    uint64_t seed = 0x9e3779b97f4a7c15;
    begin();
    for (int i = 0; i < 20000; i++) {
        char name[16];
        unsigned k = (unsigned)(unit_random(&seed) % 64);
        snprintf(name, sizeof name, "s%u", k);
        ck_assert_ptr_eq(registry_find(&registry, name), known[k]);
        if (known[k]) {
            ck_assert_ptr_eq(registry_find_id(&registry, known[k]->id), known[k]);
            registry_remove(&registry, known[k], ACTOR_NONE);
            known[k] = NULL;
        } else {
            known[k] = reserve(name);
        }
    }
    registry_deinit(&registry);
}
END_TEST

/* When memory is short the daemon refuses one request and goes on. */
START_TEST(every_allocation_of_a_reservation_fails)
{
    for (unsigned n = 1;; n++) {
        pid_t pid = fork();
        if (pid == 0) {
            begin();
            faults_begin(FAULTS_MEMORY, n);
            struct segment *s = registry_reserve(&registry, "a");
            if (!faults_end())
                _exit(s ? 99 : 3);
            bool told = !s && errno == ENOMEM;
            bool gone = !registry_find(&registry, "a") && registry_reserve(&registry, "a");
            _exit(told && gone ? 0 : 2);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        if (WEXITSTATUS(status) == 99)
            return;
        ck_assert_msg(status == 0, "allocation %u: exit status %d", n, WEXITSTATUS(status));
    }
}
END_TEST

UNIT_MAIN("registry", UNIT_TEST(reserve_and_find), UNIT_TEST(name_that_is_taken),
          UNIT_TEST(ids_are_never_used_again), UNIT_TEST(names_of_objects),
          UNIT_TEST(remove_takes_the_objects), UNIT_TEST(deinit_takes_everything),
          UNIT_TEST(remove_while_attached), UNIT_TEST(release_by_lifetime),
          UNIT_TEST(random_against_a_model), UNIT_TEST(every_allocation_of_a_reservation_fails))
