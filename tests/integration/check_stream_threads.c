/* SPDX-License-Identifier: Apache-2.0 */
/* Streams used by several threads through one handle. */
#include <pthread.h>
#include <stdatomic.h>

#include "streams.h"

#define FRAMES 3000

static struct shmview_stream *shared_reader;
static _Atomic int n_taken[FRAMES + 1];

static void *take_in_thread(void *arg)
{
    struct shmview_frame frame;
    (void)arg;
    for (;;) {
        int r = shmview_stream_take(shared_reader, SOON, &frame);
        if (r == SHMVIEW_STREAM_ENDED)
            return NULL;
        if (r || frame_number(&frame) > FRAMES)
            return "not taken";
        atomic_fetch_add(&n_taken[frame_number(&frame)], 1);
        shmview_frame_release(&frame);
    }
}

static void *write_in_thread(void *arg)
{
    static _Atomic int64_t number;
    (void)arg;
    for (int64_t n; (n = atomic_fetch_add(&number, 1)) < FRAMES;)
        write_frame(stream, n);
    return NULL;
}

START_TEST(threads_share_a_reader_and_a_writer)
{
    pthread_t readers[3], writers[2];
    void *failed;
    open_stream(SHMVIEW_LOSSLESS, 8);
    shared_reader = open_reader();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, take_in_thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&writers[i], NULL, write_in_thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(writers[i], NULL), 0);
    OK(shmview_stream_end(stream));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_join(readers[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    for (int i = 0; i < FRAMES; i++)
        ck_assert_int_eq(n_taken[i], 1);
    OK(shmview_stream_close(shared_reader));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(threads_share_a_reader_and_a_writer),
        SUITE_END,
    };
    return suite_main("stream_threads", tests);
}
