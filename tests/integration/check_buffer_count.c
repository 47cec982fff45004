/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer keeps its segment: shmview_detach() refuses, or shmview_detach_later() waits for the
 * last buffer. A child counts its own buffers. A handle that is given up leaves its lock in order.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <shmview/many.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg, *other;
static struct shmview_view view;
static struct shmview_buffer buffers[3];

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    other = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_view_cast(seg, "i", 0, SHMVIEW_REST, &view));
}

static void end(void)
{
    OK(shmview_detach(other));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void get_all(void)
{
    for (int i = 0; i < 3; i++)
        OK(shmview_buffer_get(&view, SHMVIEW_BUFFER_ND, &buffers[i]));
}

static json_int_t n_attachments(void)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Describe", "{'name':'s'}");
    json_int_t n = raw_int(told, "segment.attachments");
    json_decref(told);
    raw_close(&raw);
    return n;
}

/* Mappings of the segment's data in this process. */
static int n_mapped(void)
{
    char line[512], name[80];
    int n = 0;
    shmview_trim();
    snprintf(name, sizeof name, "/shmview.%s/s\n", d.instance);
    FILE *f = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, f))
        n += strstr(line, name) != NULL;
    fclose(f);
    return n;
}

/* --- Refused, deferred --------------------------------------------------- */

START_TEST(detach_is_refused)
{
    begin();
    get_all();
    REFUSED(shmview_detach(seg), BUSY, "3 buffers of 's' are still out");
    shmview_buffer_release(&buffers[1]);
    shmview_buffer_release(&buffers[1]); /* counts once */
    REFUSED(shmview_detach(seg), BUSY, "2 buffers of 's'");
    shmview_buffer_release(&buffers[0]);
    shmview_buffer_release(&buffers[2]);
    ck_assert_int_eq(n_attachments(), 2);
    OK(shmview_detach(seg));
    ck_assert_int_eq(n_attachments(), 1);
    end();
}
END_TEST

START_TEST(detach_later_waits_for_the_last)
{
    begin();
    get_all();
    int *bytes = buffers[0].buf;
    OK(shmview_detach_later(seg));
    REFUSED(shmview_disconnect(conn), BUSY, "2 segments");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(n_attachments(), 2);
        bytes[7] = i;
        ck_assert_int_eq(((int *)shmview_data(other))[7], i);
        shmview_buffer_release(&buffers[i]);
    }
    ck_assert_int_eq(n_attachments(), 1);
    ck_assert_int_eq(n_mapped(), 1);
    end();
}
END_TEST

START_TEST(detach_later_with_nothing_out_is_now)
{
    begin();
    ck_assert_int_eq(n_mapped(), 2);
    OK(shmview_detach_later(seg));
    ck_assert_int_eq(n_attachments(), 1);
    ck_assert_int_eq(n_mapped(), 1);
    OK(shmview_detach_later(NULL));
    end();
}
END_TEST

/* The daemon is gone when the last one comes back. */
START_TEST(the_last_one_without_a_daemon)
{
    begin();
    get_all();
    OK(shmview_detach_later(seg));
    daemon_kill(&d);
    for (int i = 0; i < 3; i++)
        shmview_buffer_release(&buffers[i]);
    OK(shmview_detach(other));
    OK(shmview_disconnect(conn));
    daemon_restart(&d);
    daemon_stop(&d);
}
END_TEST

/* --- Fork ---------------------------------------------------------------- */

static void release_copies(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    REFUSED(shmview_detach(seg), BUSY, "3 buffers");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(((int *)buffers[i].buf)[5], 55);
        shmview_buffer_release(&buffers[i]);
    }
    OK(shmview_buffer_get(&view, 0, &buffers[0]));
    OK(shmview_detach_later(seg));
    ck_assert_int_eq(n_mapped(), 2);
    shmview_buffer_release(&buffers[0]);
    ck_assert_int_eq(n_mapped(), 1);
    OK(shmview_detach(other));
    OK(shmview_disconnect(conn));
}

START_TEST(a_child_counts_its_own)
{
    struct child child;
    begin();
    get_all();
    ((int *)shmview_data(seg))[5] = 55;
    child_start(&child, release_copies, NULL);
    child_wait(&child);
    ck_assert_int_eq(n_attachments(), 2); /* the child gave nothing back */
    REFUSED(shmview_detach(seg), BUSY, "3 buffers");
    for (int i = 0; i < 3; i++)
        shmview_buffer_release(&buffers[i]);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    end();
}
END_TEST

static void release_deferred(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(n_mapped(), 2);
        shmview_buffer_release(&buffers[i]);
    }
    ck_assert_int_eq(n_mapped(), 1);
    OK(shmview_detach(other));
    OK(shmview_disconnect(conn));
}

START_TEST(a_child_inherits_a_detach_to_come)
{
    struct child child;
    begin();
    get_all();
    const int *bytes = shmview_data(seg);
    OK(shmview_detach_later(seg));
    child_start(&child, release_deferred, NULL);
    child_wait(&child);
    ck_assert_int_eq(n_attachments(), 2);
    ck_assert_int_eq(bytes[0], 0);
    for (int i = 0; i < 3; i++)
        shmview_buffer_release(&buffers[i]);
    ck_assert_int_eq(n_attachments(), 1);
    end();
}
END_TEST

/* --- Locks --------------------------------------------------------------- */

/* Whatever this thread holds is given back in order, whether or not a buffer is out. */
START_TEST(my_lock_is_given_back)
{
    for (int out = 0; out < 2; out++) {
        for (int shared = 0; shared < 3; shared++) {
            begin();
            if (out)
                OK(shmview_buffer_get(&view, 0, &buffers[0]));
            for (int depth = 0; depth < 3; depth++)
                OK(shared ? shmview_lock_shared(seg) : shmview_lock(seg));
            struct shmview_segment *third = client_create(conn, "third", 10);
            if (shared == 2)
                OK(shmview_lock_shared(third)); /* two at once are kept in another way */
            REFUSED(shmview_trylock(other), TIMED_OUT, "");
            OK(shmview_detach_later(seg));
            OK(shmview_trylock(other)); /* and nobody died */
            OK(shmview_unlock(other));
            if (shared == 2)
                OK(shmview_unlock(third));
            REFUSED(shmview_unlock(third), NOT_OWNER, "");
            OK(shmview_detach(third));
            shmview_buffer_release(&buffers[0]);
            end();
        }
    }
}
END_TEST

static struct holder {
    pthread_t thread;
    int shared;
    _Atomic int holds, ends;
} holder;

static void *hold(void *arg)
{
    struct holder *h = arg;
    int r = h->shared ? shmview_lock_shared(seg) : shmview_lock(seg);
    h->holds = 1;
    while (!h->ends)
        await_again(INT64_MAX);
    return r ? (void *)"not locked" : NULL;
}

/* A lock that another thread holds is left as by a death, which the next owner gets reported if it
 * was held exclusively. That thread ends later, and may lock other segments before that. */
START_TEST(the_lock_of_another_thread)
{
    for (int out = 0; out < 2; out++) {
        for (int shared = 0; shared < 2; shared++) {
            void *wrong;
            begin();
            if (out)
                OK(shmview_buffer_get(&view, 0, &buffers[0]));
            holder = (struct holder){.shared = shared};
            ck_assert_int_eq(pthread_create(&holder.thread, NULL, hold, &holder), 0);
            AWAIT(holder.holds);
            REFUSED(shmview_trylock(other), TIMED_OUT, "");
            OK(shmview_detach_later(seg));
            if (shared) /* else now, whatever is out */
                shmview_buffer_release(&buffers[0]);
            ck_assert_int_eq(shmview_lock(other), shared ? 0 : SHMVIEW_OWNER_DIED);
            shmview_buffer_release(&buffers[0]);
            OK(shmview_unlock(other));
            holder.ends = 1;
            ck_assert_int_eq(pthread_join(holder.thread, &wrong), 0);
            ck_assert_msg(!wrong, "%s", (const char *)wrong);
            OK(shmview_lock(other));
            OK(shmview_unlock(other));
            end();
        }
    }
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(detach_is_refused),
        SUITE_TEST(detach_later_waits_for_the_last),
        SUITE_TEST(detach_later_with_nothing_out_is_now),
        SUITE_TEST(the_last_one_without_a_daemon),
        SUITE_TEST(a_child_counts_its_own),
        SUITE_TEST(a_child_inherits_a_detach_to_come),
        SUITE_TEST(my_lock_is_given_back),
        SUITE_TEST(the_lock_of_another_thread),
        SUITE_END,
    };
    return suite_main("buffer_count", tests);
}
