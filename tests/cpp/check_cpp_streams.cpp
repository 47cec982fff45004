/* SPDX-License-Identifier: Apache-2.0 */
/* stream.hpp: frames give themselves back, move, and show typed arrays. Loops end with a reason,
 * and go on after it. Times of std::chrono become deadlines. */
#include "support.hpp"

#include <shmview/stream.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

extern "C" {
#include "support/await.h"
}

using namespace std::chrono_literals;
using shmview::deadline;
using shmview::frame;
using shmview::frames;

static_assert(!std::is_copy_constructible_v<frame> && !std::is_copy_assignable_v<frame>);
static_assert(std::is_nothrow_move_constructible_v<frame>);
static_assert(std::is_nothrow_move_assignable_v<frame>);
static_assert(!std::is_copy_constructible_v<shmview::stream>);
static_assert(std::is_nothrow_move_constructible_v<shmview::stream>);
static_assert(std::is_nothrow_move_assignable_v<shmview::stream>);

constexpr auto SOON = std::chrono::nanoseconds(AWAIT_NS);

static struct daemon d;

/* A connection, and a stream "s" whose frames are ten rows of two numbers, and a gain. */
struct world {
    shmview::connection conn;
    shmview::stream writer;

    explicit world(std::uint32_t mode, std::uint32_t n_slots, std::uint32_t n_stages = 1)
    {
        const std::array<std::int64_t, 2> shape{10, 2};
        std::array<shmview_view_spec, 2> views{};
        views[0].name = "numbers";
        views[0].format = "int32";
        views[0].ndim = 2;
        views[0].shape = shape.data();
        views[1].name = "gain";
        views[1].format = "float32";
        shmview_stream_spec spec{};
        spec.struct_bytes = sizeof spec;
        spec.mode = mode;
        spec.n_slots = n_slots;
        spec.n_stages = n_stages;
        spec.views = views.data();
        spec.n_views = views.size();
        daemon_start(&d);
        OK(shmview::connect(conn, d.socket));
        OK(shmview::create(conn, "s", spec, writer));
    }
    world(const world &) = delete;
    world &operator=(const world &) = delete;
    ~world()
    {
        OK(writer.close());
        OK(conn.close());
        daemon_stop(&d);
    }

    shmview::stream reader(const char *name = "s", int access = SHMVIEW_READ) const
    {
        shmview::stream made;
        OK(shmview::open(conn, name, access, made));
        OK(shmview_stream_join(made.get()));
        return made;
    }
};

/* Publishes a frame of one number. */
static std::uint64_t write(const shmview::stream &writer, std::int32_t number)
{
    frame loaned = writer.loan(SOON);
    ck_assert(loaned);
    auto numbers = loaned.contiguous<std::int32_t>("numbers");
    for (std::int32_t &x : *numbers)
        x = number;
    OK(loaned.publish());
    return loaned.sequence();
}

static std::int32_t number_of(const frame &taken)
{
    return (*taken.as<const std::int32_t, 2>("numbers"))(9, 1);
}

/* --- Deadlines ----------------------------------------------------------- */

START_TEST(times_become_deadlines)
{
    using std::chrono::steady_clock;
    ck_assert_int_eq(deadline(0).ns(), 0);
    ck_assert_int_eq(deadline(SHMVIEW_FOREVER).ns(), SHMVIEW_FOREVER);
    std::int64_t before = shmview_deadline(1500000000);
    std::int64_t made = deadline(1500ms).ns(), of_double = deadline(1.5s).ns();
    std::int64_t after = shmview_deadline(1500000000);
    ck_assert(before <= made && made <= of_double && of_double <= after);

    auto now = steady_clock::now(); /* its clock is that of the library */
    ck_assert(shmview_deadline(-1000000000) < deadline(now).ns());
    ck_assert(deadline(now).ns() <= shmview_deadline(0));
    ck_assert_int_eq(deadline(now + 1s).ns(), deadline(now).ns() + 1000000000);

    ck_assert_int_eq(deadline(steady_clock::time_point::max()).ns(), SHMVIEW_FOREVER);
    ck_assert_int_eq(deadline(std::chrono::nanoseconds::max()).ns(), SHMVIEW_FOREVER);
    ck_assert_int_eq(deadline(std::chrono::hours::max()).ns(), SHMVIEW_FOREVER);
    ck_assert_int_eq(deadline(std::chrono::duration<double>(INFINITY)).ns(), SHMVIEW_FOREVER);
    ck_assert_int_le(deadline(std::chrono::hours::min()).ns(), 0);
    ck_assert_int_le(deadline(-1s).ns(), shmview_deadline(0));
}
END_TEST

/* --- Frames -------------------------------------------------------------- */

START_TEST(a_loan_discards_itself)
{
    world w(SHMVIEW_LOSSLESS, 2);
    shmview::stream reader = w.reader();
    for (int i = 0; i < 10; i++) {
        frame one = w.writer.loan(0), two = w.writer.loan(0);
        ck_assert(one && two && one.result() == 0 && one.sequence() == 0);
        frame none = w.writer.loan(0);
        ck_assert(!none && none.result() == -SHMVIEW_ERR_TIMED_OUT);
    }
    ck_assert_int_eq(reader.take(0).result(), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_uint_eq(write(w.writer, 1), 1);
    ck_assert_int_eq(number_of(reader.take(0)), 1);
}
END_TEST

START_TEST(a_taken_frame_releases_itself)
{
    world w(SHMVIEW_LATEST, 2);
    shmview::stream reader = w.reader();
    for (std::int32_t i = 0; i < 10; i++) {
        write(w.writer, i);
        {
            frame taken = reader.take(0);
            ck_assert(taken && taken.is_intact() && number_of(taken) == i);
            OK(w.writer.loan(0).publish()); /* the other slot */
            ck_assert_int_eq(w.writer.loan(0).result(), -SHMVIEW_ERR_TIMED_OUT);
        }
        ck_assert(w.writer.loan(0));
        ck_assert(reader.take(0));
    }
}
END_TEST

START_TEST(frames_move)
{
    world w(SHMVIEW_LATEST, 4);
    shmview::stream reader = w.reader();
    write(w.writer, 1);
    write(w.writer, 2);
    frame none;
    ck_assert(!none && none.result() == -SHMVIEW_ERR_NOT_OWNER);
    frame a = reader.take(0), b = reader.take(0);
    frame c = std::move(a);
    ck_assert(!a && a.result() == -SHMVIEW_ERR_NOT_OWNER && c && number_of(c) == 1);
    c = std::move(b); /* releases the first frame */
    ck_assert(!b && number_of(c) == 2 && c.sequence() == 2);
    frame &self = c;
    c = std::move(self);
    ck_assert(c && number_of(c) == 2);
    write(w.writer, 3); /* the newest one keeps its slot */
    {
        frame held[2] = {w.writer.loan(0), w.writer.loan(0)};
        ck_assert(held[0] && held[1]);
        ck_assert_int_eq(w.writer.loan(0).result(), -SHMVIEW_ERR_TIMED_OUT);
        c.reset();
        c.reset();
        ck_assert(!c && w.writer.loan(0));
    }
    /* from a C call, and back */
    shmview_frame raw;
    OK(shmview_stream_loan(w.writer.get(), 0, &raw));
    frame owner(raw);
    ck_assert(owner && owner.get()->slot == raw.slot);
    OK(owner.publish());
}
END_TEST

START_TEST(publishing_ends_a_loan)
{
    world w(SHMVIEW_LOSSLESS, 4);
    frame outlives;
    {
        shmview::stream reader = w.reader(), other = w.reader("s", SHMVIEW_WRITE);
        frame loaned = w.writer.loan();
        loaned.get()->user_bytes = SHMVIEW_STREAM_USER_BYTES + 1;
        REFUSED(loaned.publish(), BOUNDS, "user bytes");
        ck_assert(loaned);
        loaned.get()->user_bytes = 0;
        OK(loaned.publish());
        ck_assert(!loaned && loaned.sequence() == 1);
        REFUSED(loaned.publish(), NOT_OWNER, "");
        ck_assert(reader.take(0).time() <= std::chrono::steady_clock::now());
        REFUSED(reader.take(0).publish(), NOT_OWNER, "");
        OK(w.writer.close()); /* gives the role back */
        ck_assert_uint_eq(write(other, 2), 2);
        outlives = other.loan(0);
        OK(outlives.publish());
        w.writer = std::move(other);
    }
}
END_TEST

START_TEST(a_kept_frame_releases_itself)
{
    world w(SHMVIEW_LATEST, 3);
    shmview::stream reader = w.reader();
    {
        frame kept = w.writer.loan(0);
        auto numbers = kept.contiguous<std::int32_t>("numbers");
        for (std::int32_t &x : *numbers)
            x = 1;
        OK(kept.publish_kept());
        ck_assert(kept && kept.sequence() == 1 && kept.is_intact());
        REFUSED(kept.publish_kept(), NOT_OWNER, "");
        ck_assert(!kept.set_user(1));
        ck_assert(!kept.contiguous<std::int32_t>("numbers")); /* it is read-only */
        ck_assert_int_eq(number_of(reader.take(0)), 1);
        for (std::int32_t i = 2; i < 10; i++)
            write(w.writer, i);
        ck_assert_int_eq(number_of(kept), 1);
        REFUSED(w.writer.close(), BUSY, "1 frames");
        frame loaned = w.writer.loan(0);
        ck_assert_int_eq(w.writer.loan(0).result(), -SHMVIEW_ERR_TIMED_OUT);
        frame moved = std::move(kept);
        ck_assert_int_eq(w.writer.loan(0).result(), -SHMVIEW_ERR_TIMED_OUT);
        moved.reset();
        ck_assert(w.writer.loan(0));
    }
    frame one = w.writer.loan(0), two = w.writer.loan(0);
    ck_assert(one && two); /* the third slot has the newest frame */
    two.get()->user_bytes = SHMVIEW_STREAM_USER_BYTES + 1;
    REFUSED(two.publish_kept(), BOUNDS, "user bytes");
    ck_assert(two && two.sequence() == 0);
}
END_TEST

START_TEST(views_have_types)
{
    world w(SHMVIEW_LOSSLESS, 2);
    shmview::stream reader = w.reader();
    frame loaned = w.writer.loan(0);
    auto numbers = loaned.as<std::int32_t, 2>("numbers");
    ck_assert(numbers && numbers->extent(0) == 10 && numbers->extent(1) == 2);
    (*numbers)(3, 1) = 42;
    (*loaned.as<float, 0>("gain"))() = 0.5f;
    ck_assert((!loaned.as<float, 2>("numbers")));
    ck_assert((!loaned.as<std::int32_t, 1>(0)));
    ck_assert((!loaned.as<std::int32_t, 2>("no such view")));
    ck_assert((!loaned.as<std::int32_t, 2>(2)));
    ck_assert(!loaned.contiguous<std::int32_t>(2));
    shmview_view view;
    REFUSED(loaned.view("other", view), NO_LAYOUT, "other");
    OK(loaned.set_length(0, 4));
    REFUSED(loaned.set_length(0, 11), BOUNDS, "");
    OK(loaned.publish());
    ck_assert((!loaned.as<const std::int32_t, 2>("numbers")));

    frame taken = reader.take(0);
    ck_assert((!taken.as<std::int32_t, 2>("numbers"))); /* it is read-only */
    ck_assert(!taken.contiguous<std::int32_t>("numbers"));
    auto seen = *taken.as<const std::int32_t, 2>(0);
    ck_assert(seen.extent(0) == 4 && seen(3, 1) == 42);
    ck_assert_uint_eq(taken.contiguous<const std::int32_t>("numbers")->size(), 8);
    ck_assert((*taken.as<const float, 0>(1u))() == 0.5f);
    OK(taken.view(std::size_t{1}, view));
    ck_assert_uint_eq(view.dtype, SHMVIEW_FLOAT32);
}
END_TEST

struct stamp {
    std::int32_t camera;
    float exposure;
};

START_TEST(values_for_the_user)
{
    world w(SHMVIEW_LOSSLESS, 2);
    shmview::stream reader = w.reader();
    frame loaned = w.writer.loan(0);
    ck_assert(!loaned.user<stamp>());
    ck_assert(loaned.set_user(stamp{3, 0.25f}));
    loaned.get()->time_ns = 1000;
    OK(loaned.publish());
    ck_assert(!loaned.set_user(1));
    frame taken = reader.take(0);
    std::optional<stamp> found = taken.user<stamp>();
    ck_assert(found && found->camera == 3 && found->exposure == 0.25f);
    ck_assert(!taken.user<std::int32_t>()); /* of another size */
    ck_assert(!taken.set_user(1));
    ck_assert(taken.time() == std::chrono::steady_clock::time_point(1us));
    taken.reset();
    ck_assert(!taken.user<stamp>());
}
END_TEST

START_TEST(the_latest_frame_and_what_was_missed)
{
    world w(SHMVIEW_LATEST, 4);
    shmview::stream reader = w.reader();
    for (std::int32_t i = 1; i <= 20; i++)
        write(w.writer, i);
    frame taken = reader.take_latest(0);
    ck_assert(taken && number_of(taken) == 20);
    ck_assert_uint_eq(taken.missed(), 19);
    ck_assert_int_eq(reader.take_latest(1ms).result(), -SHMVIEW_ERR_TIMED_OUT);
}
END_TEST

START_TEST(frames_are_passed_on)
{
    world w(SHMVIEW_LOSSLESS, 2, 2);
    shmview::stream first = w.reader("s", SHMVIEW_WRITE), second = w.reader("s:1");
    std::uint64_t sequence = 0;
    for (std::int32_t i = 1; i <= 5; i++) {
        write(w.writer, i);
        frame taken = first.take(0);
        OK(taken.pass(1, &sequence));
        ck_assert(taken && sequence == static_cast<std::uint64_t>(i));
        REFUSED(taken.pass(1), EXISTS, "");
        taken.reset();
        ck_assert_int_eq(number_of(second.take(0)), i);
    }
}
END_TEST

/* --- Streams ------------------------------------------------------------- */

START_TEST(streams_close_themselves)
{
    world w(SHMVIEW_LOSSLESS, 2);
    shmview::stream reader = w.reader();
    shmview_stream *raw = reader.get();
    shmview_stream_spec none{};
    none.struct_bytes = sizeof none;
    REFUSED(shmview::open(w.conn, "other", SHMVIEW_READ, reader), NOT_FOUND, "");
    REFUSED(shmview::create(w.conn, "other", none, reader), INVALID, "");
    ck_assert(reader.get() == raw);
    write(w.writer, 1);
    {
        frame taken = reader.take(0);
        REFUSED(reader.close(), BUSY, "1 frames");
        ck_assert(reader.get() == raw);
    }
    shmview::stream moved = std::move(reader);
    ck_assert(!reader && moved.get() == raw);
    write(w.writer, 2);
    write(w.writer, 3);
    ck_assert_int_eq(w.writer.loan(0).result(), -SHMVIEW_ERR_TIMED_OUT);
    moved.reset(); /* the writer waits for nobody any longer */
    write(w.writer, 4);
    OK(moved.close()); /* it owns nothing */
}
END_TEST

/* --- Loops --------------------------------------------------------------- */

START_TEST(a_loop_ends_with_the_stage)
{
    world w(SHMVIEW_LOSSLESS, 4);
    shmview::stream reader = w.reader();
    for (std::int32_t i = 0; i < 4; i++)
        write(w.writer, i);
    OK(shmview_stream_end(w.writer.get()));
    std::int32_t expected = 0;
    for (frame &taken : frames(reader)) {
        ck_assert_int_eq(number_of(taken), expected++);
        /* it holds one slot, and the frame before is released */
        ck_assert_int_eq(w.writer.loan(0).result(), expected > 1 ? 0 : -SHMVIEW_ERR_TIMED_OUT);
    }
    ck_assert_int_eq(expected, 4);

    frames again(reader, SOON);
    ck_assert_int_eq(again.result(), -SHMVIEW_ERR_NOT_OWNER); /* nothing was taken yet */
    for (frame &taken : again)
        ck_abort_msg("frame %d", number_of(taken));
    ck_assert(again.stream_ended() && again.result() == SHMVIEW_STREAM_ENDED);
}
END_TEST

START_TEST(a_loop_ends_in_time)
{
    world w(SHMVIEW_LOSSLESS, 4);
    shmview::stream reader = w.reader();
    frames all(reader, 1ms);
    for (int round = 0; round < 3; round++) {
        write(w.writer, 1);
        write(w.writer, 2);
        int n = 0;
        for (frame &taken : all)
            n += number_of(taken);
        ck_assert_int_eq(n, 3);
        ck_assert(all.result() == -SHMVIEW_ERR_TIMED_OUT && !all.stream_ended());
    }
}
END_TEST

START_TEST(a_frame_outlives_its_loop)
{
    world w(SHMVIEW_LOSSLESS, 4);
    shmview::stream reader = w.reader();
    frames all(reader, 1ms);
    frame kept;
    for (std::int32_t i = 1; i <= 3; i++)
        write(w.writer, i);
    for (frame &taken : all)
        if (number_of(taken) == 2)
            kept = std::move(taken);
    ck_assert(kept && number_of(kept) == 2);
    for (std::int32_t i = 4; i <= 6; i++)
        write(w.writer, i); /* three slots are free */
    ck_assert(kept.is_intact() && number_of(kept) == 2);
    for (frame &taken : all)
        if (number_of(taken) == 5)
            break; /* the next loop goes on from here */
    ck_assert_int_eq(number_of(*all.begin()), 6);
}
END_TEST

/* Notes how many frames the only reader holds while it waits, and ends the wait. */
struct look {
    shmview_stream *writer;
    std::uint32_t n_held;
};

static int count_held(void *arg)
{
    look *at = static_cast<look *>(arg);
    shmview_stream_status status;
    shmview_stream_reader_status reader;
    OK(shmview_stream_query(at->writer, &status, nullptr, 0, &reader, 1));
    ck_assert_uint_eq(status.n_readers, 1);
    at->n_held = reader.n_held;
    return 1;
}

START_TEST(a_loop_that_waits_holds_nothing)
{
    world w(SHMVIEW_LOSSLESS, 4);
    shmview::stream reader = w.reader();
    look at{w.writer.get(), 99};
    write(w.writer, 1);
    frames all(reader);
    shmview_on_wait(count_held, &at);
    for (frame &taken : all)
        ck_assert_int_eq(number_of(taken), 1);
    shmview_on_wait(nullptr, nullptr);
    ck_assert_int_eq(all.result(), -SHMVIEW_ERR_INTERRUPTED);
    ck_assert_uint_eq(at.n_held, 0);
}
END_TEST

static void publish_and_die(struct child *me, void *)
{
    shmview::connection conn(client_connect(&d));
    shmview::stream writer;
    OK(shmview::open(conn, "s", SHMVIEW_WRITE, writer));
    write(writer, 1);
    frame half = writer.loan(0);
    ck_assert(half);
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(a_loop_ends_with_the_writer)
{
    world w(SHMVIEW_LOSSLESS, 4);
    shmview::stream reader = w.reader();
    struct child child;
    child_start(&child, publish_and_die, nullptr);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    write(w.writer, 2); /* the next writer */
    OK(shmview_stream_end(w.writer.get()));

    int n = 0, deaths = 0;
    frames all(reader, SOON);
    do {
        for (frame &taken : all)
            n = 10 * n + number_of(taken);
        if (!all.writer_died())
            break;
        shmview_death death;
        OK(shmview_stream_death(reader.get(), &death));
        ck_assert_int_eq(static_cast<pid_t>(death.pid), pid);
        deaths++;
    } while (true);
    ck_assert_int_eq(n, 12);
    ck_assert_int_eq(deaths, 1);
    ck_assert(all.stream_ended());
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(times_become_deadlines),
        SUITE_TEST(a_loan_discards_itself),
        SUITE_TEST(a_taken_frame_releases_itself),
        SUITE_TEST(frames_move),
        SUITE_TEST(publishing_ends_a_loan),
        SUITE_TEST(a_kept_frame_releases_itself),
        SUITE_TEST(views_have_types),
        SUITE_TEST(values_for_the_user),
        SUITE_TEST(the_latest_frame_and_what_was_missed),
        SUITE_TEST(frames_are_passed_on),
        SUITE_TEST(streams_close_themselves),
        SUITE_TEST(a_loop_ends_with_the_stage),
        SUITE_TEST(a_loop_ends_in_time),
        SUITE_TEST(a_frame_outlives_its_loop),
        SUITE_TEST(a_loop_that_waits_holds_nothing),
        SUITE_TEST(a_loop_ends_with_the_writer),
        SUITE_END,
    };
    return suite_main("cpp_streams", tests);
}
