/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment.c: the objects of a segment, its slots, its open descriptors, and objects that
 * were replaced. */
#include "unit/unit.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "common/base/util.h"
#include "daemon/segments/segment.h"
#include "daemon/segments/use.h"
#include "unit/faults.h"
#include "unit/segments.h"

/* --- Allocating ---------------------------------------------------------- */

START_TEST(headers_of_the_objects)
{
    struct segment *s = make(5000, true);
    ck_assert_uint_eq(unit_objects(), 3);
    ck_assert_uint_eq(size_of(s, DATA), 5000);
    ck_assert_uint_ge(size_of(s, CONTROL), sizeof(struct shmview_control));
    ck_assert_uint_eq(size_of(s, LIVENESS), sizeof(struct shmview_liveness));
    struct shmview_control *c = look(s, CONTROL, sizeof *c), zero_c = c[0];
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l), zero_l = l[0];
    ck_assert_uint_eq(c->header.magic, SHMVIEW_CONTROL_MAGIC);
    ck_assert_uint_eq(c->header.version, SHMVIEW_LAYOUT_VERSION);
    ck_assert_uint_eq(c->header.header_bytes, 1536);
    ck_assert_uint_eq(c->header.features, 0);
    ck_assert_uint_eq(c->header.segment_id, ID);
    ck_assert_uint_eq(c->slots_offset, 1536);
    ck_assert_uint_eq(c->slot_bytes, 128);
    ck_assert_uint_eq(l->header.magic, SHMVIEW_LIVENESS_MAGIC);
    ck_assert_uint_eq(l->header.version, SHMVIEW_LAYOUT_VERSION);
    ck_assert_uint_eq(l->header.header_bytes, 96);
    ck_assert_uint_eq(l->header.features, 0);
    ck_assert_uint_eq(l->header.segment_id, ID);
    /* all the rest is zero */
    static const unsigned char zeros[4096];
    memset(&zero_c, 0, offsetof(struct shmview_control, pad0));
    memset(&zero_l, 0, sizeof zero_l.header);
    ck_assert_mem_eq(&zero_c, zeros, sizeof zero_c);
    ck_assert_mem_eq(&zero_l, zeros, sizeof zero_l);
    munmap(c, sizeof *c);
    munmap(l, sizeof *l);
    ck_assert_ptr_null(segment_free(s));
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

/* Whether this page of the data has been zeroed already. */
static bool is_zeroed(const struct segment *s, uint64_t at)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there = 0;
    char *data = look(s, DATA, s->size);
    ck_assert_int_eq(mincore(data + at / page * page, page, &there), 0);
    munmap(data, s->size);
    return there & 1;
}

/* Of several steps, so that each of them zeroes its part. */
START_TEST(data_is_zeroed_for_creators_who_populate)
{
    const uint64_t size = SEGMENT_STEP_BYTES + 10000, places[] = {0, 70000, size - 10000, size - 1};
    for (int populate = 0; populate < 2; populate++) {
        struct segment *s = fresh(size, true);
        struct object_space space;
        s->populate = populate;
        ck_assert_int_eq(whole_segment(s, NULL, &space), 0);
        ck_assert_uint_eq(size_of(s, DATA), size);
        for (size_t i = 0; i < ARRAY_LEN(places); i++)
            ck_assert_int_eq(is_zeroed(s, places[i]), populate);
        segment_free(s);
    }
}
END_TEST

START_TEST(without_a_lock)
{
    struct segment *s = make(1, false);
    ck_assert_uint_eq(unit_objects(), 1);
    for (int64_t access = SHMVIEW_PEEK; access <= SHMVIEW_WRITE; access++) {
        struct segment_grip a = attach(s, access);
        ck_assert_int_ge(a.fds[DATA], 0);
        ck_assert_int_eq(a.fds[CONTROL], -1);
        ck_assert_int_eq(a.fds[LIVENESS], -1);
        ck_assert_uint_eq(a.slot, SLOT_NONE);
        ck_assert_uint_eq(a.generation, 0);
        ck_assert(!s->use || !s->use->live);
        segment_detach(s, a.slot);
    }
    ck_assert_uint_eq(s->n_attachments, 0);
    segment_free(s);
    ck_assert_ptr_null(segment_free(NULL));
}
END_TEST

/* An object that is in the way stays, and nothing else is left. */
START_TEST(object_that_is_in_the_way)
{
    for (int which = 0; which < 3; which++) {
        struct segment *s = fresh(100, true);
        struct object_space space;
        struct object object = object_of(s, (enum segment_part)which);
        const char *path = unit_object(object.name);
        close(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
        ck_assert_int_eq(whole_segment(s, NULL, &space), -EEXIST);
        ck_assert_uint_eq(unit_objects(), 1);
        ck_assert_int_eq(unlink(path), 0);
        segment_free(s);
    }
}
END_TEST

START_TEST(allocation_that_is_cancelled_or_too_large)
{
    struct segment *s = fresh(100, true);
    struct object_space space = {0};
    atomic_bool cancel = true;
    ck_assert_int_eq(whole_segment(s, &cancel, &space), -ECANCELED);
    segment_free(s);
    s = fresh((uint64_t)1 << 56, true);
    ck_assert_int_eq(whole_segment(s, NULL, &space), -ENOSPC);
    ck_assert_uint_gt(space.limit, 0);
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(every_call_of_an_allocation_fails)
{
    struct object_space space;
    int r = 0;
    faults_errno(EIO);
    for (unsigned n = 1;; n++) {
        struct segment *s = fresh(100, true);
        faults_begin(FAULTS_SYSTEM, n);
        r = whole_segment(s, NULL, &space);
        bool failed = faults_end();
        if (r) {
            ck_assert_int_eq(r, -EIO);
            ck_assert_msg(unit_objects() == 0, "%s() fails and an object is left", faults_name());
        } else {
            ck_assert_uint_eq(unit_objects(), 3);
        }
        segment_free(s);
        ck_assert_uint_eq(unit_objects(), 0);
        if (!failed)
            break;
    }
    ck_assert_int_eq(r, 0);
}
END_TEST

/* --- Attaching ----------------------------------------------------------- */

START_TEST(descriptors_by_access)
{
    struct segment *s = make(100, true);
    const int modes[3][3] = {
        {O_RDONLY, -1, -1}, {O_RDONLY, O_RDWR, O_RDONLY}, {O_RDWR, O_RDWR, O_RDONLY}};
    for (int64_t access = SHMVIEW_PEEK; access <= SHMVIEW_WRITE; access++) {
        struct segment_grip a;
        ck_assert_int_eq(segment_attach(s, access, &a), 0);
        for (int part = 0; part < N_SEGMENT_PARTS; part++) {
            int mode = modes[access - 1][part];
            ck_assert_int_eq(a.fds[part] < 0, mode < 0);
            if (mode < 0)
                continue;
            ck_assert_int_eq(fcntl(a.fds[part], F_GETFL) & O_ACCMODE, mode);
            ck_assert_int_eq(fcntl(a.fds[part], F_GETFD), FD_CLOEXEC);
        }
        segment_detach(s, a.slot);
    }
    segment_free(s);
}
END_TEST

START_TEST(slots_and_generations)
{
    struct segment *s = make(100, true);
    struct segment_grip peek = attach(s, SHMVIEW_PEEK), a = attach(s, SHMVIEW_WRITE);
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l);
    ck_assert_uint_eq(peek.slot, SLOT_NONE);
    ck_assert_int_eq(a.slot, 0);
    ck_assert_int_eq(a.generation, 1);
    ck_assert_uint_eq(l->generation[0], 1);
    ck_assert_uint_eq(l->high, 1);
    struct segment_grip b = attach(s, SHMVIEW_READ);
    ck_assert_int_eq(b.slot, 1);
    ck_assert_uint_eq(l->generation[1], 1);
    ck_assert_uint_eq(l->high, 2);
    ck_assert_uint_eq(s->n_attachments, 3);
    segment_detach(s, a.slot);
    ck_assert_uint_eq(l->generation[0], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_eq(l->generation[1], 1); /* the other attachments live */
    ck_assert_uint_eq(l->deaths, 1);
    a = attach(s, SHMVIEW_WRITE);
    ck_assert_int_eq(a.slot, 0);
    ck_assert_int_eq(a.generation, 2);
    ck_assert_uint_eq(l->generation[0], 2);
    ck_assert_uint_eq(l->high, 2);
    segment_detach(s, peek.slot);
    ck_assert_uint_eq(l->deaths, 1); /* the end of a peek attachment is no death */
    segment_detach(s, a.slot);
    ck_assert_ptr_nonnull(s->use->live);
    segment_detach(s, b.slot);
    ck_assert(!s->use || (s->use->cached && s->use->live));
    ck_assert_uint_eq(l->deaths, 3);
    munmap(l, sizeof *l);
    segment_free(s);
}
END_TEST

/* A reader dies with its count in its slot, and as the reader of a stream. No client locks
 * exclusively, or writes frames, until a client has the dead reader's id. */
START_TEST(counts_do_not_outlive_the_generations)
{
    struct segment *s = make(1, true);
    struct shmview_control *c = look(s, CONTROL, SEGMENT_CONTROL_BYTES);
    struct shmview_slot *slot = (struct shmview_slot *)(void *)(c + 1);
    const uint32_t left = 1u << SHMVIEW_READER_COUNT_BITS | 1;
    struct segment_grip a = attach(s, SHMVIEW_READ);
    ck_assert_int_eq(a.slot, 0);
    ck_assert_int_eq(a.generation, 1);
    slot->readers = left;
    slot->stream_user = 1u << SHMVIEW_SLOT_BITS;
    for (uint32_t generation = 2; generation < 5; generation++) {
        segment_detach(s, a.slot);
        a = attach(s, SHMVIEW_READ);
        ck_assert_int_eq(a.generation, generation);
        ck_assert_uint_eq(slot->readers, left); /* writers see that the reader is dead */
        ck_assert_uint_eq(slot->stream_user, 1u << SHMVIEW_SLOT_BITS);
    }
    slots_entry(&s->slots, 0)->generation = SHMVIEW_GENERATION_MASK;
    s->use->live->generation[0] = SHMVIEW_GENERATION_MASK;
    segment_detach(s, a.slot);
    a = attach(s, SHMVIEW_READ);
    ck_assert_int_eq(a.generation, 1);
    ck_assert_uint_eq(slot->readers, 0);
    ck_assert_uint_eq(slot->stream_user, 0);
    segment_detach(s, a.slot);
    munmap(c, SEGMENT_CONTROL_BYTES);
    segment_free(s);
}
END_TEST

/* The last deaths are kept for the report to the next owner. */
START_TEST(deaths_are_told)
{
    struct segment *s = make(100, true);
    struct shmview_liveness *l = look(s, LIVENESS, sizeof *l);
    const struct shmview_liveness_death *d = &l->owner;
    struct segment_grip a[8];
    uint64_t last = 0;
    for (int i = 0; i < 8; i++)
        a[i] = attach(s, SHMVIEW_WRITE);
    for (int i = 0; i < 4; i++) {
        uint32_t id = (uint32_t)(a[2 * i].generation << 10 | a[2 * i].slot);
        segment_note_owner(s, id, 1000 + i, "command\0-------");
        segment_detach(s, a[2 * i].slot);
        segment_detach(s, a[2 * i + 1].slot); /* the end of another attachment does not change it */
        ck_assert_uint_eq(d->pid, (unsigned)(1000 + i));
        ck_assert_uint_eq(d->id, id);
        ck_assert_str_eq(d->command, "command");
        ck_assert_uint_ge(d->when_ns, last);
        last = d->when_ns;
        ck_assert_uint_eq(l->deaths, (unsigned)(2 * i + 2));
    }
    munmap(l, sizeof *l);
    segment_free(s);
}
END_TEST

struct sleeper {
    struct shmview_liveness *live;
    atomic_bool ready;
};

static void *sleep_on_deaths(void *arg)
{
    struct sleeper *sleeper = arg;
    struct timespec limit = {.tv_sec = 20};
    sleeper->ready = true;
    while (__atomic_load_n(&sleeper->live->deaths, __ATOMIC_ACQUIRE) == 0)
        if (syscall(SYS_futex, &sleeper->live->deaths, FUTEX_WAIT, 0, &limit, NULL, 0) &&
            errno == ETIMEDOUT)
            return sleeper;
    return NULL;
}

START_TEST(a_death_wakes_all)
{
    struct segment *s = make(100, true);
    struct segment_grip a = attach(s, SHMVIEW_WRITE);
    struct sleeper sleeper = {look(s, LIVENESS, sizeof(struct shmview_liveness)), false};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, sleep_on_deaths, &sleeper), 0);
    while (!sleeper.ready)
        sched_yield();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* by now most of them sleep */
    segment_detach(s, a.slot);
    for (int i = 0; i < 4; i++) {
        void *slept_on;
        pthread_join(threads[i], &slept_on);
        ck_assert_ptr_null(slept_on);
    }
    munmap(sleeper.live, sizeof *sleeper.live);
    segment_free(s);
}
END_TEST

/* Every slot that is given out has its entry in the control object. */
START_TEST(every_slot)
{
    struct segment *s = make(100, true);
    struct segment_grip a = {.slot = 77};
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++) {
        ck_assert_int_eq(attach(s, SHMVIEW_READ).slot, i);
        ck_assert_uint_ge(size_of(s, CONTROL), 1536 + (uint64_t)(i + 1) * 128);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(segment_attach(s, SHMVIEW_WRITE, &a), -ENOLCK);
    ck_assert_int_eq(a.slot, 77);
    ck_assert_uint_eq(s->n_attachments, SHMVIEW_SLOTS_MAX);
    struct segment_grip peek = attach(s, SHMVIEW_PEEK); /* needs no slot */
    segment_detach(s, peek.slot);
    segment_detach(s, 500);
    a = attach(s, SHMVIEW_WRITE);
    ck_assert_int_eq(a.slot, 500);
    ck_assert_int_eq(a.generation, 2);
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++)
        segment_detach(s, i);
    ck_assert(!s->use || (s->use->cached && s->use->live));
    segment_free(s);
}
END_TEST

/* The number of slots in the first page of the control object; the next slot needs another page. */
#define SLOTS_OF_A_PAGE ((4096 - sizeof(struct shmview_control)) / sizeof(struct shmview_slot))

static void attach_failing(unsigned classes, unsigned crowd)
{
    struct segment *s = make(100, true);
    struct segment_grip a;
    int r = 0;
    for (unsigned i = 0; i < crowd; i++)
        attach(s, SHMVIEW_READ);
    unsigned before = unit_fds();
    for (unsigned n = 1;
         faults_begin(classes, n), r = segment_attach(s, SHMVIEW_WRITE, &a), faults_end(); n++) {
        ck_assert_int_lt(r, 0);
        ck_assert_int_ne(r, -ENOLCK); /* which would mean that all slots are used */
        ck_assert_uint_eq(s->n_attachments, crowd);
        ck_assert_uint_eq(s->slots.n_used, crowd);
        ck_assert_uint_le(unit_fds(), before);
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_eq(s->use->live->generation[a.slot], a.generation);
    ck_assert_uint_ge(size_of(s, CONTROL), 1536 + 128 * (uint64_t)(a.slot + 1));
    for (unsigned i = 0; i <= crowd; i++)
        segment_detach(s, i);
    segment_free(s);
}

START_TEST(every_call_of_an_attach_fails)
{
    const int errors[] = {EIO, ENOSPC, EMFILE};
    const unsigned crowds[] = {0, SLOTS_OF_A_PAGE};
    for (int i = 0; i < 6; i++) {
        faults_errno(errors[i / 2]);
        attach_failing(FAULTS_SYSTEM, crowds[i % 2]);
        attach_failing(FAULTS_MEMORY, crowds[i % 2]);
    }
}
END_TEST

START_TEST(objects_that_were_replaced)
{
    for (int which = 0; which < 3; which++) {
        struct segment *s = make(100, true);
        struct object object = object_of(s, (enum segment_part)which);
        struct segment_grip a;
        const char *path = unit_object(object.name);
        int keep = object_open(&object, O_RDONLY); /* keeps the inode in use */
        unlink(path);
        ck_assert_int_eq(segment_attach(s, SHMVIEW_WRITE, &a), -ENOENT);
        close(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
        ck_assert_int_eq(segment_attach(s, SHMVIEW_WRITE, &a), -ESTALE);
        ck_assert_uint_eq(s->n_attachments, 0);
        segment_free(s);
        ck_assert_uint_eq(unit_objects(), 1); /* the foreign one */
        unlink(path);
        close(keep);
    }
}
END_TEST

/* An open descriptor is the object itself, even if its name leads elsewhere. */
START_TEST(objects_that_were_replaced_while_open)
{
    struct segment *s = make(100, true);
    struct segment_grip a = attach(s, SHMVIEW_WRITE), b;
    struct stat st;
    struct object object = object_of(s, DATA);
    const char *path = unit_object(object.name);
    unlink(path);
    close(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    ck_assert_int_eq(segment_attach(s, SHMVIEW_WRITE, &b), 0);
    ck_assert_int_eq(fstat(b.fds[DATA], &st), 0);
    ck_assert_uint_eq(st.st_ino, s->inodes[DATA]);
    /* it is opened for reading for the first time */
    ck_assert_int_eq(segment_attach(s, SHMVIEW_READ, &b), -ESTALE);
    ck_assert_uint_eq(s->n_attachments, 2);
    segment_detach(s, a.slot);
    segment_detach(s, a.slot + 1);
    segment_free(s);
    ck_assert_uint_eq(unit_objects(), 1);
    unlink(path);
}
END_TEST

/* --- Open descriptors ---------------------------------------------------- */

#define N_MANY 50

/* Only the last attached segments keep their descriptors open, which clients do not notice. */
START_TEST(descriptors_are_bounded)
{
    const unsigned limits[] = {0, 1, 3, 1000};
    struct segment *many[N_MANY];
    uint64_t seed = 77;
    unsigned before = unit_fds();
    for (uint64_t i = 0; i < N_MANY; i++) {
        many[i] = fresh(100 + i, i % 3 != 0);
        many[i]->id = i;
        many[i]->named = false; /* its objects go by its id */
        struct object_space space;
        ck_assert_int_eq(whole_segment(many[i], NULL, &space), 0);
    }
    for (int l = 0; l < 4; l++) {
        unsigned limit = limits[l] ? limits[l] : 1;
        many[0]->home->max_recent = limits[l];
        for (int i = 0; i < 2000; i++) {
            struct segment_grip a;
            struct stat st;
            struct segment *s = many[unit_random(&seed) % N_MANY];
            int64_t access = 1 + (int64_t)(unit_random(&seed) % 3);
            ck_assert_int_eq(segment_attach(s, access, &a), 0);
            ck_assert_int_eq(fstat(a.fds[DATA], &st), 0);
            ck_assert_uint_eq(st.st_ino, s->inodes[DATA]);
            ck_assert_int_eq(fcntl(a.fds[DATA], F_GETFL) & O_ACCMODE,
                             access == SHMVIEW_WRITE ? O_RDWR : O_RDONLY);
            segment_detach(s, a.slot);
            ck_assert_uint_le(unit_fds(), before + limit * N_USE_DESCRIPTORS);
        }
        for (int i = 0; i < N_MANY; i++) /* no client is attached */
            ck_assert(!many[i]->use || many[i]->use->cached);
    }
    for (int i = 0; i < N_MANY; i++)
        segment_free(many[i]);
    ck_assert_uint_eq(unit_fds(), before);
}
END_TEST

UNIT_MAIN("segment", UNIT_TEST(headers_of_the_objects),
          UNIT_TEST(data_is_zeroed_for_creators_who_populate), UNIT_TEST(without_a_lock),
          UNIT_TEST(object_that_is_in_the_way),
          UNIT_TEST(allocation_that_is_cancelled_or_too_large),
          UNIT_TEST(every_call_of_an_allocation_fails), UNIT_TEST(descriptors_by_access),
          UNIT_TEST(slots_and_generations), UNIT_TEST(counts_do_not_outlive_the_generations),
          UNIT_TEST(deaths_are_told), UNIT_TEST(a_death_wakes_all), UNIT_TEST(every_slot),
          UNIT_TEST(every_call_of_an_attach_fails), UNIT_TEST(objects_that_were_replaced),
          UNIT_TEST(objects_that_were_replaced_while_open), UNIT_TEST(descriptors_are_bounded))
