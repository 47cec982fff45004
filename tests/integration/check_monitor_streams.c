/* SPDX-License-Identifier: Apache-2.0 */
/* Events of streams: which ones state that a segment is a stream, and what a dead client did. */
#include <string.h>
#include <unistd.h>

#include <shmview/stream.h>

#include "integration/monitored.h"
#include "support/child.h"

static struct shmview_stream *stream;
static uint32_t victim; /* pid of the child */
static uint32_t n_slots = 5;

/* Creates the stream "s", and skips the events of that. */
static void begin_stream(uint32_t mode, uint32_t flags)
{
    const struct shmview_view_spec view = {.name = "v", .format = "int32"};
    const struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = mode,
        .n_slots = n_slots,
        .flags = flags,
        .views = &view,
        .n_views = 1,
    };
    begin();
    OK(shmview_stream_create(conn, "s", &spec, &stream));
    ck_assert_uint_eq(expect(SHMVIEW_EVENT_CREATED, "s")->stream, 0);
    ck_assert_uint_eq(expect(SHMVIEW_EVENT_ATTACHED, "s")->stream, 0); /* not yet */
}

static void end_stream(void)
{
    OK(shmview_stream_close(stream));
    end();
}

static void write_frames(struct shmview_stream *s, int n)
{
    struct shmview_frame frame;
    for (int i = 0; i < n; i++) {
        OK(shmview_stream_loan(s, 0, &frame));
        OK(shmview_frame_publish(&frame));
    }
}

/* Expects an event of the stream, and returns it. */
static const struct shmview_event *expect_stream(uint32_t kind, uint32_t mode)
{
    const struct shmview_event *e = expect(kind, "s");
    ck_assert_uint_eq(e->stream, mode);
    ck_assert_uint_eq(e->stream_slots, mode ? n_slots : 0);
    return e;
}

/* Expects the death of the last child as a client that did this. */
static void expect_death(uint32_t mode, uint32_t role, uint32_t held)
{
    const struct shmview_event *e = expect_stream(SHMVIEW_EVENT_DIED, mode);
    ck_assert_uint_eq(e->pid, victim);
    ck_assert_uint_eq(e->stream_role, role);
    ck_assert_uint_eq(e->held_frames, held);
}

START_TEST(attachments)
{
    static const uint32_t modes[] = {SHMVIEW_LOSSLESS, SHMVIEW_LATEST};
    static const int accesses[] = {SHMVIEW_PEEK, SHMVIEW_READ, SHMVIEW_WRITE};
    struct shmview_stream *other;
    for (int m = 0; m < 2; m++) {
        begin_stream(modes[m], 0);
        for (int i = 0; i < 3; i++) {
            OK(shmview_stream_open(conn, "s", accesses[i], &other));
            expect_stream(SHMVIEW_EVENT_ATTACHED, modes[m]);
            OK(shmview_stream_close(other));
            const struct shmview_event *e = expect_stream(SHMVIEW_EVENT_DETACHED, modes[m]);
            ck_assert(e->stream_role == 0 && e->held_frames == 0);
        }
        end_stream();
    }
}
END_TEST

/* --- Deaths -------------------------------------------------------------- */

/* What a child does before it dies. */
struct deed {
    int access, n_taken, n_published, n_loaned;
    bool joins, leaves, locks;
};

static void act(struct child *me, void *arg)
{
    const struct deed *deed = arg;
    struct shmview_stream *s;
    struct shmview_frame frame;
    OK(shmview_stream_open(client_connect(&d), "s", deed->access, &s));
    if (deed->joins)
        OK(shmview_stream_join(s));
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < deed->n_taken; i++)
        OK(shmview_stream_take(s, shmview_deadline(AWAIT_NS), &frame));
    write_frames(s, deed->n_published);
    for (int i = 0; i < deed->n_loaned; i++)
        OK(shmview_stream_loan(s, 0, &frame));
    if (deed->leaves)
        shmview_stream_leave(s);
    if (deed->locks)
        OK(shmview_lock(shmview_stream_segment(s)));
    child_tell(me, 2);
    child_pause(me);
}

static void start(struct child *child, struct deed *deed)
{
    child_start(child, act, deed);
    child_hear(child, 1);
    victim = (uint32_t)child->pid;
}

/* Lets the child act, and kills it then. */
static void finish(struct child *child)
{
    child_cue(child);
    child_hear(child, 2);
    child_kill(child);
}

START_TEST(deaths_of_readers)
{
    struct {
        struct deed deed;
        uint32_t role, held;
    } cases[] = {
        {{.access = SHMVIEW_READ}, 0, 0}, /* it has not joined */
        {{.access = SHMVIEW_READ, .joins = true}, SHMVIEW_STREAM_READER, 0},
        {{.access = SHMVIEW_READ, .joins = true, .n_taken = 3}, SHMVIEW_STREAM_READER, 3},
        {{.access = SHMVIEW_READ, .joins = true, .leaves = true}, 0, 0},
        {{.access = SHMVIEW_READ, .joins = true, .n_taken = 2, .leaves = true},
         SHMVIEW_STREAM_READER,
         2},
        {{.access = SHMVIEW_PEEK, .joins = true, .n_taken = 1}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child;
        begin_stream(SHMVIEW_LATEST, 0);
        start(&child, &cases[i].deed);
        expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LATEST);
        write_frames(stream, 3);
        finish(&child);
        expect_death(SHMVIEW_LATEST, cases[i].role, cases[i].held);
        end_stream();
    }
}
END_TEST

START_TEST(deaths_of_writers)
{
    const uint32_t writer = SHMVIEW_STREAM_WRITER, reader = SHMVIEW_STREAM_READER;
    struct {
        struct deed deed;
        uint32_t flags, role, held;
    } cases[] = {
        {{.access = SHMVIEW_WRITE}, 0, 0, 0}, /* it has not written */
        {{.access = SHMVIEW_WRITE, .n_published = 1}, 0, writer, 0},
        {{.access = SHMVIEW_WRITE, .n_loaned = 1}, 0, writer, 0},
        {{.access = SHMVIEW_WRITE, .joins = true, .n_published = 1}, 0, writer | reader, 0},
        {{.access = SHMVIEW_WRITE, .n_published = 1}, SHMVIEW_MANY_WRITERS, 0, 0},
        {{.access = SHMVIEW_WRITE, .n_loaned = 1}, SHMVIEW_MANY_WRITERS, writer, 0},
        {{.access = SHMVIEW_WRITE, .n_loaned = 5}, SHMVIEW_MANY_WRITERS, writer, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child;
        begin_stream(SHMVIEW_LOSSLESS, cases[i].flags);
        start(&child, &cases[i].deed);
        expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LOSSLESS);
        finish(&child);
        expect_death(SHMVIEW_LOSSLESS, cases[i].role, cases[i].held);
        write_frames(stream, 1); /* another writer takes over, and its death is its own */
        end_stream();
    }
}
END_TEST

/* The daemon reads the words of so many slots in several pieces. */
START_TEST(a_loan_among_many_slots)
{
    struct shmview_frame frames[SHMVIEW_STREAM_SLOTS_MAX];
    struct deed deed = {.access = SHMVIEW_WRITE, .n_loaned = 1};
    n_slots = SHMVIEW_STREAM_SLOTS_MAX;
    for (uint32_t n = 0; n < n_slots; n += 73) {
        struct child child;
        begin_stream(SHMVIEW_LOSSLESS, SHMVIEW_MANY_WRITERS);
        for (uint32_t i = 0; i < n; i++)
            OK(shmview_stream_loan(stream, 0, &frames[i]));
        start(&child, &deed);
        expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LOSSLESS);
        finish(&child);
        expect_death(SHMVIEW_LOSSLESS, SHMVIEW_STREAM_WRITER, 0);
        for (uint32_t i = 0; i < n; i++)
            shmview_frame_discard(&frames[i]);
        end_stream();
    }
}
END_TEST

START_TEST(the_owner_of_the_lock)
{
    struct child child;
    struct deed deed = {.access = SHMVIEW_READ, .joins = true, .n_taken = 1, .locks = true};
    begin_stream(SHMVIEW_LATEST, 0);
    start(&child, &deed);
    expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LATEST);
    write_frames(stream, 1);
    finish(&child);
    expect_death(SHMVIEW_LATEST, SHMVIEW_STREAM_READER, 1);
    const struct shmview_event *e = expect_stream(SHMVIEW_EVENT_OWNER_DIED, SHMVIEW_LATEST);
    ck_assert(e->stream_role == SHMVIEW_STREAM_READER && e->held_frames == 1);
    end_stream();
}
END_TEST

START_TEST(a_death_while_no_daemon_runs)
{
    struct child child;
    struct deed deed = {.access = SHMVIEW_READ, .joins = true, .n_taken = 1};
    begin_stream(SHMVIEW_LATEST, 0);
    start(&child, &deed);
    expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LATEST);
    write_frames(stream, 1);
    daemon_kill(&d);
    finish(&child);
    daemon_restart(&d);
    expect(SHMVIEW_EVENT_SUBSCRIBED, "");
    expect_death(SHMVIEW_LATEST, SHMVIEW_STREAM_READER, 1);
    end_stream();
}
END_TEST

/* --- What is no stream --------------------------------------------------- */

START_TEST(segments_that_are_no_streams)
{
    const struct shmview_view_spec view = {.name = "v", .format = "int32"};
    begin();
    struct shmview_segment *a = client_create(conn, "a", 65536), *other;
    OK(shmview_define(a, "frame", &view, 1)); /* such a layout does not make a stream */
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    other = client_attach(conn, "a", SHMVIEW_READ);
    ck_assert_uint_eq(expect(SHMVIEW_EVENT_ATTACHED, "a")->stream, 0);
    OK(shmview_detach(other));
    ck_assert_uint_eq(expect(SHMVIEW_EVENT_DETACHED, "a")->stream, 0);
    OK(shmview_detach(a));
    end();
}
END_TEST

START_TEST(a_damaged_header)
{
    struct child child;
    struct deed deed = {.access = SHMVIEW_WRITE, .n_loaned = 1};
    begin_stream(SHMVIEW_LATEST, SHMVIEW_MANY_WRITERS);
    start(&child, &deed);
    expect_stream(SHMVIEW_EVENT_ATTACHED, SHMVIEW_LATEST);
    child_cue(&child);
    child_hear(&child, 2);
    struct shmview_stream_header *header = shmview_data(shmview_stream_segment(stream));
    header->slots_offset = UINT64_MAX - 7;
    child_kill(&child);
    expect_death(0, 0, 0);
    end_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(attachments),
        SUITE_TEST(deaths_of_readers),
        SUITE_TEST(deaths_of_writers),
        SUITE_TEST(a_loan_among_many_slots),
        SUITE_TEST(the_owner_of_the_lock),
        SUITE_TEST(a_death_while_no_daemon_runs),
        SUITE_TEST(segments_that_are_no_streams),
        SUITE_TEST(a_damaged_header),
        SUITE_END,
    };
    return suite_main("monitor_streams", tests);
}
