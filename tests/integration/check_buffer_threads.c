/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that many threads take and give back: of all that happens at once exactly one
 * detaches, a fork cuts no count in two, and what a peer changes at any moment is checked
 * as it was loaded. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#define N_THREADS 4
#define ROUNDS    300
#define FORKS     60

static _Alignas(8) unsigned char memory[4096];
static struct shmview_segment *seg;
static struct shmview_view view;
static struct shmview_buffer buffers[N_THREADS];
static pthread_barrier_t barrier;
static atomic_int n_released;
static atomic_bool stop;

static void count_release(void *arg)
{
    memset(arg, 0, sizeof memory); /* no thread may read it after this */
    n_released++;
}

static void begin(void)
{
    n_released = 0;
    OK(shmview_wrap(memory, sizeof memory, 0, count_release, memory, &seg));
    OK(shmview_view_cast(seg, "B", 0, SHMVIEW_REST, &view));
}

static void start(pthread_t *threads, void *(*run)(void *))
{
    for (size_t i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run, &buffers[i]), 0);
}

static void join(const pthread_t *threads)
{
    for (size_t i = 0; i < N_THREADS; i++) {
        void *wrong;
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_msg(!wrong, "%s", (const char *)wrong);
    }
}

/* --- The last one -------------------------------------------------------- */

static void *release_at_once(void *buffer)
{
    struct shmview_buffer *b = buffer;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier); /* a segment is there, and buffers[] */
        volatile unsigned char byte = *(unsigned char *)b->buf;
        (void)byte;
        shmview_buffer_release(b);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

START_TEST(one_of_all_detaches)
{
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&barrier, NULL, N_THREADS + 1);
    start(threads, release_at_once);
    for (int i = 0; i < ROUNDS; i++) {
        begin();
        for (size_t k = 0; k < N_THREADS; k++)
            OK(shmview_buffer_get(&view, SHMVIEW_BUFFER_ND, &buffers[k]));
        pthread_barrier_wait(&barrier);
        if (i % 2)
            OK(shmview_detach_later(seg));
        pthread_barrier_wait(&barrier);
        if (i % 2 == 0) {
            ck_assert_int_eq(n_released, 0);
            OK(shmview_detach(seg)); /* all are back: not busy */
        }
        ck_assert_int_eq(n_released, 1);
    }
    join(threads);
    pthread_barrier_destroy(&barrier);
}
END_TEST

/* --- Forks --------------------------------------------------------------- */

static void *get_and_release(void *buffer)
{
    static const unsigned flags[] = {SHMVIEW_BUFFER_SIMPLE, SHMVIEW_BUFFER_INDIRECT};
    for (unsigned i = 0; !stop; i++) {
        if (shmview_buffer_get(&view, flags[i % 2], buffer))
            return (void *)"a buffer was refused";
        shmview_buffer_release(buffer);
    }
    return NULL;
}

/* Each buffer is out, and counted, or it is not: never half. */
static void release_all(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    for (size_t i = 0; i < N_THREADS; i++)
        shmview_buffer_release(&buffers[i]);
    OK(shmview_detach(seg));
    ck_assert_int_eq(n_released, 1);
}

START_TEST(a_fork_cuts_no_count_in_two)
{
    pthread_t threads[N_THREADS];
    begin();
    stop = false;
    start(threads, get_and_release);
    for (int i = 0; i < FORKS; i++) {
        struct child child;
        child_start(&child, release_all, NULL);
        child_wait(&child);
    }
    stop = true;
    join(threads);
    OK(shmview_detach(seg));
}
END_TEST

/* --- A peer -------------------------------------------------------------- */

/* Says now that the row lies inside, now that it does not. */
static void *change_its_mind(void *arg)
{
    _Atomic uint64_t *stored = (void *)memory;
    (void)arg;
    for (uint64_t i = 0; !stop; i++)
        atomic_store_explicit(stored, i % 3 ? sizeof memory - 16 : UINT64_MAX - i % 64,
                              memory_order_relaxed);
    return NULL;
}

START_TEST(a_peer_that_changes_its_mind)
{
    static const int64_t shape[] = {1, 4}, strides[] = {8, 4}, suboffsets[] = {0, -1};
    const struct shmview_view_spec spec = {
        .format = "i", .ndim = 2, .shape = shape, .strides = strides, .suboffsets = suboffsets};
    pthread_t threads[N_THREADS];
    struct shmview_buffer b;
    int n_good = 0, n_bad = 0;
    begin();
    OK(shmview_view_make(seg, &spec, &view));
    memcpy(memory, &(uint64_t){sizeof memory - 16}, 8);
    stop = false;
    start(threads, change_its_mind);
    for (int i = 0; i < 20000 || n_good == 0 || n_bad == 0; i++) {
        int r = shmview_buffer_get(&view, SHMVIEW_BUFFER_INDIRECT, &b);
        if (r) {
            ck_assert_int_eq(r, -SHMVIEW_ERR_BOUNDS);
            n_bad++;
            continue;
        }
        ck_assert_ptr_eq(*(void **)b.buf, memory + sizeof memory - 16);
        shmview_buffer_release(&b);
        n_good++;
    }
    stop = true;
    join(threads);
    OK(shmview_detach(seg));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(one_of_all_detaches),
        SUITE_TEST(a_fork_cuts_no_count_in_two),
        SUITE_TEST(a_peer_that_changes_its_mind),
        SUITE_END,
    };
    return suite_main("buffer_threads", tests);
}
