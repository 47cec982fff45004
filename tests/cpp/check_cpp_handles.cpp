/* SPDX-License-Identifier: Apache-2.0 */
/* shmview.hpp: handles and locks for a scope, on a segment of a real daemon. Handles move,
 * destructors release what they own, failures change nothing, and a lock reports the death of
 * its owner. */
#include "support.hpp"

#include <utility>

static struct daemon d;

static bool is_there(const shmview::connection &conn, const char *name)
{
    shmview::segment seg;
    return shmview::attach(conn, name, SHMVIEW_PEEK, seg) == 0;
}

/* --- Handles ------------------------------------------------------------- */

START_TEST(scopes_give_back)
{
    daemon_start(&d);
    {
        shmview::connection conn;
        ck_assert(!conn);
        OK(shmview::connect(conn, d.socket));
        ck_assert(conn);
        {
            shmview::segment seg;
            OK(shmview::create(conn, "one", 4096, seg));
            ck_assert(is_there(conn, "one"));
            ck_assert_uint_eq(shmview_size(seg.get()), 4096);
        }
        ck_assert(!is_there(conn, "one"));
        OK(shmview_ping(conn.get()));
    }
    daemon_stop(&d);
}
END_TEST

START_TEST(handles_move)
{
    daemon_start(&d);
    {
        shmview::connection conn;
        OK(shmview::connect(conn, d.socket));
        shmview::segment a, b;
        OK(shmview::create(conn, "a", 64, a));
        OK(shmview::create(conn, "b", 64, b));
        shmview_segment *raw = a.get();
        shmview::segment c = std::move(a);
        ck_assert(!a && c.get() == raw);
        b = std::move(c); /* closes the old b */
        ck_assert(b.get() == raw && !c);
        ck_assert(is_there(conn, "a") && !is_there(conn, "b"));
        shmview::segment &self = b;
        b = std::move(self);
        ck_assert(b.get() == raw);
        b.reset(raw);
        ck_assert(b.get() == raw && is_there(conn, "a"));
        ck_assert(b.release() == raw && !b);
        ck_assert(is_there(conn, "a"));
        shmview::segment again(raw);
        again.reset();
        ck_assert(!again && !is_there(conn, "a"));
        OK(again.close()); /* it owns nothing */
    }
    daemon_stop(&d);
}
END_TEST

START_TEST(what_fails_changes_nothing)
{
    daemon_start(&d);
    {
        shmview::connection conn;
        OK(shmview::connect(conn, d.socket));
        shmview_connection *before = conn.get();
        REFUSED(shmview::connect(conn, "/nowhere", SHMVIEW_CONNECT_NO_START), NO_DAEMON, "");
        ck_assert(conn.get() == before);
        shmview::segment seg;
        OK(shmview::create(conn, "a", 64, seg));
        shmview_segment *raw = seg.get();
        REFUSED(shmview::create(conn, "a", 64, seg), EXISTS, "");
        REFUSED(shmview::attach(conn, "b", SHMVIEW_READ, seg), NOT_FOUND, "");
        REFUSED(shmview::wrap(nullptr, 1, seg), INVALID, "");
        ck_assert(seg.get() == raw);
        REFUSED(conn.close(), BUSY, "1 ");
        ck_assert(conn.get() == before);
        OK(shmview_lock(raw));
        REFUSED(seg.close(), BUSY, "");
        ck_assert(seg.get() == raw);
        OK(shmview_unlock(raw));
        OK(seg.close());
        ck_assert(!seg);
        OK(conn.close());
        ck_assert(!conn);
    }
    daemon_stop(&d);
}
END_TEST

/* A destructor cannot refuse. It releases the lock, and the memory waits for exported buffers. */
START_TEST(destructors_do_not_fail)
{
    daemon_start(&d);
    {
        shmview::connection conn;
        OK(shmview::connect(conn, d.socket));
        shmview::segment other;
        {
            shmview::segment seg;
            OK(shmview::create(conn, "a", 64, seg));
            OK(shmview::attach(conn, "a", SHMVIEW_WRITE, other));
            OK(shmview_lock(seg.get()));
        }
        OK(shmview_trylock(other.get()));
        OK(shmview_unlock(other.get()));

        shmview_buffer buffer;
        shmview_view view = cast_view(other, "B");
        OK(shmview_buffer_get(&view, SHMVIEW_BUFFER_SIMPLE, &buffer));
        other.reset();
        static_cast<unsigned char *>(buffer.buf)[63] = 1; /* still mapped */
        ck_assert(is_there(conn, "a"));
        shmview_buffer_release(&buffer);
        ck_assert(!is_there(conn, "a"));
    }
    daemon_stop(&d);
}
END_TEST

static void count(void *n)
{
    ++*static_cast<int *>(n);
}

START_TEST(foreign_memory_is_released_once)
{
    int n = 0, memory[4] = {};
    {
        shmview::segment a, b;
        OK(shmview::wrap(memory, sizeof memory, a, 0, count, &n));
        b = std::move(a);
        ck_assert_int_eq(n, 0);
    }
    ck_assert_int_eq(n, 1);
}
END_TEST

/* --- The lock ------------------------------------------------------------ */

static void begin(shmview::connection &conn, shmview::segment &a, shmview::segment &b)
{
    daemon_start(&d);
    OK(shmview::connect(conn, d.socket));
    OK(shmview::create(conn, "s", 64, a));
    OK(shmview::attach(conn, "s", SHMVIEW_WRITE, b));
}

static void end(shmview::connection &conn, shmview::segment &a, shmview::segment &b)
{
    OK(a.close());
    OK(b.close());
    OK(conn.close());
    daemon_stop(&d);
}

START_TEST(lock_for_a_scope)
{
    shmview::connection conn;
    shmview::segment a, b;
    begin(conn, a, b);
    {
        shmview::scoped_lock lock(a);
        ck_assert(lock && lock.result() == 0 && !lock.owner_died());
        shmview::scoped_lock late(b, SHMVIEW_EXCLUSIVE, shmview_deadline(0));
        ck_assert(!late && late.result() == -SHMVIEW_ERR_TIMED_OUT);
        OK(late.unlock()); /* it owns no lock */
        OK(lock.unlock());
        ck_assert(!lock);
        REFUSED(shmview_unlock(a.get()), NOT_OWNER, "");
        shmview::scoped_lock free_now(b.get());
        ck_assert(free_now);
    }
    {
        shmview::scoped_lock one(a, SHMVIEW_SHARED), two(b, SHMVIEW_SHARED);
        ck_assert(one && two);
        REFUSED(shmview_trylock(a.get()), DEADLOCK, "");
    }
    shmview::scoped_lock wrong(a, 7);
    ck_assert(!wrong && wrong.result() == -SHMVIEW_ERR_INVALID);
    OK(shmview_trylock(b.get()));
    OK(shmview_unlock(b.get()));
    end(conn, a, b);
}
END_TEST

static void die_inside(struct child *me, void *arg)
{
    shmview::scoped_lock lock(static_cast<shmview_segment *>(arg));
    ck_assert(lock);
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(lock_tells_of_a_death)
{
    shmview::connection conn;
    shmview::segment a, b;
    struct child child;
    begin(conn, a, b);
    child_start(&child, die_inside, a.get());
    child_hear(&child, 1);
    child_kill(&child);
    {
        shmview::scoped_lock lock(a);
        ck_assert(lock && lock.owner_died());
        OK(lock.unlock_not_repaired());
        ck_assert(!lock);
        OK(lock.unlock_not_repaired()); /* it holds nothing */
    }
    ck_assert(shmview::scoped_lock(b).owner_died());
    ck_assert(!shmview::scoped_lock(a).owner_died());
    end(conn, a, b);
}
END_TEST

START_TEST(lock_of_a_view)
{
    shmview::connection conn;
    shmview::segment a, b;
    begin(conn, a, b);
    shmview_view_spec spec{};
    spec.name = "all";
    spec.format = "d";
    OK(shmview_define(a.get(), "one", &spec, 1));
    OK(shmview_define(a.get(), "two", &spec, 1));
    {
        shmview::scoped_lock lock(a);
        OK(shmview_switch(a.get(), "one"));
    }
    shmview_view view;
    OK(shmview_view_open(a.get(), "one", "all", &view));
    ck_assert(shmview::scoped_lock(view));
    ck_assert(shmview::scoped_lock(view, SHMVIEW_SHARED, shmview_deadline(0)));
    {
        shmview::scoped_lock lock(b);
        OK(shmview_switch(b.get(), "two"));
    }
    ck_assert_int_eq(shmview::scoped_lock(view).result(), -SHMVIEW_ERR_STALE);
    OK(shmview_trylock(b.get()));
    OK(shmview_unlock(b.get()));
    end(conn, a, b);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(scopes_give_back),
        SUITE_TEST(handles_move),
        SUITE_TEST(what_fails_changes_nothing),
        SUITE_TEST(destructors_do_not_fail),
        SUITE_TEST(foreign_memory_is_released_once),
        SUITE_TEST(lock_for_a_scope),
        SUITE_TEST(lock_tells_of_a_death),
        SUITE_TEST(lock_of_a_view),
        SUITE_END,
    };
    return suite_main("cpp_handles", tests);
}
