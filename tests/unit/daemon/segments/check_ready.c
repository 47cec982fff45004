/* SPDX-License-Identifier: Apache-2.0 */
/* Checks ready.c: what segments get that was made ahead is complete, new, and theirs. */
#include "unit/segments.h"

#include "common/base/util.h"
#include "daemon/segments/ready.h"
#include "daemon/segments/registry.h"

#define BYTES  65536
#define ROUNDS 8

static uv_loop_t loop;
static struct registry registry;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void begin(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    home_init(&registry.home);
    ck_assert_int_eq(pool_init(&loop, &ready_maker, 100), 0);
    pool_limit(4 << 20);
}

static void end(void)
{
    pool_stop();
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    registry_deinit(&registry);
}

/* Returns a segment that has what was made ahead. */
static struct segment *reserve(const char *name, uint64_t size, bool lock)
{
    struct segment *s = registry_reserve(&registry, name);
    ck_assert_ptr_nonnull(s);
    s->size = size;
    s->lock = lock;
    ready_give(s);
    return s;
}

static void complete(struct segment *s)
{
    struct object_space space;
    ck_assert_int_eq(whole_segment(s, NULL, &space), 0);
}

/* Creates and removes segments until the pool has data for two. */
static void fill_pool(void)
{
    int64_t until = now_ns() + 20000000000;
    for (int i = 0; i < 2; i++) {
        struct segment *s = reserve("s", BYTES, true);
        complete(s);
        registry_remove(&registry, s, ACTOR_NONE);
    }
    while (pool_bytes() < 2 * BYTES && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_ge(pool_bytes(), 2 * BYTES);
}

static void check_headers(const struct segment *s)
{
    const struct shmview_control *c = look(s, CONTROL, SEGMENT_CONTROL_BYTES);
    const struct shmview_liveness *l = look(s, LIVENESS, sizeof *l);
    ck_assert_uint_eq(c->header.magic, SHMVIEW_CONTROL_MAGIC);
    ck_assert_uint_eq(c->header.segment_id, s->id);
    ck_assert_uint_eq(l->header.magic, SHMVIEW_LIVENESS_MAGIC);
    ck_assert_uint_eq(l->header.segment_id, s->id);
    ck_assert_uint_eq(l->high, 0);
    munmap((void *)(uintptr_t)c, SEGMENT_CONTROL_BYTES);
    munmap((void *)(uintptr_t)l, sizeof *l);
}

START_TEST(complete_at_once)
{
    begin();
    fill_pool();
    struct segment *s = reserve("s", BYTES, true);
    ck_assert_uint_ne(s->inodes[DATA], 0);
    ino_t had = s->inodes[DATA];
    complete(s);
    ck_assert_uint_eq(s->inodes[DATA], had);
    ck_assert(s->inodes[CONTROL] && s->inodes[LIVENESS]);
    ck_assert_int_eq(access(unit_object("s"), F_OK), 0);
    ck_assert_uint_eq(size_of(s, DATA), BYTES);
    check_headers(s);
    struct segment_grip grip;
    ck_assert_int_eq(segment_attach(s, SHMVIEW_WRITE, &grip), 0);
    ck_assert_uint_eq(grip.slot, 0);
    segment_detach(s, grip.slot);
    end();
}
END_TEST

/* Nobody finds what another one wrote, and no object that another one still has. */
START_TEST(never_used_before)
{
    int held[ROUNDS];
    ino_t seen[ROUNDS];
    unsigned n_ready = 0;
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        fill_pool();
        struct segment *s = reserve("s", BYTES, true);
        n_ready += s->inodes[DATA] != 0;
        complete(s);
        char *p = look(s, DATA, BYTES);
        ck_assert(p[0] == 0 && memcmp(p, p + 1, BYTES - 1) == 0);
        memset(p, 0x5a, BYTES);
        munmap(p, BYTES);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(seen[k], s->inodes[DATA]);
        seen[i] = s->inodes[DATA];
        held[i] = open(unit_object("s"), O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(held[i], 0);
        registry_remove(&registry, s, ACTOR_NONE);
    }
    ck_assert_uint_eq(n_ready, ROUNDS);
    for (int i = 0; i < ROUNDS; i++)
        close(held[i]);
    end();
}
END_TEST

/* Another size is made, and a segment without a lock gets none. */
START_TEST(other_wishes)
{
    begin();
    fill_pool();
    struct segment *s = reserve("a", BYTES + 1, true);
    ck_assert_uint_eq(s->inodes[DATA], 0);
    complete(s);
    ck_assert_uint_eq(size_of(s, DATA), BYTES + 1);
    struct segment *t = reserve("b", BYTES, false);
    ck_assert_uint_ne(t->inodes[DATA], 0);
    complete(t);
    ck_assert_uint_eq(t->inodes[CONTROL], 0);
    end();
}
END_TEST

/* A foreign object has the name: the creation fails as it would without a pool. */
START_TEST(name_taken)
{
    struct object_space space;
    begin();
    fill_pool();
    int fd = open(unit_object("s"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    struct segment *s = reserve("s", BYTES, true);
    ck_assert_uint_eq(s->inodes[DATA], 0);
    ck_assert_int_eq(whole_segment(s, NULL, &space), -EEXIST);
    close(fd);
    unlink(unit_object("s"));
    end();
}
END_TEST

START_TEST(not_for_sealed)
{
    begin();
    fill_pool();
    struct segment *sealed = registry_reserve(&registry, "sealed");
    sealed->sealed = true;
    sealed->size = BYTES;
    ready_give(sealed);
    ck_assert_uint_eq(sealed->inodes[DATA], 0);
    end();
}
END_TEST

UNIT_MAIN("ready", UNIT_TEST(complete_at_once), UNIT_TEST(never_used_before),
          UNIT_TEST(other_wishes), UNIT_TEST(name_taken), UNIT_TEST(not_for_sealed))
