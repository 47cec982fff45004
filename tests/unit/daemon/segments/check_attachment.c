/* SPDX-License-Identifier: Apache-2.0 */
/* Checks attachment.c: attachments begin and end, the last one ends its segment, and a failure
 * leaves nothing. */
#include "unit/unit.h"

#include "daemon/segments/attachment.h"
#include "daemon/segments/use.h"
#include "unit/faults.h"
#include "unit/whole.h"

static struct registry registry;
static struct attachments list;

static struct segment *begin(int64_t lifetime)
{
    struct object_space space;
    memset(&registry, 0, sizeof registry);
    home_init(&registry.home);
    list = (struct attachments){0};
    struct segment *s = registry_reserve(&registry, "seg");
    s->size = 100;
    s->lock = true;
    s->lifetime = (uint8_t)lifetime;
    ck_assert_int_eq(whole_segment(s, NULL, &space), 0);
    s->allocated = true;
    return s;
}

/* Attaches. Returns the id of the attachment. */
static uint64_t attach(struct segment *s, int64_t access)
{
    const struct store_holder holder = {.pid = 4711, .uid = 12, .client = 3};
    struct attachment *a;
    struct segment_grip grip;
    ck_assert_int_eq(attachment_new(&list, s, access, &holder, NULL, &a, &grip), 0);
    ck_assert_uint_gt(a->id, 0);
    ck_assert_uint_eq(a->slot, grip.slot);
    ck_assert_uint_eq(a->generation, grip.generation);
    return a->id;
}

START_TEST(begin_find_end)
{
    struct segment *s = begin(SHMVIEW_MANUAL);
    uint64_t one = attach(s, SHMVIEW_READ), two = attach(s, SHMVIEW_WRITE);
    ck_assert_uint_gt(two, one);
    struct attachment *a = attachment_find(&list, one);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_eq(a->segment, s);
    ck_assert_int_eq(a->access, SHMVIEW_READ);
    ck_assert_uint_eq(a->slot, 0);
    ck_assert_int_eq(a->pid, 4711);
    ck_assert_uint_eq(a->uid, 12);
    ck_assert_uint_eq(a->holder.client, 3);
    ck_assert_ptr_null(attachment_find(&list, two + 1));
    ck_assert_ptr_null(attachment_find(&list, 0));
    ck_assert_ptr_null(attachment_find(&list, UINT64_MAX));
    attachment_end(&registry, a);
    ck_assert_ptr_null(attachment_find(&list, one));
    ck_assert_ptr_nonnull(attachment_find(&list, two));
    ck_assert_uint_eq(s->n_attachments, 1);
    ck_assert_uint_eq(s->use->live->deaths, 1);
    ck_assert_uint_eq(s->use->live->owner.id, 0); /* it held nothing */
    attachment_end(&registry, attachment_find(&list, two));
    ck_assert(LIST_EMPTY(&list));
    ck_assert_ptr_eq(registry_find(&registry, "seg"), s);
    registry_deinit(&registry);
}
END_TEST

/* All attachments are in one table, and a client must not find those of another one. */
START_TEST(found_in_its_list_only)
{
    struct attachments other = {0};
    struct segment *s = begin(SHMVIEW_MANUAL);
    uint64_t one = attach(s, SHMVIEW_READ), two = attach(s, SHMVIEW_READ);
    struct attachment *a = attachment_find(&list, one);
    ck_assert_ptr_null(attachment_find(&other, one));
    attachment_move(&other, a);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_uint_eq(other.n, 1);
    ck_assert_ptr_eq(attachment_find(&other, one), a);
    ck_assert_ptr_null(attachment_find(&other, two));
    ck_assert_ptr_null(attachment_find(&list, one));
    ck_assert_ptr_nonnull(attachment_find(&list, two));
    attachment_end(&registry, a);
    attachment_end(&registry, attachment_find(&list, two));
    ck_assert_uint_eq(list.n + other.n, 0);
    ck_assert_uint_eq(registry.home.attachments.n, 0);
    registry_deinit(&registry);
}
END_TEST

START_TEST(find_writer)
{
    struct segment *s = begin(SHMVIEW_MANUAL);
    struct segment *other = registry_reserve(&registry, "other");
    ck_assert_ptr_null(attachment_find_writer(&list, s));
    uint64_t ids[] = {attach(s, SHMVIEW_PEEK), attach(s, SHMVIEW_READ)};
    ck_assert_ptr_null(attachment_find_writer(&list, s));
    uint64_t writer = attach(s, SHMVIEW_WRITE);
    ck_assert_uint_eq(attachment_find_writer(&list, s)->id, writer);
    ck_assert_ptr_null(attachment_find_writer(&list, other));
    attachment_end(&registry, attachment_find(&list, writer));
    ck_assert_ptr_null(attachment_find_writer(&list, s));
    attachment_end(&registry, attachment_find(&list, ids[0]));
    attachment_end(&registry, attachment_find(&list, ids[1]));
    registry_deinit(&registry);
}
END_TEST

START_TEST(the_last_one_takes_the_segment_along)
{
    struct segment *s = begin(SHMVIEW_ATTACHED);
    uint64_t one = attach(s, SHMVIEW_PEEK), two = attach(s, SHMVIEW_WRITE);
    attachment_end(&registry, attachment_find(&list, two));
    ck_assert_ptr_eq(registry_find(&registry, "seg"), s);
    attachment_end(&registry, attachment_find(&list, one));
    ck_assert_ptr_null(registry_find(&registry, "seg"));
    ck_assert_uint_eq(unit_objects(), 0);
    registry_deinit(&registry);
}
END_TEST

START_TEST(every_failure_leaves_nothing)
{
    struct segment *s = begin(SHMVIEW_MANUAL);
    const unsigned classes[] = {FAULTS_MEMORY, FAULTS_SYSTEM};
    for (int i = 0; i < 2; i++) {
        const struct store_holder holder = {.pid = 1};
        struct attachment *a;
        struct segment_grip grip;
        int r = 0;
        for (unsigned n = 1; faults_begin(classes[i], n),
                      r = attachment_new(&list, s, SHMVIEW_WRITE, &holder, NULL, &a, &grip),
                      faults_end();
             n++) {
            ck_assert_int_lt(r, 0);
            ck_assert(LIST_EMPTY(&list));
            ck_assert_uint_eq(s->n_attachments, 0);
        }
        ck_assert_int_eq(r, 0);
        attachment_end(&registry, LIST_FIRST(&list));
    }
    registry_deinit(&registry);
}
END_TEST

UNIT_MAIN("attachment", UNIT_TEST(begin_find_end), UNIT_TEST(found_in_its_list_only),
          UNIT_TEST(find_writer), UNIT_TEST(the_last_one_takes_the_segment_along),
          UNIT_TEST(every_failure_leaves_nothing))
