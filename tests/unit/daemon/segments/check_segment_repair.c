/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment_repair.c: objects that a client has cut or enlarged get their size and a usable
 * lock back; a repair that fails reports it, and the next one completes it; a thread has at most
 * one repair of an object. */
#include "daemon/segments/segment_repair.h"

#include <uv.h>

#include "daemon/memory/discard.h"
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

static uint64_t memory_of(const struct segment *s, enum segment_part part)
{
    struct stat st;
    struct object o = object_of(s, part);
    ck_assert_int_eq(object_stat(&o, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Frees the first bytes of an object and keeps its size, as a client can. A repair that looks at
 * all pages would commit them again. */
static void punch(const struct segment *s, enum segment_part part, uint64_t bytes)
{
    struct object o = object_of(s, part);
    int fd = object_open(&o, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes), 0);
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

/* The repair of a few missing bytes takes no longer in a large object. */
START_TEST(only_missing_bytes_are_committed)
{
    struct sizes sizes;
    struct segment *s = begin(40960, &sizes);
    punch(s, DATA, 32768);
    resize(s, DATA, sizes.data - 1);
    ck_assert_int_eq(segment_repair(s), 0);
    is_repaired(s, &sizes);
    ck_assert_uint_eq(memory_of(s, DATA), 8192);
    resize(s, DATA, 36864);
    ck_assert_int_eq(segment_repair(s), 0);
    is_repaired(s, &sizes);
    ck_assert_uint_eq(memory_of(s, DATA), 8192);
    resize(s, DATA, sizes.data + 1);
    faults_begin_call("posix_fallocate", 1, EIO, false); /* nothing is missing */
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert(!faults_end());
    is_repaired(s, &sizes);
    ck_assert_uint_eq(memory_of(s, DATA), 8192);
    segment_free(s);
}
END_TEST

/* The table of layouts is part of the control object. */
START_TEST(a_layout_after_a_truncation)
{
    static const char text[] = "{\"name\":\"none\",\"views\":[]}";
    struct sizes sizes;
    struct segment *s = begin(100, &sizes);
    resize(s, CONTROL, 0);
    ck_assert_int_eq(segment_add_layout(s, "none", text, sizeof text), 0);
    is_repaired(s, &sizes);
    struct shmview_control *c = look(s, CONTROL, sizeof *c);
    ck_assert_uint_ne(c->layouts[0], 0);
    munmap(c, sizeof *c);
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
        faults_begin_call("process_vm_writev", n, EIO, false);
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

/* --- Repairs by a thread --------------------------------------------------- */

#define LARGE ((uint64_t)4 << 20)

static uv_loop_t loop;
static uv_sem_t hold;
static uv_work_t holding;

/* libuv keeps a pipe of the first loop of a process. One thread has all work. */
__attribute__((constructor)) static void warm_up(void)
{
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void await_hold(uv_work_t *work)
{
    (void)work;
    uv_sem_wait(&hold);
}

static void held(uv_work_t *work, int status)
{
    (void)work;
    ck_assert_int_eq(status, 0);
}

/* Lets no work begin until release(). */
static void hold_thread(void)
{
    ck_assert_int_eq(uv_queue_work(&loop, &holding, await_hold, held), 0);
}

/* Lets the thread do all that waits. */
static void release(void)
{
    uv_sem_post(&hold);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
}

static void begin_loop(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_sem_init(&hold, 0), 0);
    discard_init(&loop);
    hold_thread();
}

static void end_loop(void)
{
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0); /* frees the objects of the segment */
    discard_init(NULL);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    uv_sem_destroy(&hold);
}

/* Damages and repairs an object again and again before the thread begins. Asserts that all of these
 * repairs together have one descriptor and count once. */
static void damage_often(struct segment *s, enum segment_part part, uint64_t bytes)
{
    unsigned n_fds = unit_fds();
    uint64_t n = s->home->n_repairs;
    for (int i = 0; i < 20; i++) {
        resize(s, part, bytes);
        ck_assert_int_eq(segment_repair(s), 0);
    }
    ck_assert_uint_eq(unit_fds(), n_fds + 1);
    ck_assert_uint_eq(s->home->n_repairs, n + 1);
    ck_assert_uint_eq(s->home->repairs.n, 1);
}

START_TEST(a_thread_has_one_repair_of_an_object)
{
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    damage_often(s, DATA, 0);
    ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
    release();
    ck_assert_uint_eq(s->home->repairs.n, 0);
    ck_assert_uint_ge(memory_of(s, DATA), LARGE);
    is_repaired(s, &sizes);
    hold_thread(); /* a later damage is found by the next check */
    damage_often(s, DATA, 0);
    release();
    ck_assert_uint_ge(memory_of(s, DATA), LARGE);
    is_repaired(s, &sizes);
    segment_free(s);
    end_loop();
}
END_TEST

/* The thread's work for one object does not keep the other one from being repaired. */
START_TEST(each_object_has_its_own)
{
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    damage_often(s, DATA, 0);
    uint64_t n = s->home->n_repairs;
    resize(s, CONTROL, 0);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->n_repairs, n + 1);
    ck_assert_uint_eq(size_of(s, CONTROL), sizes.control);
    header_is(s, &sizes.header);
    release();
    is_repaired(s, &sizes);
    segment_free(s);
    end_loop();
}
END_TEST

/* More bytes are lost after an owner has learned of the first ones. */
START_TEST(lost_again_before_the_thread_begins)
{
    const uint64_t none = 0;
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    resize(s, DATA, 0);
    ck_assert_int_eq(segment_repair(s), 0);
    put_at(s, CONTROL, &none, sizeof none, offsetof(struct shmview_control, inside));
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(inside(s), 0);
    resize(s, DATA, 0);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_ne(inside(s) & SHMVIEW_LOCK_OWNER, 0);
    release();
    is_repaired(s, &sizes);
    segment_free(s);
    end_loop();
}
END_TEST

START_TEST(the_segment_is_freed_before_the_thread_begins)
{
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    struct segment_home *home = s->home;
    damage_often(s, DATA, 0);
    segment_free(s);
    ck_assert_uint_eq(home->repairs.n, 1);
    release();
    ck_assert_uint_eq(home->repairs.n, 0);
    end_loop();
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
}
END_TEST

/* The thread commits the bytes that are missing now, and leaves the holes of a client alone. Holes
 * hide the excess. */
START_TEST(a_thread_commits_only_missing_bytes)
{
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    punch(s, DATA, LARGE / 4);
    resize(s, DATA, LARGE / 2);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->repairs.n, 1);
    resize(s, DATA, LARGE / 4);
    ck_assert_int_eq(segment_repair(s), 0);
    release();
    is_repaired(s, &sizes);
    ck_assert_uint_eq(memory_of(s, DATA), LARGE / 4 * 3);
    hold_thread();
    put_at(s, DATA, "x", 1, LARGE);
    ck_assert_int_eq(segment_repair(s), 0);
    ck_assert_uint_eq(s->home->repairs.n, 1);
    release();
    is_repaired(s, &sizes);
    ck_assert_uint_eq(memory_of(s, DATA), LARGE / 4 * 3);
    segment_free(s);
    end_loop();
}
END_TEST

/* The object stays as it is, so that the next check finds the damage. */
START_TEST(no_memory_for_the_work)
{
    struct sizes sizes;
    begin_loop();
    struct segment *s = begin(LARGE, &sizes);
    resize(s, DATA, 0);
    faults_begin_call("malloc", 1, ENOMEM, false);
    int r = segment_repair(s);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -ENOMEM);
    ck_assert_uint_eq(size_of(s, DATA), 0);
    ck_assert_int_eq(segment_repair(s), 0);
    release();
    is_repaired(s, &sizes);
    segment_free(s);
    end_loop();
}
END_TEST

UNIT_MAIN("segment_repair", UNIT_TEST(no_memory_for_lost_bytes),
          UNIT_TEST(the_lock_cannot_be_written), UNIT_TEST(sound_ones_are_left_alone),
          UNIT_TEST(cut_and_enlarged), UNIT_TEST(only_missing_bytes_are_committed),
          UNIT_TEST(a_thread_commits_only_missing_bytes), UNIT_TEST(a_layout_after_a_truncation),
          UNIT_TEST(a_client_is_inside), UNIT_TEST(every_call_fails),
          UNIT_TEST(a_thread_has_one_repair_of_an_object), UNIT_TEST(each_object_has_its_own),
          UNIT_TEST(lost_again_before_the_thread_begins),
          UNIT_TEST(the_segment_is_freed_before_the_thread_begins),
          UNIT_TEST(no_memory_for_the_work))
