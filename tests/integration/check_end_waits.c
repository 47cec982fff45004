/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT ends the daemon, which removes all segments; or the next daemon has lost the registry, or
 * the data. A client that waits for a lock, a change or a frame learns of it, because no daemon
 * would announce the death of the client for which it waits. A client that is inside stays alone
 * there. */
#include <stdio.h>
#include <unistd.h>

#include "streams.h"
#include "support/backing.h"

static struct shmview_segment *seg, *read_seg;
static struct shmview_stream *full; /* its reader takes nothing */

enum wait_kind {
    FOR_LOCK,
    FOR_SHARED_LOCK,
    FOR_READERS,
    FOR_CHANGE,
    FOR_PHASE,
    FOR_FRAME,
    FOR_SLOT,
    FOR_ANY,
    N_KINDS
};

static struct shmview_stream *open_with(const char *name, int access)
{
    struct shmview_stream *s = NULL;
    OK(shmview_stream_open(client_connect(&d), name, access, &s));
    return s;
}

static int wait_for_segment(struct child *me, enum wait_kind kind)
{
    struct shmview_segment *s =
        client_attach(client_connect(&d), kind == FOR_READERS ? "read" : "seg", SHMVIEW_WRITE);
    struct shmview_phase phase;
    uint32_t change;
    child_tell(me, 1);
    switch (kind) {
    case FOR_SHARED_LOCK:
        return shmview_lock_shared(s);
    case FOR_CHANGE:
        return shmview_wait_change(s, shmview_change(s), SHMVIEW_FOREVER, &change);
    case FOR_PHASE:
        return shmview_wait_phase(s, NULL, 0, SHMVIEW_FOREVER, &phase);
    default:
        return shmview_lock(s);
    }
}

static int wait_for_stream(struct child *me, enum wait_kind kind)
{
    struct shmview_stream *s =
        kind == FOR_SLOT ? open_with("full", SHMVIEW_WRITE) : open_with("s", SHMVIEW_READ);
    const struct shmview_wait entry = {.kind = SHMVIEW_WAIT_FRAME, .stream = s};
    struct shmview_frame frame;
    size_t index;
    child_tell(me, 1);
    switch (kind) {
    case FOR_SLOT:
        return shmview_stream_loan(s, SHMVIEW_FOREVER, &frame);
    case FOR_ANY:
        return shmview_wait_any(&entry, 1, SHMVIEW_FOREVER, &index);
    default:
        return shmview_stream_take(s, SHMVIEW_FOREVER, &frame);
    }
}

static void wait_for(struct child *me, void *kind)
{
    enum wait_kind k = *(enum wait_kind *)kind;
    if (k < FOR_FRAME)
        REFUSED(wait_for_segment(me, k), LOST, "the daemon has ended this attachment");
    else
        REFUSED(wait_for_stream(me, k), LOST, "the daemon has ended this attachment");
}

/* This process holds or shares each lock, and has an empty stream and one that is full. */
static void hold_all(void)
{
    struct shmview_stream_spec spec = spec_of(SHMVIEW_LOSSLESS, 2);
    struct shmview_stream *writer;
    open_stream(SHMVIEW_LOSSLESS, 2);
    seg = client_create(conn, "seg", 4096);
    read_seg = client_create(conn, "read", 4096);
    OK(shmview_stream_create(conn, "full", &spec, &writer));
    full = open_reader_of(conn, "full");
    for (int i = 0; i < 2; i++)
        write_frame(writer, i);
    OK(shmview_stream_close(writer));
    OK(shmview_lock(seg));
    OK(shmview_lock_shared(read_seg));
}

static void start_waiters(struct child child[N_KINDS])
{
    static enum wait_kind kind[N_KINDS];
    for (int i = 0; i < N_KINDS; i++) {
        kind[i] = (enum wait_kind)i;
        child_start(&child[i], wait_for, &kind[i]);
        child_hear(&child[i], 1);
        parties_await_sleep(child[i].pid);
    }
}

/* The waiters have left, and this process has both locks until it gives them back. */
static void expect_the_end(struct child child[N_KINDS])
{
    struct shmview_frame frame;
    for (int i = 0; i < N_KINDS; i++)
        child_wait(&child[i]);
    memset(shmview_data(seg), 1, shmview_size(seg));
    REFUSED(shmview_lock(seg), LOST, "");
    OK(shmview_unlock(seg));
    OK(shmview_unlock(read_seg));
    REFUSED(shmview_trylock(seg), LOST, "");
    REFUSED(shmview_trylock_shared(read_seg), LOST, "");
    REFUSED(shmview_stream_take(full, 0, &frame), LOST, "");
    ck_assert_int_eq(*(char *)shmview_data(seg), 1);
}

static void begin_again(void)
{
    OK(shmview_detach(seg));
    seg = client_create(conn, "seg", 4096);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    OK(shmview_detach(read_seg));
    OK(shmview_stream_close(full));
    close_stream();
}

START_TEST(every_wait_ends)
{
    struct child child[N_KINDS];
    hold_all();
    start_waiters(child);
    daemon_stop(&d);
    expect_the_end(child);
    daemon_restart(&d);
    begin_again();
}
END_TEST

START_TEST(registry_is_lost)
{
    struct child child[N_KINDS];
    char path[sizeof d.socket + 16];
    hold_all();
    start_waiters(child);
    daemon_kill(&d);
    snprintf(path, sizeof path, "%s.registry", d.socket);
    ck_assert_int_eq(unlink(path), 0);
    daemon_restart(&d);
    expect_the_end(child);
    begin_again();
}
END_TEST

START_TEST(data_is_lost)
{
    static const char *const names[] = {"seg", "read", "full", "s"};
    struct child child[N_KINDS];
    char path[300];
    if (backing_is_sealed())
        return;
    hold_all();
    start_waiters(child);
    daemon_kill(&d);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/dev/shm/shmview.%s/%s", d.instance, names[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
    daemon_restart(&d);
    expect_the_end(child);
    begin_again();
}
END_TEST

static void hold_and_die(struct child *me, void *unused)
{
    struct shmview_segment *s = client_attach(client_connect(&d), "seg", SHMVIEW_WRITE);
    (void)unused;
    OK(shmview_lock(s));
    child_tell(me, 1);
    child_pause(me);
}

/* Nobody is left that could announce the death of the holder. */
START_TEST(holder_is_killed_later)
{
    struct child holder, waiter;
    enum wait_kind kind = FOR_LOCK;
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "seg", 4096);
    child_start(&holder, hold_and_die, NULL);
    child_hear(&holder, 1);
    child_start(&waiter, wait_for, &kind);
    child_hear(&waiter, 1);
    parties_await(seg, SHMVIEW_WAITS, 1);
    daemon_stop(&d);
    child_kill(&holder);
    child_wait(&waiter);
    REFUSED(shmview_lock(seg), LOST, "");
    daemon_start(&d);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(every_wait_ends),
        SUITE_TEST(registry_is_lost),
        SUITE_TEST(data_is_lost),
        SUITE_TEST(holder_is_killed_later),
        SUITE_END,
    };
    return suite_main("end_waits", tests);
}
