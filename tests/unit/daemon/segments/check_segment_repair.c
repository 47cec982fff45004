/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment_repair.c: objects that a client has cut or enlarged get their size and a usable
 * lock back; a repair that fails reports it, and the next one completes it. */
#include "daemon/segments/segment_repair.h"

#include "unit/faults.h"
#include "unit/segments.h"

/* Discards the lines of the log. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

static void resize(const struct segment *s, enum segment_part part, uint64_t bytes)
{
    struct object o = object_of(s, part);
    int fd = object_open(&o, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
}

/* Puts bytes at a place of an object, as a client can. */
static void put_at(const struct segment *s, enum segment_part part, const void *bytes, size_t n,
                   off_t at)
{
    struct object o = object_of(s, part);
    int fd = object_open(&o, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

static uint64_t inside(const struct segment *s)
{
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    uint64_t r = c->inside;
    munmap(c, sizeof *c);
    return r;
}

static void header_is(const struct segment *s, const struct shmview_control *want)
{
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    ck_assert_mem_eq(c, want, offsetof(struct shmview_control, pad0));
    munmap(c, sizeof *c);
}

struct sizes {
    uint64_t data, control;
    struct shmview_control header;
};

static struct segment *begin(uint64_t bytes, struct sizes *ret)
{
    struct segment *s = make(bytes, true);
    hush();
    attach(s, SHMVIEW_WRITE);
    ret->data = size_of(s, DATA);
    ret->control = size_of(s, CONTROL);
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    ret->header = *c;
    munmap(c, sizeof *c);
    return s;
}

static void is_repaired(struct segment *s, const struct sizes *want)
{
    ck_assert_uint_eq(size_of(s, DATA), want->data);
    ck_assert_uint_eq(size_of(s, CONTROL), want->control);
    header_is(s, &want->header);
}

START_TEST(sound_ones_are_left_alone)
{
    struct sizes sizes;
    struct segment *s = begin(100, &sizes);
    unsigned before = (unsigned)s->home->n_repairs;
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->n_repairs, before);
    ck_assert_uint_eq(inside(s), 0);
    is_repaired(s, &sizes);
    segment_free(s);
}
END_TEST

START_TEST(cut_and_enlarged)
{
    struct sizes sizes;
    struct segment *s = begin(100000, &sizes);
    unsigned n = (unsigned)s->home->n_repairs;
    resize(s, DATA, sizes.data / 2);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->n_repairs, n + 1);
    ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0); /* bytes may be broken */
    is_repaired(s, &sizes);
    resize(s, DATA, sizes.data + 100000);
    resize(s, CONTROL, sizes.control + 100000);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->n_repairs, n + 3);
    is_repaired(s, &sizes);
    resize(s, CONTROL, 0);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
    is_repaired(s, &sizes);
    segment_free(s);
}
END_TEST

/* A client that is inside clears the word itself when it leaves. */
START_TEST(a_client_is_inside)
{
    struct sizes sizes;
    struct segment *s = begin(100, &sizes);
    const uint64_t word = (uint64_t)7 << 30 | 1;
    put_at(s, CONTROL, &word, sizeof word, offsetof(struct shmview_control, inside));
    put_at(s, CONTROL, "rubbish", 8, 0);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(inside(s), word);
    is_repaired(s, &sizes);
    segment_free(s);
}
END_TEST

/* Each call fails once. The next repair does the rest. */
START_TEST(every_call_fails)
{
    static const int errors[] = {EIO, ENOSPC};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        bool failed = true;
        unsigned n = 1, n_failed = 0;
        faults_errno(errors[i]);
        for (; failed; n++) {
            struct sizes sizes;
            struct segment *s = begin(10000, &sizes);
            resize(s, DATA, 10);
            resize(s, CONTROL, 10);
            faults_begin(FAULTS_SYSTEM, n);
            int r = segment_repair(s);
            failed = faults_end();
            ck_assert_msg(r == 0 || r == -errors[i], "%s: %d", faults_name(), r);
            ck_assert_msg(r == 0 || failed, "%d", r);
            n_failed += r != 0;
            if (r)
                ck_assert_int_eq(segment_repair(s), 0);
            ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
            is_repaired(s, &sizes);
            ck_assert_int_eq(segment_repair(s), 0); /* and nothing is left to do */
            segment_free(s);
            ck_assert_uint_eq(unit_fds(), unit_fds_before);
        }
        ck_assert_uint_ge(n_failed, 8);
    }
}
END_TEST

/* The size is right by then. The header, which is written last, shows that the rest is missing. */
START_TEST(the_lock_cannot_be_written)
{
    for (unsigned n = 1; n <= 3; n++) {
        struct sizes sizes;
        struct segment *s = begin(100, &sizes);
        resize(s, CONTROL, 0);
        faults_begin_call("pwrite", n, EIO, false);
        int r = segment_repair(s);
        ck_assert(faults_end());
        ck_assert_int_eq(r, -EIO);
        ck_assert_int_eq(segment_repair(s), 0);
        ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
        is_repaired(s, &sizes);
        segment_free(s);
    }
}
END_TEST

/* The size is right then, so no later check finds that bytes are lost. */
START_TEST(no_memory_for_lost_bytes)
{
    struct sizes sizes;
    struct segment *s = begin(100000, &sizes);
    resize(s, DATA, 10);
    faults_begin_call("posix_fallocate", 1, ENOSPC, false);
    int r = segment_repair(s);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -ENOSPC);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
    is_repaired(s, &sizes);
    segment_free(s);
}
END_TEST

UNIT_MAIN("segment_repair", UNIT_TEST(no_memory_for_lost_bytes),
          UNIT_TEST(the_lock_cannot_be_written), UNIT_TEST(sound_ones_are_left_alone),
          UNIT_TEST(cut_and_enlarged), UNIT_TEST(a_client_is_inside), UNIT_TEST(every_call_fails))
