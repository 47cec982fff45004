/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that are taken while a thread ends: by destructors of thread-specific data. */
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "support/client.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg, *other;
static pthread_key_t key;

/* What a thread takes in one round of its destructors. */
struct taking {
    int (*take)(struct shmview_segment *);
    int round; /* from 1 on */
    int seen;  /* rounds until now */
    int r;     /* what take() returned */
};

static void take_in_round(void *value)
{
    struct taking *t = value;
    if (++t->seen == t->round)
        t->r = t->take(seg);
    else
        pthread_setspecific(key, t);
}

static void *end_with(void *taking)
{
    if (shmview_lock(seg) || shmview_unlock(seg))
        return "lock failed";
    pthread_setspecific(key, taking);
    return NULL;
}

static int (*const ways[])(struct shmview_segment *) = {shmview_lock, shmview_lock_shared};

static struct taking run(int way, int round)
{
    struct taking t = {.take = ways[way], .round = round, .r = 1};
    pthread_t thread;
    void *failed;
    ck_assert_int_eq(pthread_create(&thread, NULL, end_with, &t), 0);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    return t;
}

/* Whether the lock is free; a thread that has ended with it has died inside. */
static void expect_free(bool abandoned)
{
    int r = shmview_trylock(other);
    ck_assert_int_eq(r, abandoned ? SHMVIEW_OWNER_DIED : 0);
    OK(shmview_unlock(other));
}

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    other = client_attach(conn, "s", SHMVIEW_WRITE);
}

static void end(void)
{
    OK(shmview_detach(other));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

START_TEST(before_the_librarys_own)
{
    ck_assert_int_eq(pthread_key_create(&key, take_in_round), 0); /* its key comes before */
    begin();
    for (int way = 0; way < 2; way++)
        for (int round = 1; round <= PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
            ck_assert_int_eq(run(way, round).r, 0);
            expect_free(way == 0);
        }
    end();
}
END_TEST

START_TEST(after_the_librarys_own)
{
    begin();
    OK(shmview_lock(seg)); /* makes the library's key */
    OK(shmview_unlock(seg));
    ck_assert_int_eq(pthread_key_create(&key, take_in_round), 0);
    for (int way = 0; way < 2; way++)
        for (int round = 1; round <= PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
            bool is_last = round == PTHREAD_DESTRUCTOR_ITERATIONS;
            struct taking t = run(way, round);
            ck_assert_int_eq(t.seen, round);
            ck_assert_int_eq(t.r, is_last ? -SHMVIEW_ERR_LIMIT : 0);
            expect_free(way == 0 && !is_last);
        }
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(before_the_librarys_own),
        SUITE_TEST(after_the_librarys_own),
        SUITE_END,
    };
    return suite_main("thread_end", tests);
}
