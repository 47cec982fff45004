/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment.c: segments that another daemon has left. */
#include "unit/unit.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/segments/segment_restore.h"
#include "unit/segments.h"

/* Returns the segment as the next daemon sees it, with only the facts of its record. */
static struct segment *next_daemons(struct segment *s)
{
    struct segment *next = fresh(s->size, s->lock);
    next->device = s->device;
    memcpy(next->inodes, s->inodes, sizeof next->inodes);
    segment_abandon(s);
    return next;
}

static void restore(struct segment *s, int expected, const char *why)
{
    const char *told = NULL;
    ck_assert_int_eq(segment_restore(s, &told), expected);
    if (expected)
        ck_assert_str_eq(told, why);
}

/* Slots whose users are unknown are given back at the next attach. */
START_TEST(slots_without_users)
{
    struct segment *s = make(100, true);
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l);
    struct segment_grip a = attach(s, SHMVIEW_WRITE);
    attach(s, SHMVIEW_READ);
    segment_detach(s, a.slot);
    ck_assert_uint_eq(l->deaths, 1);
    s = next_daemons(s);
    restore(s, 0, NULL);
    segment_restored(s);
    ck_assert_ptr_null(s->use);
    struct segment_grip b = attach(s, SHMVIEW_READ);
    ck_assert_uint_eq(l->generation[1], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_ge(l->deaths, 2);
    ck_assert_int_eq(b.slot, 0);
    ck_assert_int_eq(b.generation, 2);
    b = attach(s, SHMVIEW_READ);
    ck_assert_int_eq(b.slot, 1);
    ck_assert_int_eq(b.generation, 2);
    munmap(l, sizeof *l);
    segment_free(s);
}
END_TEST

START_TEST(slots_with_users)
{
    struct segment *s = make(100, true);
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l);
    for (int i = 0; i < 3; i++)
        attach(s, SHMVIEW_WRITE);
    s = next_daemons(s);
    restore(s, 0, NULL);
    ck_assert_int_eq(segment_claim_slot(s, 1, 1), 0);
    ck_assert_int_eq(segment_restore_attachment(s), 0);
    ck_assert_int_eq(segment_claim_slot(s, 1, 1), -ESTALE); /* only once */
    ck_assert_int_eq(segment_claim_slot(s, 0, 2), -ESTALE); /* of another user */
    ck_assert_int_eq(segment_claim_slot(s, 3, 1), -ESTALE); /* never used */
    ck_assert_int_eq(segment_claim_slot(s, UINT32_MAX, 1), -ESTALE);
    segment_restored(s);
    ck_assert_uint_eq(l->generation[0], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_eq(l->generation[1], 1);
    ck_assert_uint_eq(l->generation[2], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_eq(s->n_attachments, 1);
    segment_detach(s, 1);
    ck_assert_uint_eq(l->generation[1], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_ptr_null(s->use);
    munmap(l, sizeof *l);
    segment_free(s);
}
END_TEST

/* Attachments without a slot, also to a segment without a lock. */
START_TEST(without_slots)
{
    struct segment *s = next_daemons(make(100, false));
    restore(s, 0, NULL);
    ck_assert_int_eq(segment_claim_slot(s, 0, 1), -ESTALE);
    segment_restored(s);
    segment_free(s);
    s = next_daemons(make(100, true));
    restore(s, 0, NULL);
    ck_assert_int_eq(segment_restore_attachment(s), 0);
    segment_restored(s);
    ck_assert_int_eq(attach(s, SHMVIEW_WRITE).slot, 0);
    segment_detach(s, 0);
    segment_detach(s, SLOT_NONE);
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(objects_that_do_not_fit)
{
    static const char *const parts[] = {"its data", "its control object", "its liveness object"};
    for (int which = 0; which < N_SEGMENT_PARTS; which++) {
        struct segment *s = next_daemons(make(100, true));
        ino_t inode = s->inodes[which];
        s->inodes[which] = inode + 1000000;
        restore(s, -ESTALE, parts[which]);
        s->inodes[which] = inode;
        struct object object = object_of(s, (enum segment_part)which);
        object_remove(&object);
        restore(s, -ENOENT, parts[which]);
        segment_free(s);
        ck_assert_uint_eq(unit_objects(), 0);
    }
}
END_TEST

START_TEST(liveness_that_does_not_fit)
{
    struct segment *s = make(100, true);
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l), before = *l;
    s = next_daemons(s);
    const size_t places[] = {offsetof(struct shmview_object_header, magic),
                             offsetof(struct shmview_object_header, version),
                             offsetof(struct shmview_object_header, header_bytes),
                             offsetof(struct shmview_object_header, segment_id)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        ((char *)l)[places[i]] ^= 1;
        restore(s, -ESTALE, "its liveness object");
        *l = before;
    }
    l->high = SHMVIEW_SLOTS_MAX + 1;
    restore(s, -ESTALE, "its liveness object");
    l->high = SHMVIEW_SLOTS_MAX;
    restore(s, 0, NULL);
    munmap(l, sizeof *l);
    for (off_t bytes = 4095; bytes >= 0; bytes -= 4095) {
        struct object object = object_of(s, LIVENESS);
        int fd = object_open(&object, O_RDWR);
        ck_assert_int_eq(ftruncate(fd, bytes), 0);
        close(fd);
        restore(s, -ESTALE, "its liveness object");
    }
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

UNIT_MAIN("segment_restore", UNIT_TEST(slots_without_users), UNIT_TEST(slots_with_users),
          UNIT_TEST(without_slots), UNIT_TEST(objects_that_do_not_fit),
          UNIT_TEST(liveness_that_does_not_fit))
