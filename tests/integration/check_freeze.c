/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen segments: nobody can change their bytes, and a refusal names the process that could. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <shmview/stats.h>
#include <shmview/stream.h>

#include "freezing.h"

/* --- Bytes ---------------------------------------------------------------- */

struct place {
    struct shmview_segment *segment;
    size_t at;
};

static void write_there(struct child *me, void *arg)
{
    const struct place *p = arg;
    (void)me;
    signal(SIGBUS, SIG_DFL); /* a sanitizer would handle it */
    signal(SIGSEGV, SIG_DFL);
    ((volatile char *)shmview_data(p->segment))[p->at] = 'c';
}

static void read_there(struct child *me, void *arg)
{
    const struct place *p = arg;
    (void)me;
    signal(SIGBUS, SIG_DFL); /* a sanitizer would handle it */
    signal(SIGSEGV, SIG_DFL);
    (void)((volatile char *)shmview_data(p->segment))[p->at];
}

/* A process that accesses the byte must end by the signal. */
static void traps(void (*run)(struct child *me, void *arg), struct shmview_segment *segment,
                  size_t at, int signal)
{
    struct child child;
    struct place place = {segment, at};
    child_start(&child, run, &place);
    child_wait_signal(&child, signal);
}

START_TEST(nobody_can_change_the_bytes)
{
    struct shmview_view v;
    struct shmview_segment *none, *other;
    begin();
    struct shmview_segment *s = make("w");
    char *data = shmview_data(s);
    ck_assert_int_eq(shmview_is_frozen(s), 0);
    ck_assert_uint_eq(frozen("w"), 0);
    OK(shmview_define(s, "l", NULL, 0));
    OK(shmview_freeze(s, 0));
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    ck_assert_ptr_eq(shmview_data(s), data);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_int_eq(data[i], 'a');
    traps(write_there, s, 0, SIGSEGV);
    traps(read_there, s, PAGES, SIGBUS); /* the page after the last one */
    ck_assert_int_eq(mprotect(data, 4096, PROT_READ | PROT_WRITE), -1);
    ck_assert_int_eq(errno, EACCES);
    OK(shmview_view_cast(s, "uint8", 0, SHMVIEW_REST, &v));
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "'w' is frozen");
    for (int access = SHMVIEW_PEEK; access < SHMVIEW_WRITE; access++) {
        other = client_attach(conn, "w", access);
        ck_assert_int_eq(shmview_is_frozen(other), 1);
        ck_assert_int_eq(*(char *)shmview_data(other), 'a');
        OK(shmview_detach(other));
    }
    OK(shmview_lock(s));
    REFUSED(shmview_switch(s, "l"), READ_ONLY, "access read");
    OK(shmview_unlock(s));
    OK(shmview_lock_shared(s));
    OK(shmview_unlock(s));
    OK(shmview_freeze(s, 0)); /* it is so already */
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    drop(s, "w");
    end();
}
END_TEST

/* A handle that was attached before learns of it. */
START_TEST(a_reader_learns_of_it)
{
    begin();
    struct shmview_segment *s = make("w"), *again;
    struct shmview_segment *reader = client_attach(conn, "w", SHMVIEW_READ);
    struct shmview_segment *peeker = client_attach(conn, "w", SHMVIEW_PEEK);
    ck_assert_int_eq(shmview_is_frozen(reader), 0);
    OK(shmview_freeze(s, 0));
    ck_assert_int_eq(shmview_is_frozen(reader), 1); /* as this process has done it */
    ck_assert_int_eq(shmview_is_frozen(peeker), 1);
    again = client_attach(conn, "w", SHMVIEW_READ);
    OK(shmview_detach(again));
    OK(shmview_detach(reader));
    OK(shmview_detach(peeker));
    drop(s, "w");
    end();
}
END_TEST

static void reader(struct child *me, void *arg)
{
    (void)arg;
    child_pause(me);
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "w", SHMVIEW_READ), *again;
    child_tell(me, 1);
    child_pause(me); /* it is frozen */
    ck_assert_int_eq(shmview_is_frozen(s), 0);
    again = client_attach(c, "w", SHMVIEW_PEEK); /* another mapping */
    ck_assert_int_eq(shmview_is_frozen(again), 1);
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    OK(shmview_detach(again));
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
}

START_TEST(a_reader_of_another_process_learns_of_it)
{
    struct child child;
    begin();
    child_start(&child, reader, NULL);
    struct shmview_segment *s = make("w");
    child_cue(&child);
    child_hear(&child, 1);
    OK(shmview_freeze(s, 0));
    child_cue(&child);
    child_wait(&child);
    drop(s, "w");
    end();
}
END_TEST

static void heir_of_a_reader(struct child *me, void *segment)
{
    child_pause(me); /* it is frozen */
    ck_assert_int_eq(shmview_is_frozen(segment), 0);
    OK(shmview_lock(segment)); /* its first use attaches the segment */
    ck_assert_int_eq(shmview_is_frozen(segment), 1);
    OK(shmview_unlock(segment));
}

START_TEST(a_forked_child_learns_of_it)
{
    struct child child;
    begin();
    OK(shmview_detach(make("w")));
    struct shmview_segment *r = client_attach(conn, "w", SHMVIEW_READ);
    child_start(&child, heir_of_a_reader, r);
    struct shmview_segment *s = client_attach(conn, "w", SHMVIEW_WRITE);
    OK(shmview_freeze(s, 0));
    child_cue(&child);
    child_wait(&child);
    OK(shmview_detach(r));
    drop(s, "w");
    end();
}
END_TEST

/* The attachment of the one that froze it counts as a reader's, also for a later daemon. */
START_TEST(the_freezer_is_a_reader)
{
    const struct shmview_stats *stats;
    const struct shmview_stats_options one = {
        .struct_bytes = sizeof one, .names = &(const char *){"w"}, .n_names = 1};
    begin();
    struct shmview_segment *s = make("w");
    OK(shmview_freeze(s, 0));
    for (int restarted = 0; restarted < 2; restarted++) {
        OK(shmview_stats_get(conn, &one, &stats));
        ck_assert_uint_eq(stats->n_segments, 1);
        ck_assert_uint_eq(stats->segments[0]->frozen, SHMVIEW_FROZEN_ALL);
        ck_assert_uint_eq(stats->segments[0]->n_parties, 1);
        ck_assert_uint_eq(stats->segments[0]->parties[0]->access, SHMVIEW_READ);
        shmview_stats_free(stats);
        if (!restarted) {
            daemon_kill(&d);
            daemon_restart(&d);
        }
    }
    drop(s, "w");
    end();
}
END_TEST

/* --- Refusals ------------------------------------------------------------- */

static const struct shmview_view_spec stream_view = {
    .name = "v", .format = "B", .ndim = 1, .shape = (int64_t[]){64}};

START_TEST(some_cannot_be_frozen)
{
    struct raw raw;
    struct shmview_view v;
    struct shmview_buffer b;
    struct shmview_segment *s;
    struct shmview_stream *stream;
    char call[64], bytes[16];
    begin();
    s = client_create_with(conn, "file", BYTES, SHMVIEW_MANUAL, 0);
    REFUSED(shmview_freeze(s, 0), INVALID, "its backing is file");
    drop(s, "file");
    OK(shmview_wrap(bytes, sizeof bytes, 0, NULL, NULL, &s));
    REFUSED(shmview_freeze(s, 0), INVALID, "foreign memory");
    ck_assert_int_eq(shmview_is_frozen(s), 0);
    OK(shmview_detach(s));
    s = make("w");
    REFUSED(shmview_freeze(s, 6), INVALID, "flags 0x6");
    struct shmview_segment *r = client_attach(conn, "w", SHMVIEW_READ);
    REFUSED(shmview_freeze(r, 0), READ_ONLY, "access read");
    OK(shmview_detach(r));
    OK(shmview_view_cast(s, "uint8", 0, SHMVIEW_REST, &v));
    OK(shmview_buffer_get(&v, SHMVIEW_BUFFER_WRITABLE, &b));
    REFUSED(shmview_freeze(s, 0), BUSY, "1 buffers");
    use(s);
    shmview_buffer_release(&b);
    OK(shmview_freeze(s, 0));
    drop(s, "w");
    const struct shmview_stream_spec spec = {.struct_bytes = sizeof spec,
                                             .mode = SHMVIEW_LATEST,
                                             .views = &stream_view,
                                             .n_views = 1,
                                             .options = &sealed};
    OK(shmview_stream_create(conn, "stream", &spec, &stream));
    REFUSED(shmview_freeze(shmview_stream_segment(stream), 0), INVALID, "a stream cannot be");
    OK(shmview_stream_close(stream));
    OK(shmview_remove(conn, "stream"));
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Freeze", "{'attachment':77}", "NotAttached", "");
    raw_do(&raw, "Create", "{'name':'f','size':9,'lifetime':'manual','backing':'file'}");
    raw_do(&raw, "Create", "{'name':'p','size':9,'lifetime':'manual','backing':'sealed'}");
    const char *wrong[][3] = {
        {"{'name':'f','access':'write'}", "org.varlink.service.InvalidParameter", "attachment"},
        {"{'name':'p','access':'read'}", "org.varlink.service.PermissionDenied", ""},
    };
    for (int i = 0; i < 2; i++) {
        json_t *a = raw_call(&raw, "Attach", wrong[i][0]);
        snprintf(call, sizeof call, "{'attachment':%lld}", (long long)raw_int(a, "attachment.id"));
        raw_refused(&raw, "Freeze", call, wrong[i][1], wrong[i][2]);
        json_decref(a);
        raw_close_fds(&raw);
    }
    raw_close(&raw);
    OK(shmview_remove(conn, "f"));
    OK(shmview_remove(conn, "p"));
    end();
}
END_TEST

/* A process that attaches for writing, detaches on the first cue, and ends on the second. */
static void writer(struct child *me, void *arg)
{
    (void)arg;
    child_pause(me);
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "w", SHMVIEW_WRITE);
    *(char *)shmview_data(s) = 'x';
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_detach(s));
    OK(shmview_ping(c)); /* after which the daemon has ended the attachment */
    child_tell(me, 2);
    child_pause(me);
    OK(shmview_disconnect(c));
}

START_TEST(another_writer_is_named)
{
    struct child child, dead;
    begin();
    child_start(&child, writer, NULL); /* before there is a mapping to inherit */
    child_start(&dead, writer, NULL);
    struct shmview_segment *s = make("w"), *mine;
    child_cue(&dead);
    child_hear(&dead, 1);
    child_cue(&child);
    child_hear(&child, 1);
    REFUSED(shmview_freeze(s, 0), BUSY, "2 other attachments");
    use(s);
    child_kill(&dead);
    AWAIT(attachments("w") == 2);
    BUSY(shmview_freeze(s, 0), child.pid, "1 other attachment may write");
    BUSY(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE), child.pid, "");
    ck_assert_uint_eq(frozen("w"), 0);
    use(s);
    child_cue(&child); /* it detaches, and keeps no mapping that would prevent the seal */
    child_hear(&child, 2);
    mine = client_attach(conn, "w", SHMVIEW_WRITE);
    BUSY(shmview_freeze(s, 0), getpid(), "1 other attachment");
    use(s);
    OK(shmview_detach(mine));
    OK(shmview_freeze(s, 0));
    child_cue(&child);
    child_wait(&child);
    drop(s, "w");
    end();
}
END_TEST

START_TEST(a_forked_child_is_named)
{
    struct child child;
    begin();
    struct shmview_segment *s = make("w"), *other;
    child_start(&child, heir, s);
    child_hear(&child, 1);
    BUSY(shmview_freeze(s, 0), child.pid, "without an attachment");
    use(s);
    ck_assert_uint_eq(frozen("w"), 0);
    other = client_attach(conn, "w", SHMVIEW_WRITE); /* the attempt is over */
    ck_assert_ptr_eq(shmview_data(other), shmview_data(s));
    OK(shmview_detach(other));
    child_cue(&child);
    child_hear(&child, 2);
    BUSY(shmview_freeze(s, 0), child.pid, "1 other attachment");
    child_cue(&child);
    child_wait(&child);
    AWAIT(attachments("w") == 1);
    OK(shmview_freeze(s, 0));
    drop(s, "w");
    end();
}
END_TEST

static void freezing_child(struct child *me, void *segment)
{
    child_pause(me);
    BUSY(shmview_freeze(segment, 0), getppid(), "1 other attachment");
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_freeze(segment, 0));
    ck_assert_int_eq(shmview_is_frozen(segment), 1);
}

START_TEST(a_forked_child_can_freeze)
{
    struct child child;
    begin();
    struct shmview_segment *s = make("w");
    child_start(&child, freezing_child, s);
    child_cue(&child);
    child_hear(&child, 1);
    OK(shmview_detach(s));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    child_cue(&child);
    child_wait(&child);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
    OK(shmview_remove(conn, "w"));
    end();
}
END_TEST

/* The kernel waits for pages that something refers to, and gives up. */
START_TEST(pinned_pages_are_a_reason)
{
    int ends[2];
    begin();
    struct shmview_segment *s = make("w");
    ck_assert_int_eq(pipe(ends), 0);
    struct iovec page = {shmview_data(s), 4096};
    ck_assert_int_eq(vmsplice(ends[1], &page, 1, 0), 4096);
    REFUSED(shmview_freeze(s, 0), BUSY, "pinned");
    use(s);
    close(ends[0]);
    close(ends[1]);
    OK(shmview_freeze(s, 0));
    drop(s, "w");
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(nobody_can_change_the_bytes),
        SUITE_TEST(a_reader_learns_of_it),
        SUITE_TEST(a_reader_of_another_process_learns_of_it),
        SUITE_TEST(a_forked_child_learns_of_it),
        SUITE_TEST(the_freezer_is_a_reader),
        SUITE_TEST(some_cannot_be_frozen),
        SUITE_TEST(another_writer_is_named),
        SUITE_TEST(a_forked_child_is_named),
        SUITE_TEST(a_forked_child_can_freeze),
        SUITE_TEST(pinned_pages_are_a_reason),
        SUITE_END,
    };
    return suite_main("freeze", tests);
}
