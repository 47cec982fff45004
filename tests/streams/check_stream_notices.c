/* SPDX-License-Identifier: Apache-2.0 */
/* Each reader learns of each death of a writer once, whoever takes over from the dead writer, and
 * when. */
#include <stdatomic.h>

#include "between.h"
#include "client/stream/stream.h"
#include "integration/streams.h"

/* Two readers. The first one looks when the test wants it; the second one waits for each death, so
 * that the daemon has noticed it. */
static struct shmview_stream *reader, *witness;

static void open_readers(uint32_t flags)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 6);
    spec.flags = flags;
    open_stream_of(&spec);
    reader = open_reader();
    witness = open_reader();
}

static void close_readers(void)
{
    OK(shmview_stream_close(reader));
    OK(shmview_stream_close(witness));
    close_stream();
}

/* Loans one frame more at each cue. */
static void loan_frames(struct child *me, void *arg)
{
    struct shmview_stream *writer = NULL;
    struct shmview_frame frame;
    (void)arg;
    OK(shmview_stream_open(client_connect(&d), "s", SHMVIEW_WRITE, &writer));
    for (;;) {
        child_pause(me);
        OK(shmview_stream_loan(writer, 0, &frame));
        child_tell(me, (int)frame.slot);
    }
}

/* Lets a child loan a frame, in that slot. */
static void let_it_loan(struct child *child, int slot)
{
    child_cue(child);
    child_hear(child, slot);
}

static void expect_death(struct shmview_stream *s, pid_t pid)
{
    struct shmview_frame frame;
    struct shmview_death death;
    ck_assert_int_eq(shmview_stream_take(s, SOON, &frame), SHMVIEW_WRITER_DIED);
    OK(shmview_stream_death(s, &death));
    ck_assert_int_eq((int)death.pid, pid);
}

/* Kills a child. Returns its pid, when the daemon has noticed the death. */
static pid_t bury(struct child *child)
{
    pid_t pid = child->pid;
    child_kill(child);
    expect_death(witness, pid);
    return pid;
}

/* --- Frames of the dead ---------------------------------------------------- */

static struct child last_writer;

static void publish_one(struct child *me, void *arg)
{
    struct shmview_stream *writer = NULL;
    (void)arg;
    OK(shmview_stream_open(client_connect(&d), "s", SHMVIEW_WRITE, &writer));
    child_pause(me);
    write_frame(writer, 1);
    child_tell(me, 0);
    child_pause(me);
}

static void let_it_publish_and_die(void)
{
    child_cue(&last_writer);
    child_hear(&last_writer, 0);
    read_frame(witness, 1);
    bury(&last_writer);
}

/* The writer publishes its last frame after the reader has looked for one, and dies before the
 * reader looks whether it lives. */
START_TEST(a_last_frame_comes_before_the_death)
{
    int (*takes[])(struct shmview_stream *, int64_t,
                   struct shmview_frame *) = {shmview_stream_take, shmview_stream_take_latest};
    struct shmview_frame frame;
    for (int i = 0; i < 2; i++) {
        open_readers(0);
        child_start(&last_writer, publish_one, NULL);
        pid_t pid = last_writer.pid;
        at(AT_STREAM_EMPTY, let_it_publish_and_die);
        OK(takes[i](reader, 0, &frame));
        ck_assert_int_eq(frame_number(&frame), 1);
        shmview_frame_release(&frame);
        expect_death(reader, pid);
        expect_none(reader);
        close_readers();
    }
}
END_TEST

/* --- Takeovers ----------------------------------------------------------- */

static void find_nothing(void)
{
    expect_none(reader);
}

/* The reader looks when another writer has taken over, and has not stored its mark. */
START_TEST(a_death_whose_mark_comes_late)
{
    uint32_t flags[] = {0, SHMVIEW_MANY_WRITERS};
    int steps[] = {AT_STREAM_ROLE, AT_STREAM_OWNED};
    struct child child;
    struct shmview_frame frame;
    for (int i = 0; i < 2; i++) {
        open_readers(flags[i]);
        child_start(&child, loan_frames, NULL);
        let_it_loan(&child, 1);
        pid_t pid = bury(&child);
        at(steps[i], find_nothing);
        OK(shmview_stream_loan(stream, SOON, &frame));
        ck_assert_int_eq(at_step, N_STEPS);
        expect_death(reader, pid);
        expect_none(reader);
        expect_none(witness);
        shmview_frame_discard(&frame);
        close_readers();
    }
}
END_TEST

/* --- Several places of one dead writer ----------------------------------- */

/* Two writers: the first one has loaned slots 1 and 3, the second one slot 2. */
static struct child writers[2];

static void open_writers(void)
{
    open_readers(SHMVIEW_MANY_WRITERS);
    for (int i = 0; i < 2; i++)
        child_start(&writers[i], loan_frames, NULL);
    let_it_loan(&writers[0], 1);
    let_it_loan(&writers[1], 2);
    let_it_loan(&writers[0], 3);
}

START_TEST(a_dead_writer_of_two_slots)
{
    open_writers();
    for (int i = 0; i < 2; i++) {
        expect_death(reader, bury(&writers[i]));
        expect_none(reader);
        expect_none(witness);
    }
    close_readers();
}
END_TEST

START_TEST(two_dead_writers_at_once)
{
    open_writers();
    pid_t pid = bury(&writers[0]), second = bury(&writers[1]);
    expect_death(reader, pid);
    expect_death(reader, second);
    expect_none(reader);
    close_readers();
}
END_TEST

static uint32_t count_deaths(void)
{
    struct shmview_stream_status status;
    OK(shmview_stream_query(stream, &status, NULL, 0, NULL, 0));
    return status.deaths;
}

START_TEST(a_dead_writer_with_several_heirs)
{
    struct shmview_frame frames[3];
    open_writers();
    for (int i = 0; i < 2; i++)
        expect_death(reader, bury(&writers[i]));
    expect_none(reader);
    ck_assert_uint_eq(count_deaths(), 0);
    for (int i = 0; i < 3; i++) { /* each of them stores a mark */
        OK(shmview_stream_loan(stream, 0, &frames[i]));
        ck_assert_int_eq((int)frames[i].slot, i + 1);
        expect_none(reader);
    }
    ck_assert_uint_eq(count_deaths(), 2);
    for (int i = 0; i < 3; i++)
        shmview_frame_discard(&frames[i]);
    close_readers();
}
END_TEST

/* Two slots name users of one slot of the lock, one of which came after the other. */
START_TEST(dead_users_of_one_slot_of_the_lock)
{
    struct shmview_frame frame;
    open_readers(SHMVIEW_MANY_WRITERS);
    unsigned char *base = shmview_data(shmview_stream_segment(stream));
    struct shmview_stream_header *header = (struct shmview_stream_header *)(void *)base;
    for (uint32_t f = 0; f < 2; f++) {
        struct shmview_stream_slot *slot =
            (void *)(base + header->slots_offset + f * header->slot_bytes);
        atomic_store((_Atomic uint32_t *)&slot->owner, (64 - f) << SHMVIEW_SLOT_BITS | 5);
    }
    for (int i = 0; i < 3; i++) { /* so that the reader looks at all slots */
        atomic_fetch_add((_Atomic uint32_t *)&header->deaths, 1);
        ck_assert_int_eq(shmview_stream_take(reader, 0, &frame),
                         i == 0 ? SHMVIEW_WRITER_DIED : -SHMVIEW_ERR_TIMED_OUT);
    }
    close_readers();
}
END_TEST

/* The generations of a slot of the lock have wrapped since a reader reported one of its users. */
START_TEST(a_dead_user_after_the_generations_wrapped)
{
    struct shmview_frame frame;
    open_readers(0);
    reader->reader.reported[5] = UINT32_C(0xffff0) << SHMVIEW_SLOT_BITS | 5;
    atomic_store((_Atomic uint32_t *)&stream->header->writer, 5u << SHMVIEW_SLOT_BITS | 5);
    atomic_fetch_add((_Atomic uint32_t *)&stream->header->deaths, 1);
    ck_assert_int_eq(shmview_stream_take(reader, 0, &frame), SHMVIEW_WRITER_DIED);
    expect_none(reader);
    close_readers();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_last_frame_comes_before_the_death),
        SUITE_TEST(a_death_whose_mark_comes_late),
        SUITE_TEST(a_dead_writer_of_two_slots),
        SUITE_TEST(two_dead_writers_at_once),
        SUITE_TEST(a_dead_writer_with_several_heirs),
        SUITE_TEST(dead_users_of_one_slot_of_the_lock),
        SUITE_TEST(a_dead_user_after_the_generations_wrapped),
        SUITE_END,
    };
    return suite_main("stream_notices", tests);
}
