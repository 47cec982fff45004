/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of one party between two steps of another one. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "between.h"
#include "integration/streams.h"

/* --- The stream ---------------------------------------------------------- */

/* Readers of stage 0 and of stage 1 that pass frames on, and a frame of one of them. */
static struct shmview_stream *first, *second;
static struct shmview_frame taken;

static struct shmview_stream *open_passer(const char *name)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(conn, name, SHMVIEW_WRITE, &s));
    OK(shmview_stream_join(s));
    return s;
}

/* Opens a stream with two stages, and its readers. Its writer uses the slots 1, 2, ..., 0 in turn.
 */
static void open_stages(uint32_t mode, uint32_t flags, uint32_t n_slots)
{
    struct shmview_stream_spec spec = spec_of(mode, n_slots);
    spec.n_stages = 2;
    spec.flags = flags;
    open_stream_of(&spec);
    first = open_passer("s");
    second = open_passer("s:1");
}

static void close_stages(void)
{
    OK(shmview_stream_close(first));
    OK(shmview_stream_close(second));
    close_stream();
}

static void write_frames(int64_t number, int64_t last)
{
    for (; number <= last; number++)
        write_frame(stream, number);
}

/* Takes the next frame of stage 0, or the latest one, and publishes it in stage 1. */
static void take_and_pass(bool latest)
{
    OK((latest ? shmview_stream_take_latest : shmview_stream_take)(first, 0, &taken));
    OK(shmview_frame_pass(&taken, 1, NULL));
}

static void pass_one(void)
{
    take_and_pass(false);
    shmview_frame_release(&taken);
}

/* --- Between two steps of a writer that frees a slot ---------------------- */

static void pass_back(void)
{
    uint64_t sequence;
    OK(shmview_frame_pass(&taken, 0, &sequence));
    ck_assert_uint_eq(sequence, 5);
    shmview_frame_release(&taken);
}

static void take_in_stage_1(void)
{
    OK(shmview_stream_take(second, 0, &taken));
    ck_assert_int_eq(frame_number(&taken), 1);
    at(AT_STREAM_CLEARED, pass_back);
}

/* The writer has cleared all numbers of a slot. Its frame is passed from stage 1 to stage 0, and
 * released, before the writer looks at the readers. */
START_TEST(a_frame_that_is_passed_back_is_not_overwritten)
{
    struct shmview_frame frame;
    open_stages(SHMVIEW_LATEST, SHMVIEW_MANY_WRITERS, 4);
    struct shmview_stream *reader = open_reader();
    for (int i = 1; i <= 2; i++) {
        write_frame(stream, i);
        pass_one();
    }
    write_frames(3, 4);
    at(AT_STREAM_OWNS, take_in_stage_1);
    OK(shmview_stream_loan(stream, SOON, &frame));
    ck_assert_uint_ne(frame.slot, taken.slot);
    fill_frame(&frame, 666);
    OK(shmview_stream_take_latest(reader, 0, &taken));
    ck_assert_uint_eq(taken.sequence, 5);
    ck_assert_int_eq(frame_number(&taken), 1);
    shmview_frame_release(&taken);
    shmview_frame_discard(&frame);
    OK(shmview_stream_close(reader));
    close_stages();
}
END_TEST

static void pass_latest(void)
{
    take_and_pass(true);
}

static void pass_latest_and_release(void)
{
    take_and_pass(true);
    shmview_frame_release(&taken);
}

/* The only reader of a lossless stream has joined after the last frame, so the writer may have its
 * slot; but it may take that frame, and pass it on. */
START_TEST(a_frame_that_is_passed_on_as_its_slot_is_freed)
{
    void (*readers[])(void) = {pass_latest, pass_latest_and_release};
    struct shmview_frame other, frame;
    for (int i = 0; i < 2; i++) {
        open_stages(SHMVIEW_LOSSLESS, 0, 2);
        OK(shmview_stream_close(first));
        write_frame(stream, 1);
        first = open_passer("s");
        OK(shmview_stream_loan(stream, 0, &other));
        at(AT_STREAM_CLEARS, readers[i]);
        REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "no free slot");
        shmview_frame_release(&taken);
        read_frame(second, 1);
        OK(shmview_stream_loan(stream, SOON, &frame));
        shmview_frame_discard(&frame);
        shmview_frame_discard(&other);
        close_stages();
    }
}
END_TEST

static pthread_t passer;
static sem_t stopped, going_on;

static void stop_here(void)
{
    sem_post(&stopped);
    sem_wait(&going_on);
}

static void *pass_with_a_stop(void *arg)
{
    at(AT_STREAM_PASSES, stop_here);
    take_and_pass(false);
    return arg;
}

static void let_it_go_on(void)
{
    sem_post(&going_on);
    ck_assert_int_eq(pthread_join(passer, NULL), 0);
}

static void begin_to_pass(void)
{
    ck_assert_int_eq(pthread_create(&passer, NULL, pass_with_a_stop, NULL), 0);
    sem_wait(&stopped);
    at(AT_STREAM_CLEARED, let_it_go_on);
}

/* Like the test before, but the slot shows the number already, and the ring does not. */
START_TEST(a_frame_that_is_half_passed_on_then)
{
    struct shmview_frame frame;
    sem_init(&stopped, 0, 0);
    sem_init(&going_on, 0, 0);
    open_stages(SHMVIEW_LATEST, SHMVIEW_MANY_WRITERS, 4);
    write_frames(1, 4);
    at(AT_STREAM_OWNS, begin_to_pass);
    OK(shmview_stream_loan(stream, SOON, &frame));
    ck_assert_uint_ne(frame.slot, taken.slot);
    shmview_frame_discard(&frame);
    shmview_frame_release(&taken);
    read_frame(second, 1);
    close_stages();
}
END_TEST

/* --- Between two steps of a reader that passes a frame on ----------------- */

static void take_in_stage_1_late(void)
{
    struct shmview_frame frame;
    OK(shmview_stream_take(second, 0, &frame));
    ck_assert_uint_eq(frame.sequence, 2);
    ck_assert_uint_eq(frame.missed, 1);
    ck_assert_int_eq(frame_number(&frame), 2);
    shmview_frame_release(&frame);
}

/* Stage 1 had another frame in the same slot, and its ring still has the entry. */
START_TEST(a_frame_that_is_half_passed_on_has_no_number)
{
    open_stages(SHMVIEW_LATEST, 0, 5);
    for (int i = 1; i <= 2; i++) {
        write_frame(stream, i);
        pass_one();
    }
    write_frames(3, 6);
    at(AT_STREAM_PASSES, take_in_stage_1_late);
    take_and_pass(true);
    ck_assert_uint_eq(taken.slot, 1);
    shmview_frame_release(&taken);
    read_frame(second, 6);
    close_stages();
}
END_TEST

static void die(void)
{
    kill(getpid(), SIGKILL);
}

static void die_while_it_passes(struct child *me, void *arg)
{
    OK(shmview_stream_open(client_connect(&d), "s", SHMVIEW_WRITE, &first));
    OK(shmview_stream_join(first));
    child_tell(me, 0);
    child_pause(me);
    at(*(int *)arg, die);
    take_and_pass(false);
}

/* Writes frame 1, which a child takes. The child dies at that step of its pass. */
static void let_a_child_half_pass(int step)
{
    struct child child;
    child_start(&child, die_while_it_passes, &step);
    child_hear(&child, 0);
    write_frame(stream, 1);
    child_cue(&child);
    child_wait_signal(&child, SIGKILL);
}

/* The number that a dead reader has stored keeps no slot, and is not taken for that of a frame. */
START_TEST(a_frame_that_a_dead_reader_has_half_passed_on)
{
    struct shmview_frame frames[3];
    open_stages(SHMVIEW_LOSSLESS, 0, 3);
    OK(shmview_stream_close(first));
    let_a_child_half_pass(AT_STREAM_PASSES);
    for (int f = 0; f < 3; f++)
        OK(shmview_stream_loan(stream, SOON, &frames[f]));
    for (int f = 0; f < 3; f++)
        shmview_frame_discard(&frames[f]);
    first = open_passer("s");
    write_frame(stream, 2);
    pass_one();
    read_frame(second, 2);
    close_stages();
}
END_TEST

START_TEST(another_reader_finishes_what_a_dead_one_has_begun)
{
    int steps[] = {AT_STREAM_PASSES, AT_STREAM_PASSED};
    for (int i = 0; i < 2; i++) {
        open_stages(SHMVIEW_LOSSLESS, 0, 4);
        let_a_child_half_pass(steps[i]);
        OK(shmview_stream_take(first, 0, &taken));
        REFUSED(shmview_frame_pass(&taken, 1, NULL), EXISTS, "in stage 1 already");
        shmview_frame_release(&taken);
        read_frame(second, 1);
        write_frame(stream, 2);
        pass_one();
        read_frame(second, 2);
        close_stages();
    }
}
END_TEST

/* Another frame has the number that the dead reader had chosen. */
START_TEST(a_frame_that_is_half_passed_on_gets_another_number)
{
    struct shmview_frame half;
    open_stages(SHMVIEW_LOSSLESS, 0, 4);
    let_a_child_half_pass(AT_STREAM_PASSES);
    write_frame(stream, 2);
    OK(shmview_stream_take(first, 0, &half));
    pass_one();
    REFUSED(shmview_frame_pass(&half, 1, NULL), EXISTS, "in stage 1 already");
    shmview_frame_release(&half);
    read_frame(second, 2);
    read_frame(second, 1);
    close_stages();
}
END_TEST

/* The ring has the entry of another frame in its place, so only the slot shows that the frame was
 * passed on. */
START_TEST(a_frame_whose_entry_is_overwritten_is_not_passed_on_again)
{
    struct shmview_frame half;
    open_stages(SHMVIEW_LATEST, 0, 4);
    let_a_child_half_pass(AT_STREAM_PASSED);
    OK(shmview_stream_take(first, 0, &half));
    for (int i = 2; i <= 6; i++) {
        write_frame(stream, i);
        pass_one();
    }
    REFUSED(shmview_frame_pass(&half, 1, NULL), EXISTS, "in stage 1 already");
    shmview_frame_release(&half);
    OK(shmview_stream_take_latest(second, 0, &taken));
    ck_assert_uint_eq(taken.sequence, 6);
    ck_assert_int_eq(frame_number(&taken), 6);
    shmview_frame_release(&taken);
    close_stages();
}
END_TEST

/* --- While a writer owns a slot that is not free -------------------------- */

static struct shmview_stream *other;
static int other_fd;

static void await_ring(void)
{
    char bytes[64];
    await_readable(other_fd);
    while (read(other_fd, bytes, sizeof bytes) > 0)
        continue;
}

/* The release of the frame wakes the other writer, which finds its slot owned. */
static void release_and_look(void)
{
    struct shmview_frame frame;
    read_frame(first, 1);
    await_ring();
    REFUSED(shmview_stream_loan(other, 0, &frame), TIMED_OUT, "no free slot");
}

START_TEST(a_writer_that_gives_up_wakes_others)
{
    struct shmview_frame loaned, frame;
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LOSSLESS, 2);
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    first = open_reader();
    OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &other));
    OK(shmview_stream_fd(other, &other_fd));
    write_frame(stream, 1);
    await_ring(); /* a new descriptor is armed for frames too */
    OK(shmview_stream_loan(stream, 0, &loaned));
    REFUSED(shmview_stream_loan(other, 0, &frame), TIMED_OUT, "no free slot");
    at(AT_STREAM_DISOWNS, release_and_look);
    REFUSED(shmview_stream_loan(stream, 0, &frame), TIMED_OUT, "no free slot");
    await_ring();
    OK(shmview_stream_loan(other, 0, &frame));
    shmview_frame_discard(&frame);
    shmview_frame_discard(&loaned);
    OK(shmview_stream_close(other));
    OK(shmview_stream_close(first));
    close_stream();
}
END_TEST

/* --- While a reader joins ------------------------------------------------- */

/* Another process stores the id of a client that does not live into slot 0, again and again. */
static void store_a_dead_owner(void)
{
    static uint32_t id = 64 << SHMVIEW_SLOT_BITS;
    unsigned char *base = shmview_data(shmview_stream_segment(stream));
    struct shmview_stream_header *header = (struct shmview_stream_header *)(void *)base;
    struct shmview_stream_slot *slot = (void *)(base + header->slots_offset);
    atomic_store((_Atomic uint32_t *)&slot->owner, ++id);
    at(AT_STREAM_NOTED, store_a_dead_owner);
}

START_TEST(deaths_without_end)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
    spec.flags = SHMVIEW_MANY_WRITERS;
    open_stream_of(&spec);
    OK(shmview_stream_close(open_reader())); /* so that a client has died */
    store_a_dead_owner();
    struct shmview_stream *reader = open_reader();
    at(N_STEPS, NULL);
    OK(shmview_stream_close(reader));
    close_stream();
}
END_TEST

/* --- While a thread of the parent takes ----------------------------------- */

static void *take_with_a_stop(void *arg)
{
    at(AT_STREAM_TAKEN, stop_here);
    OK(shmview_stream_take(arg, 0, &taken));
    return NULL;
}

/* The parent's next number is 3. A reader that joins waits for number 4. */
static void join_again(struct child *me, void *arg)
{
    struct shmview_frame frame;
    child_pause(me);
    expect_none(arg);
    write_frame(other, 4);
    OK(shmview_stream_take(arg, 0, &frame));
    ck_assert_int_eq(frame_number(&frame), 4);
    ck_assert_uint_eq(frame.missed, 0);
    shmview_stream_leave(arg);
}

static void leave_first(struct child *me, void *arg)
{
    shmview_stream_leave(arg);
    join_again(me, arg);
}

static void ask_for_a_death_first(struct child *me, void *arg)
{
    struct shmview_death death;
    REFUSED(shmview_stream_death(arg, &death), NOT_FOUND, "no death");
    join_again(me, arg);
}

START_TEST(a_fork_while_a_thread_takes)
{
    int access[] = {SHMVIEW_PEEK, SHMVIEW_READ};
    void (*begins[])(struct child *, void *) = {join_again, leave_first, ask_for_a_death_first};
    pthread_t taker;
    struct child child;
    struct shmview_stream *reader;
    sem_init(&stopped, 0, 0);
    sem_init(&going_on, 0, 0);
    for (int i = 0; i < 6; i++) {
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 6);
        spec.flags = SHMVIEW_MANY_WRITERS;
        open_stream_of(&spec);
        OK(shmview_stream_open(conn, "s", SHMVIEW_WRITE, &other));
        OK(shmview_stream_open(conn, "s", access[i % 2], &reader));
        OK(shmview_stream_join(reader));
        write_frames(1, 3);
        read_frame(reader, 1);
        ck_assert_int_eq(pthread_create(&taker, NULL, take_with_a_stop, reader), 0);
        sem_wait(&stopped);
        child_start(&child, begins[i / 2], reader);
        sem_post(&going_on);
        ck_assert_int_eq(pthread_join(taker, NULL), 0);
        child_cue(&child);
        child_wait(&child);
        shmview_frame_release(&taken);
        read_frame(reader, 3);
        read_frame(reader, 4);
        OK(shmview_stream_close(reader));
        OK(shmview_stream_close(other));
        close_stream();
    }
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_frame_that_is_passed_back_is_not_overwritten),
        SUITE_TEST(a_frame_that_is_passed_on_as_its_slot_is_freed),
        SUITE_TEST(a_frame_that_is_half_passed_on_then),
        SUITE_TEST(a_frame_that_is_half_passed_on_has_no_number),
        SUITE_TEST(a_frame_that_a_dead_reader_has_half_passed_on),
        SUITE_TEST(another_reader_finishes_what_a_dead_one_has_begun),
        SUITE_TEST(a_frame_that_is_half_passed_on_gets_another_number),
        SUITE_TEST(a_frame_whose_entry_is_overwritten_is_not_passed_on_again),
        SUITE_TEST(a_writer_that_gives_up_wakes_others),
        SUITE_TEST(deaths_without_end),
        SUITE_TEST(a_fork_while_a_thread_takes),
        SUITE_END,
    };
    return suite_main("stream_steps", tests);
}
