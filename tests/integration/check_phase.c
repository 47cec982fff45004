/* SPDX-License-Identifier: Apache-2.0 */
/* Phases: which layout is current, and views that know when theirs is over. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/raw.h"
#include "support/suite.h"

#define MS 1000000

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void define(struct shmview_segment *segment, const char *layout, const char *view,
                   const char *format)
{
    static const int64_t shape[] = {4};
    const struct shmview_view_spec spec = {
        .name = view, .format = format, .ndim = 1, .shape = shape};
    OK(shmview_define(segment, layout, &spec, 1));
}

/* Two layouts of the same bytes: "floats" with A, "ints" with D. */
static void open_segment(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    define(seg, "floats", "A", "float32");
    define(seg, "ints", "D", "int32");
}

static void close_segment(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void switch_to(struct shmview_segment *segment, const char *layout)
{
    OK(shmview_lock(segment));
    OK(shmview_switch(segment, layout));
    OK(shmview_unlock(segment));
}

static struct shmview_view open_view(struct shmview_segment *segment, const char *layout,
                                     const char *view)
{
    struct shmview_view v;
    OK(shmview_view_open(segment, layout, view, &v));
    return v;
}

static void expect_phase(struct shmview_segment *segment, uint32_t generation, const char *name)
{
    struct shmview_phase phase;
    OK(shmview_phase_get(segment, &phase));
    ck_assert_uint_eq(phase.generation, generation);
    ck_assert_str_eq(phase.name, name);
    for (uint32_t i = 0; generation && i < 2; i++)
        if (strcmp(name, i ? "ints" : "floats") == 0)
            ck_assert_uint_eq(phase.layout, i);
}

/* --- Switching ----------------------------------------------------------- */

START_TEST(each_switch_is_a_phase)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    expect_phase(seg, 0, "");
    expect_phase(reader, 0, "");
    switch_to(seg, "ints");
    expect_phase(seg, 1, "ints");
    expect_phase(reader, 1, "ints");
    switch_to(seg, "floats");
    switch_to(seg, "floats"); /* to where it is: a phase of its own */
    expect_phase(reader, 3, "floats");
    OK(shmview_lock(seg));
    OK(shmview_lock_shared(seg));
    OK(shmview_switch(seg, "ints")); /* nested */
    expect_phase(seg, 4, "ints");
    OK(shmview_switch(seg, "floats"));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    expect_phase(reader, 5, "floats");
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(who_may_switch)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    switch_to(seg, "floats");
    REFUSED(shmview_switch(seg, "ints"), NOT_OWNER, "lock of 's'");
    OK(shmview_lock_shared(seg));
    REFUSED(shmview_switch(seg, "ints"), NOT_OWNER, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(reader));
    REFUSED(shmview_switch(seg, "ints"), NOT_OWNER, "");
    REFUSED(shmview_switch(reader, "ints"), READ_ONLY, "'s'");
    OK(shmview_unlock(reader));
    OK(shmview_lock(seg));
    REFUSED(shmview_switch(seg, "doubles"), NO_LAYOUT, "'s' has no layout 'doubles'");
    OK(shmview_unlock(seg));
    expect_phase(seg, 1, "floats");
    ck_assert_uint_eq(shmview_change(seg), 1);
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(no_lock)
{
    struct shmview_phase phase = {.generation = 77};
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 100, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    define(bare, "l", "A", "b");
    REFUSED(shmview_phase_get(bare, &phase), NO_LOCK, "'bare'");
    REFUSED(shmview_switch(bare, "l"), NO_LOCK, "");
    REFUSED(shmview_wait_phase(bare, NULL, 0, 0, &phase), NO_LOCK, "");
    REFUSED(shmview_phase_get(peek, &phase), NO_LOCK, "peek");
    ck_assert_uint_eq(phase.generation, 77);
    struct shmview_view views[] = {open_view(bare, "l", "A"), open_view(peek, "floats", "A")};
    switch_to(seg, "ints");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(shmview_view_is_stale(&views[i]), 0); /* nobody can tell */
        REFUSED(shmview_view_lock(&views[i], SHMVIEW_SHARED, SHMVIEW_FOREVER), NO_LOCK, "");
    }
    OK(shmview_detach(bare));
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

/* --- Views --------------------------------------------------------------- */

START_TEST(views_of_other_phases_are_stale)
{
    open_segment();
    struct shmview_view before = open_view(seg, "floats", "A");
    ck_assert_int_eq(shmview_view_is_stale(&before), 0); /* no phase yet */
    switch_to(seg, "floats");
    ck_assert_int_eq(shmview_view_is_stale(&before), 1);
    struct shmview_view a = open_view(seg, "floats", "A"), early = open_view(seg, "ints", "D");
    ck_assert_int_eq(shmview_view_is_stale(&a), 0);
    ck_assert_int_eq(shmview_view_is_stale(&early), 1); /* that phase has not come */
    switch_to(seg, "ints");
    ck_assert_int_eq(shmview_view_is_stale(&a), 1);
    struct shmview_view copy = open_view(seg, "ints", "D");
    ck_assert_int_eq(shmview_view_is_stale(&copy), 0);
    switch_to(seg, "floats"); /* the same layout again is another phase */
    ck_assert_int_eq(shmview_view_is_stale(&a), 1);
    ck_assert_int_eq(shmview_view_is_stale(&copy), 1);
    copy = open_view(seg, "floats", "A");
    ck_assert_int_eq(shmview_view_is_stale(&copy), 0);
    close_segment();
}
END_TEST

START_TEST(cast_views_are_never_stale)
{
    const struct shmview_view_spec spec = {.format = "d"};
    struct shmview_view cast, made;
    open_segment();
    switch_to(seg, "floats");
    OK(shmview_view_cast(seg, "int16", 0, SHMVIEW_REST, &cast));
    OK(shmview_view_make(seg, &spec, &made));
    switch_to(seg, "ints");
    ck_assert(!shmview_view_is_stale(&cast) && !shmview_view_is_stale(&made));
    OK(shmview_view_lock(&cast, SHMVIEW_EXCLUSIVE, SHMVIEW_FOREVER));
    OK(shmview_view_lock(&made, SHMVIEW_SHARED, SHMVIEW_FOREVER));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(view_lock_takes_the_lock)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    switch_to(seg, "floats");
    struct shmview_view v = open_view(seg, "floats", "A");
    OK(shmview_view_lock(&v, SHMVIEW_EXCLUSIVE, 0));
    REFUSED(shmview_trylock_shared(other), TIMED_OUT, "");
    OK(shmview_view_lock(&v, SHMVIEW_SHARED, 0)); /* nested */
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_view_lock(&v, SHMVIEW_SHARED, SHMVIEW_FOREVER));
    OK(shmview_trylock_shared(other));
    REFUSED(shmview_view_lock(&v, SHMVIEW_EXCLUSIVE, 0), DEADLOCK, "");
    OK(shmview_unlock(seg));
    REFUSED(shmview_view_lock(&v, SHMVIEW_EXCLUSIVE, shmview_deadline(10 * MS)), TIMED_OUT, "");
    OK(shmview_unlock(other));
    REFUSED(shmview_view_lock(&v, 0, SHMVIEW_FOREVER), INVALID, "mode 0");
    REFUSED(shmview_view_lock(&v, 3, SHMVIEW_FOREVER), INVALID, "mode 3");
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(stale_view_locks_nothing)
{
    static const int modes[] = {SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED};
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    switch_to(seg, "floats");
    struct shmview_view v = open_view(seg, "floats", "A");
    switch_to(seg, "ints");
    for (int i = 0; i < 2; i++) {
        REFUSED(shmview_view_lock(&v, modes[i], SHMVIEW_FOREVER), STALE,
                "of phase 1, 's' is in phase 2");
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
        OK(shmview_trylock(other));
        REFUSED(shmview_view_lock(&v, modes[i], 0), TIMED_OUT, ""); /* cannot tell yet */
        OK(shmview_unlock(other));
        OK(shmview_lock(seg));
        REFUSED(shmview_view_lock(&v, modes[i], 0), STALE, "");
        REFUSED(shmview_trylock(other), TIMED_OUT, ""); /* the lock is still held */
        OK(shmview_unlock(seg));
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    }
    OK(shmview_lock_shared(seg));
    REFUSED(shmview_view_lock(&v, SHMVIEW_SHARED, 0), STALE, "");
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* --- Waiting ------------------------------------------------------------- */

START_TEST(what_has_come_is_not_waited_for)
{
    struct shmview_phase phase;
    open_segment();
    switch_to(seg, "floats");
    switch_to(seg, "ints");
    OK(shmview_wait_phase(seg, NULL, 0, SHMVIEW_FOREVER, &phase));
    ck_assert_uint_eq(phase.generation, 2);
    ck_assert_uint_eq(phase.layout, 1);
    ck_assert_str_eq(phase.name, "ints");
    OK(shmview_wait_phase(seg, "ints", 1, 0, &phase)); /* a deadline that passed tries */
    OK(shmview_wait_phase(seg, NULL, 1, -5, &phase));
    ck_assert_uint_eq(phase.generation, 2);
    close_segment();
}
END_TEST

START_TEST(what_does_not_come)
{
    struct shmview_phase phase = {.generation = 77};
    open_segment();
    int64_t before = await_now_ns();
    REFUSED(shmview_wait_phase(seg, NULL, 0, shmview_deadline(20 * MS), &phase), TIMED_OUT,
            "'s' has not switched to another phase");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    switch_to(seg, "floats");
    before = await_now_ns(); /* longer than one park */
    REFUSED(shmview_wait_phase(seg, "ints", 0, shmview_deadline(150 * MS), &phase), TIMED_OUT,
            "layout ints");
    ck_assert_int_ge(await_now_ns() - before, 150 * MS);
    REFUSED(shmview_wait_phase(seg, "floats", 1, 0, &phase), TIMED_OUT, "");
    REFUSED(shmview_wait_phase(seg, NULL, 1, -5, &phase), TIMED_OUT, "");
    REFUSED(shmview_wait_phase(seg, "doubles", 0, SHMVIEW_FOREVER, &phase), NO_LAYOUT,
            "'s' has no layout 'doubles'");
    ck_assert_uint_eq(phase.generation, 77);
    close_segment();
}
END_TEST

/* --- Layouts that came later --------------------------------------------- */

START_TEST(layouts_defined_after_the_attachment)
{
    struct shmview_phase phase;
    open_segment();
    struct shmview_segment *old = client_attach(conn, "s", SHMVIEW_READ);
    struct shmview_segment *older = client_attach(conn, "s", SHMVIEW_WRITE);
    define(seg, "shorts", "S", "int16");
    OK(shmview_lock(older));
    OK(shmview_switch(older, "shorts"));
    OK(shmview_unlock(older));
    OK(shmview_phase_get(old, &phase));
    ck_assert_uint_eq(phase.layout, 2);
    ck_assert_str_eq(phase.name, "shorts");
    define(older, "bytes", "B", "uint8");
    OK(shmview_wait_phase(seg, "shorts", 0, SHMVIEW_FOREVER, &phase));
    REFUSED(shmview_wait_phase(old, "bytes", 0, 0, &phase), TIMED_OUT, "layout bytes");
    OK(shmview_lock(seg));
    OK(shmview_switch(seg, "bytes"));
    OK(shmview_unlock(seg));
    struct shmview_view v = open_view(old, "bytes", "B");
    ck_assert_int_eq(shmview_view_is_stale(&v), 0);
    ck_assert_uint_eq(v.generation, 2);
    OK(shmview_detach(old));
    OK(shmview_detach(older));
    close_segment();
}
END_TEST

START_TEST(known_layouts_without_the_daemon)
{
    struct shmview_phase phase;
    open_segment();
    struct shmview_segment *old = client_attach(conn, "s", SHMVIEW_READ);
    define(seg, "shorts", "S", "int16");
    open_view(seg, "shorts", "S"); /* the handle knows it by now */
    switch_to(seg, "shorts");
    daemon_kill(&d);
    REFUSED(shmview_phase_get(old, &phase), DISCONNECTED, "");
    expect_phase(seg, 1, "shorts");
    switch_to(seg, "ints");
    expect_phase(old, 2, "ints");
    struct shmview_view v = open_view(old, "ints", "D");
    ck_assert_int_eq(shmview_view_is_stale(&v), 0);
    OK(shmview_wait_phase(old, "ints", 1, SHMVIEW_FOREVER, &phase));
    OK(shmview_lock(seg));
    REFUSED(shmview_switch(seg, "doubles"), NO_LAYOUT, "segment 's' has no layout 'doubles'");
    OK(shmview_unlock(seg));
    expect_phase(seg, 2, "ints");
    daemon_restart(&d);
    OK(shmview_detach(old));
    close_segment();
}
END_TEST

/* The handle has never heard of the layout: it finds it in the control object. */
START_TEST(switch_to_a_new_layout_without_the_daemon)
{
    struct shmview_phase phase;
    open_segment();
    struct shmview_segment *old = client_attach(conn, "s", SHMVIEW_WRITE);
    define(seg, "shorts", "S", "int16");
    daemon_kill(&d);
    switch_to(old, "shorts");
    daemon_restart(&d);
    OK(shmview_phase_get(old, &phase));
    ck_assert_uint_eq(phase.layout, 2);
    ck_assert_str_eq(phase.name, "shorts");
    define(seg, "bytes", "B", "uint8"); /* by the daemon that has taken the segment over */
    daemon_kill(&d);
    switch_to(old, "bytes");
    switch_to(old, "ints");
    daemon_restart(&d);
    OK(shmview_detach(old));
    close_segment();
}
END_TEST

/* --- The phase word ------------------------------------------------------ */

static struct shmview_control *map_control(struct raw *raw)
{
    raw_connect(raw, d.socket);
    json_decref(raw_call(raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw->n_fds, 3);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw->fds[1], 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

static void store_phase(struct shmview_control *c, uint32_t layout, uint32_t generation)
{
    atomic_store((_Atomic uint64_t *)&c->phase, (uint64_t)layout << 32 | generation);
}

START_TEST(generation_wraps_to_one)
{
    struct shmview_phase phase;
    struct raw raw;
    open_segment();
    struct shmview_control *c = map_control(&raw);
    store_phase(c, 1, UINT32_MAX);
    struct shmview_view v = open_view(seg, "floats", "A");
    ck_assert_int_eq(shmview_view_is_stale(&v), 0);
    REFUSED(shmview_wait_phase(seg, NULL, UINT32_MAX, 0, &phase), TIMED_OUT, "");
    switch_to(seg, "floats");
    expect_phase(seg, 1, "floats");
    ck_assert_int_eq(shmview_view_is_stale(&v), 1);
    OK(shmview_wait_phase(seg, NULL, UINT32_MAX, 0, &phase));
    munmap(c, 4096);
    raw_close(&raw);
    close_segment();
}
END_TEST

/* No phase has generation 0: whatever came is past it, however long ago. */
START_TEST(every_phase_is_past_zero)
{
    static const uint32_t generations[] = {1, 0x7fffffff, 0x80000000, 0x80000001, UINT32_MAX};
    struct shmview_phase phase;
    struct raw raw;
    open_segment();
    struct shmview_control *c = map_control(&raw);
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        store_phase(c, 1, generations[i]);
        OK(shmview_wait_phase(seg, "floats", 0, 0, &phase));
        ck_assert_uint_eq(phase.generation, generations[i]);
    }
    munmap(c, 4096);
    raw_close(&raw);
    close_segment();
}
END_TEST

START_TEST(rubbish_heals_with_the_next_switch)
{
    static const uint32_t layouts[] = {0, 3, 65, 255, 0x7fffffff, UINT32_MAX};
    struct shmview_phase phase = {.generation = 77};
    struct shmview_view bad, cast;
    struct raw raw;
    open_segment();
    struct shmview_control *c = map_control(&raw);
    OK(shmview_view_cast(seg, "b", 0, SHMVIEW_REST, &cast));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        store_phase(c, layouts[i], 5);
        REFUSED(shmview_phase_get(seg, &phase), NO_LAYOUT, "its phase is rubbish");
        REFUSED(shmview_wait_phase(seg, NULL, 0, 0, &phase), NO_LAYOUT, "");
        REFUSED(shmview_wait_phase(seg, "ints", 0, 0, &phase), TIMED_OUT, "");
        ck_assert_uint_eq(phase.generation, 77);
        bad = open_view(seg, "floats", "A");
        ck_assert_int_eq(shmview_view_is_stale(&bad), 1);
        ck_assert_int_eq(shmview_view_is_stale(&cast), 0);
        REFUSED(shmview_view_lock(&bad, SHMVIEW_SHARED, 0), STALE, "");
        switch_to(seg, "floats");
        expect_phase(seg, 6, "floats");
        phase.generation = 77;
    }
    store_phase(c, 9, 0); /* half a word is no phase */
    OK(shmview_phase_get(seg, &phase));
    ck_assert_uint_eq(phase.generation, 0);
    ck_assert_str_eq(phase.name, "");
    munmap(c, 4096);
    raw_close(&raw);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(each_switch_is_a_phase),
        SUITE_TEST(who_may_switch),
        SUITE_TEST(no_lock),
        SUITE_TEST(views_of_other_phases_are_stale),
        SUITE_TEST(cast_views_are_never_stale),
        SUITE_TEST(view_lock_takes_the_lock),
        SUITE_TEST(stale_view_locks_nothing),
        SUITE_TEST(what_has_come_is_not_waited_for),
        SUITE_TEST(what_does_not_come),
        SUITE_TEST(layouts_defined_after_the_attachment),
        SUITE_TEST(known_layouts_without_the_daemon),
        SUITE_TEST(switch_to_a_new_layout_without_the_daemon),
        SUITE_TEST(generation_wraps_to_one),
        SUITE_TEST(every_phase_is_past_zero),
        SUITE_TEST(rubbish_heals_with_the_next_switch),
        SUITE_END,
    };
    return suite_main("phase", tests);
}
