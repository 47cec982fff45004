/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: exact where the daemon knows, silent where clients have spoiled what they wrote. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>
#include <shmview/stats.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static const struct shmview_stats *stats;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    shmview_stats_free(stats);
    stats = NULL;
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Requests the figures of the segment of that name again. */
static const struct shmview_segment_stats *ask(const char *name)
{
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = &name, .n_names = 1};
    shmview_stats_free(stats);
    OK(shmview_stats_get(conn, &o, &stats));
    ck_assert_uint_eq(stats->n_segments, 1);
    ck_assert_str_eq(stats->segments[0]->name, name);
    return stats->segments[0];
}

static void ask_all(void)
{
    shmview_stats_free(stats);
    OK(shmview_stats_get(conn, NULL, &stats));
}

static void hold(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    child_pause(me);
}

static void wait_shared(struct child *me, void *arg)
{
    child_tell(me, 1);
    int r = shmview_lock_shared(arg);
    ck_assert(r == 0 || r == SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(arg));
}

START_TEST(a_held_lock_and_a_waiter)
{
    struct child holder, waiter;
    begin();
    struct shmview_segment *a = client_create(conn, "a", 5000);
    const int64_t shape[] = {1};
    const struct shmview_view_spec v = {.name = "v", .format = "int32", .ndim = 1, .shape = shape};
    OK(shmview_define(a, "one", &v, 1));
    OK(shmview_lock(a));
    OK(shmview_switch(a, "one"));
    OK(shmview_unlock(a));
    child_start(&holder, hold, a);
    child_hear(&holder, 1);
    child_start(&waiter, wait_shared, a);
    child_hear(&waiter, 1);
    parties_await(a, SHMVIEW_WAITS_TO_SHARE, 1);
    const struct shmview_segment_stats *s = ask("a");
    ck_assert_int_eq(s->size, 5000);
    ck_assert_int_eq(s->resident, 8192);
    ck_assert_int_eq(s->attachments, 3);
    ck_assert_int_eq(s->layouts, 1);
    ck_assert_int_eq(s->generation, 1);
    ck_assert_str_eq(s->layout, "one");
    ck_assert_int_eq(s->changes, 1);
    ck_assert_int_eq(s->owner_deaths, 0);
    ck_assert_int_eq(s->owner, getuid());
    ck_assert_uint_eq(s->lifetime, SHMVIEW_ATTACHED);
    ck_assert(s->is_named && s->has_lock);
    ck_assert_uint_eq(s->n_parties, 3);
    for (size_t i = 0; i < 3; i++) { /* those who hold or wait come first */
        const struct shmview_party_stats *p = s->parties[i];
        bool holds = p->pid == holder.pid, waits = p->pid == waiter.pid;
        ck_assert_uint_eq(p->holds, holds ? SHMVIEW_EXCLUSIVE : 0);
        ck_assert_uint_eq(p->waits, waits ? SHMVIEW_SHARED : 0);
        ck_assert(i < 2 ? holds || waits : p->pid == getpid());
        ck_assert_str_ne(p->command, "");
        ck_assert_int_eq(p->uid, getuid());
        if (holds || waits)
            ck_assert_int_ge(p->since_us, stats->started_us - 1000000);
    }
    ck_assert_int_eq(stats->n_all_segments, 1);
    ck_assert_int_eq(stats->attachments, 3);
    ck_assert_int_eq(stats->allocated_bytes, 5000);
    ck_assert_int_eq(stats->total_created, 1);
    ck_assert_int_eq(stats->total_attached, 3);
    ck_assert_str_eq(stats->version, shmview_version());
    child_kill(&holder);
    child_wait(&waiter);
    AWAIT(ask("a")->attachments == 1);
    ck_assert_int_eq(stats->segments[0]->owner_deaths, 1);
    ck_assert_int_eq(stats->total_owner_died, 1);
    OK(shmview_detach(a));
    end();
}
END_TEST

/* What a client may do to the control object. */
START_TEST(spoiled_control_objects)
{
    char path[200];
    begin();
    struct shmview_segment *a = client_create(conn, "a", 5000);
    OK(shmview_lock(a));
    ck_assert_uint_eq(ask("a")->parties[0]->holds, SHMVIEW_EXCLUSIVE);
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/+%jd.control", d.instance,
             (intmax_t)stats->segments[0]->id);
    OK(shmview_unlock(a));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    static const uint32_t rubbish[] = {0xffffffff, 0x12345678, 0x3ff, 0x80000800};
    for (size_t i = 0; i < 4; i++) {
        char slot[128];
        memset(slot, 0xff, sizeof slot);
        ck_assert_int_eq(pwrite(fd, &rubbish[i], 4, offsetof(struct shmview_control, lock)), 4);
        ck_assert_int_eq(pwrite(fd, slot, 8, offsetof(struct shmview_control, phase)), 8);
        ck_assert_int_eq(pwrite(fd, slot, sizeof slot, sizeof(struct shmview_control)), 128);
        const struct shmview_segment_stats *s = ask("a");
        ck_assert_uint_eq(s->n_parties, 1);
        ck_assert_uint_eq(s->parties[0]->holds, 0);
        ck_assert_str_eq(s->parties[0]->command, "");
        ck_assert_str_eq(s->layout, "");
    }
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    ck_assert_int_eq(ask("a")->generation, -1);
    ck_assert_int_eq(ask("a")->attachments, 1);
    ck_assert_int_eq(ftruncate(fd, 4096), 0); /* whole again before we touch it */
    close(fd);
    OK(shmview_detach(a));
    end();
}
END_TEST

START_TEST(pages)
{
    struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    begin();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        OK(shmview_detach(client_create_with(conn, name, 1, SHMVIEW_MANUAL, SHMVIEW_NO_LOCK)));
    }
    OK(shmview_stats_get(conn, &o, &stats));
    ck_assert_uint_eq(stats->n_segments, 1000);
    ck_assert_uint_eq(stats->next, 0);
    for (size_t i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%zu", i);
        ck_assert_str_eq(stats->segments[i]->name, name);
        ck_assert_int_eq(stats->segments[i]->generation, -1);
    }
    shmview_stats_free(stats);
    /* a page may end with a segment that is gone by the next one */
    size_t n = 0;
    o.limit = 37;
    for (o.after = 0; n == 0 || o.after; o.after = stats->next, shmview_stats_free(stats)) {
        OK(shmview_stats_get(conn, &o, &stats));
        n += stats->n_segments;
        OK(shmview_remove(conn, stats->segments[stats->n_segments - 1]->name));
    }
    stats = NULL;
    ck_assert_uint_eq(n, 1000);
    o = (struct shmview_stats_options){.struct_bytes = 1};
    REFUSED(shmview_stats_get(conn, &o, &stats), INVALID, "struct_bytes");
    const char *none = NULL;
    o = (struct shmview_stats_options){.struct_bytes = sizeof o, .names = &none, .n_names = 1};
    REFUSED(shmview_stats_get(conn, &o, &stats), INVALID, "names[0] is NULL");
    end();
}
END_TEST

/* Brief figures have what holds and waits, and leave out what is found in the memory of segments.
 */
START_TEST(brief_figures)
{
    static const char *const names[] = {"idle", "used"};
    struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    struct shmview_segment *used = NULL;
    begin();
    for (int i = 0; i < 2; i++) {
        const int64_t shape[] = {1};
        const struct shmview_view_spec v = {
            .name = "v", .format = "int32", .ndim = 1, .shape = shape};
        used = client_create_with(conn, names[i], 5000, SHMVIEW_MANUAL, 0);
        OK(shmview_define(used, "one", &v, 1));
        OK(shmview_lock(used));
        OK(shmview_switch(used, "one"));
        if (i == 0) {
            OK(shmview_unlock(used));
            OK(shmview_detach(used));
        }
    }
    for (o.brief = 0; o.brief < 2; o.brief++) {
        OK(shmview_stats_get(conn, &o, &stats));
        ck_assert_uint_eq(stats->n_segments, 2);
        for (size_t i = 0; i < 2; i++) {
            const struct shmview_segment_stats *s = stats->segments[i];
            bool is_left_out = o.brief && i == 0;
            ck_assert_str_eq(s->name, names[i]);
            ck_assert_int_eq(s->size, 5000);
            ck_assert_int_eq(s->layouts, 1);
            ck_assert_int_eq(s->resident, o.brief ? -1 : 8192);
            ck_assert(!o.brief || s->created_us < 0);
            ck_assert_int_eq(s->generation, is_left_out ? -1 : 1);
            ck_assert_str_eq(s->layout, is_left_out ? "" : "one");
            ck_assert_int_eq(s->changes, is_left_out ? -1 : 1);
            ck_assert_uint_eq(s->n_parties, i);
        }
        ck_assert_uint_eq(stats->segments[1]->parties[0]->holds, SHMVIEW_EXCLUSIVE);
        shmview_stats_free(stats);
    }
    stats = NULL;
    REFUSED(shmview_stats_get(conn, &o, &stats), INVALID, "brief is 2");
    /* a program that was compiled before there was brief */
    o.struct_bytes = offsetof(struct shmview_stats_options, brief);
    OK(shmview_stats_get(conn, &o, &stats));
    ck_assert_int_eq(stats->segments[0]->resident, 8192);
    OK(shmview_unlock(used));
    OK(shmview_detach(used));
    end();
}
END_TEST

/* Counted by what was refused, each time. */
START_TEST(refusals)
{
    struct shmview_segment *seg;
    begin();
    ask_all();
    ck_assert_uint_eq(stats->n_refusals, 0);
    for (int i = 0; i < 3; i++)
        REFUSED(shmview_attach(conn, "ghost", SHMVIEW_READ, 0, &seg), NOT_FOUND, "ghost");
    OK(shmview_detach(client_create(conn, "once", 1)));
    seg = client_create(conn, "twice", 1);
    struct shmview_segment *other;
    REFUSED(shmview_create(conn, "twice", 1, NULL, &other), EXISTS, "twice");
    ask_all();
    ck_assert_uint_eq(stats->n_refusals, 2);
    ck_assert_str_eq(stats->refusals[0]->error, "io.shmview.SegmentNotFound");
    ck_assert_int_eq(stats->refusals[0]->count, 3);
    ck_assert_str_eq(stats->refusals[1]->error, "io.shmview.SegmentExists");
    ck_assert_int_eq(stats->refusals[1]->count, 1);
    OK(shmview_detach(seg));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(refusals),
        SUITE_TEST(a_held_lock_and_a_waiter),
        SUITE_TEST(spoiled_control_objects),
        SUITE_TEST(pages),
        SUITE_TEST(brief_figures),
        SUITE_END,
    };
    return suite_main("stats", tests);
}
