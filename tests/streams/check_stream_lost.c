/* SPDX-License-Identifier: Apache-2.0 */
/* Streams whose attachment the daemon has ended, by the reply to a claim or by the liveness object.
 */
#include <pthread.h>

#include "between.h"
#include "client/stream/stream.h"
#include "integration/streams.h"

#define LOST(call) REFUSED((call), LOST, "the daemon has ended this attachment")

/* --- In the reply to a claim ---------------------------------------------- */

/* A wait of another thread, which the test has begun. */
struct waiter {
    pthread_t thread;
    int (*call)(struct shmview_stream *, int64_t, struct shmview_frame *);
    struct shmview_stream *stream;
    int result;
};

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;
    struct shmview_frame frame;
    w->result = w->call(w->stream, SHMVIEW_FOREVER, &frame);
    return NULL;
}

static void begin_to_wait(struct waiter *w, uint32_t *gate)
{
    ck_assert_int_eq(pthread_create(&w->thread, NULL, wait_in_thread, w), 0);
    int64_t until = SOON;
    while (!gate_is_closed(gate) && await_again(until))
        continue;
    ck_assert(gate_is_closed(gate));
}

/* Nothing announces such an end: a claim is an affair of this process and the daemon. */
START_TEST(a_wait_for_a_frame_or_a_slot)
{
    struct shmview_frame frames[2];
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    for (int i = 0; i < 2; i++)
        OK(shmview_stream_loan(stream, 0, &frames[i]));
    struct waiter waiters[] = {{.call = shmview_stream_take, .stream = reader},
                               {.call = shmview_stream_loan, .stream = stream}};
    begin_to_wait(&waiters[0], reader->stages[0].gate);
    begin_to_wait(&waiters[1], &stream_lock(stream)->control->stream_writers);
    int64_t began = await_now_ns();
    for (int i = 0; i < 2; i++)
        lock_lose(stream_lock(waiters[i].stream));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(waiters[i].thread, NULL), 0);
        ck_assert_int_eq(waiters[i].result, -SHMVIEW_ERR_LOST);
    }
    ck_assert_int_lt(await_now_ns() - began, INT64_C(1000) * MS);
    for (int i = 0; i < 2; i++)
        shmview_frame_discard(&frames[i]);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- In the liveness object ------------------------------------------------ */

/* A writer that was declared dead too early does not end the frames of the next one. */
START_TEST(the_end_of_a_stage)
{
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_stream *reader = open_reader();
    struct lock *l = stream_lock(stream);
    const uint32_t *life = l->my_life, next = *life + 1;
    write_frame(stream, 1);
    read_frame(reader, 1);
    l->my_life = &next;
    LOST(shmview_stream_end(stream));
    l->my_life = life;
    expect_none(reader);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_wait_for_a_frame_or_a_slot),
        SUITE_TEST(the_end_of_a_stage),
        SUITE_END,
    };
    return suite_main("stream_lost", tests);
}
