/* SPDX-License-Identifier: Apache-2.0 */
/* Clients truncate, enlarge and overwrite the objects that they may write to: the daemon gives
 * them back their sizes, and a lock works again. */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/client.h"
#include "support/collapse.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

#define BYTES 100000

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;
static struct raw reader, writer; /* with the descriptors of "s" */

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create_with(conn, "s", BYTES, SHMVIEW_MANUAL, 0);
    strcpy(shmview_data(seg), "bytes");
    OK(shmview_define(seg, "layout", NULL, 0));
    raw_connect(&reader, d.socket);
    json_decref(raw_call(&reader, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(reader.n_fds, 3);
    raw_connect(&writer, d.socket);
    json_decref(raw_call(&writer, "Attach", "{'name':'s','access':'write'}"));
}

static void end(void)
{
    raw_close_fds(&reader);
    raw_close(&reader);
    raw_close_fds(&writer);
    raw_close(&writer);
    OK(shmview_detach(seg));
    OK(shmview_remove(conn, "s"));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static int64_t repairs(void)
{
    struct raw raw;
    raw_connect(&raw, d.socket);
    json_t *told = raw_call(&raw, "Stats", "{}");
    int64_t n = raw_int(told, "instance.total_repaired");
    json_decref(told);
    raw_close(&raw);
    return n;
}

/* A shared hold through seg keeps writers out. */
static void expect_shared(struct shmview_segment *other)
{
    OK(shmview_lock_shared(seg));
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_lock_shared(other));
    OK(shmview_unlock(other));
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
}

/* The lock works, for clients that had it mapped and for others; the first one learns of a death.
 */
static void expect_lock(void)
{
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    ck_assert_str_eq(shmview_data(other), "bytes");
    ck_assert_int_eq(shmview_lock(seg), 1);
    OK(shmview_switch(seg, "layout"));
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    expect_shared(other);
    expect_shared(other);
    OK(shmview_detach(other));
}

/* To nothing, into the words, into the slots, and overwritten. */
static void damage(int how)
{
    static const off_t sizes[] = {0, 40, 140, 1600};
    struct shmview_object_header rubbish;
    memset(&rubbish, 0x55, sizeof rubbish);
    if (how < 4)
        ck_assert_int_eq(ftruncate(reader.fds[1], sizes[how]), 0);
    else
        ck_assert_int_eq(pwrite(reader.fds[1], &rubbish, sizeof rubbish, 0), sizeof rubbish);
}

START_TEST(a_lock_is_damaged)
{
    begin();
    for (int how = 0; how < 5; how++) {
        damage(how);
        expect_lock();
        ck_assert_int_eq(repairs(), how + 1);
    }
    ck_assert(daemon_said(&d, "this can have been done by pid"));
    end();
}
END_TEST

START_TEST(a_lock_is_damaged_while_no_daemon_runs)
{
    begin();
    for (int how = 0; how < 5; how++) {
        daemon_kill(&d);
        damage(how);
        daemon_restart(&d);
        expect_lock();
        ck_assert_int_eq(repairs(), 1);
    }
    ck_assert(!daemon_said(&d, "is lost"));
    raw_close(&reader);
    raw_connect(&reader, d.socket);
    raw_close(&writer);
    raw_connect(&writer, d.socket);
    end();
}
END_TEST

/* One who is inside stays inside, and its bytes are its own. */
START_TEST(an_owner_stays_inside)
{
    begin();
    OK(shmview_lock(seg));
    damage(4);
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    end();
}
END_TEST

START_TEST(data_are_truncated)
{
    begin();
    ck_assert_int_eq(ftruncate(writer.fds[0], 10), 0);
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    ck_assert_str_eq(shmview_data(other), "bytes");
    ck_assert_int_eq(((char *)shmview_data(other))[BYTES - 1], 0);
    ck_assert_int_eq(shmview_lock(other), 1);
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    end();
}
END_TEST

/* Overwrites the word readers of the slot of seg, the first one. */
static void overwrite_readers(uint32_t v)
{
    off_t at = sizeof(struct shmview_control) + offsetof(struct shmview_slot, readers);
    ck_assert_int_eq(pwrite(reader.fds[1], &v, sizeof v, at), sizeof v);
}

/* Whatever the word of a reader becomes, while the reader is outside or inside: its next hold
 * counts. A reader that was inside learns that writers could come in. */
START_TEST(a_count_of_readers_is_overwritten)
{
    static const uint32_t words[] = {0, 1, 0x55555555, 0xffffffff};
    begin();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    expect_shared(other);
    for (unsigned i = 0; i < 4; i++) {
        overwrite_readers(words[i]);
        expect_shared(other);
        OK(shmview_lock_shared(seg));
        overwrite_readers(words[i]);
        REFUSED(shmview_unlock(seg), LOST, "taken away");
        expect_shared(other);
        OK(shmview_lock_shared(seg));
        overwrite_readers(words[i]);
        OK(shmview_lock(other)); /* which clears the count */
        OK(shmview_unlock(other));
        REFUSED(shmview_unlock(seg), LOST, "taken away");
        expect_shared(other);
    }
    OK(shmview_detach(other));
    end();
}
END_TEST

static bool has_size(int fd, off_t bytes)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_size == bytes && st.st_blocks * 512 < bytes + 4096;
}

/* A sparse end, memory, memory beyond the end, little and much; also after the client has
 * detached. */
START_TEST(objects_that_grow)
{
    begin();
    for (int i = 0; i < 16; i++) {
        bool is_data = i & 1;
        int fd = is_data ? writer.fds[0] : reader.fds[1];
        off_t bytes = is_data ? BYTES : 4096, more = i & 8 ? 20 << 20 : 8192;
        if ((i & 6) == 0)
            ck_assert_int_eq(ftruncate(fd, (off_t)2 << 30), 0);
        else if ((i & 6) == 2)
            ck_assert_int_eq(posix_fallocate(fd, 0, bytes + more), 0);
        else if ((i & 6) == 4)
            ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, bytes, more), 0);
        else
            ck_assert_int_eq(pwrite(fd, "x", 1, bytes + more), 1);
        AWAIT(has_size(fd, bytes));
        ck_assert_str_eq(shmview_data(seg), "bytes");
        OK(shmview_lock(seg)); /* nobody was harmed */
        OK(shmview_unlock(seg));
    }
    ck_assert_int_ge(repairs(), 16);
    raw_close(&writer);
    raw_connect(&writer, d.socket);
    end();
}
END_TEST

/* Creates "p", which only a client with access peek attaches then, and which gets a huge page
 * across its end. Returns whether it has that page. */
static bool peek_and_collapse(struct raw *peek, uint32_t backing)
{
    struct shmview_segment *s;
    const struct shmview_create_options options = {
        .struct_bytes = sizeof options,
        .lifetime = SHMVIEW_MANUAL,
        .backing = backing,
    };
    OK(shmview_create(conn, "p", BYTES, &options, &s));
    OK(shmview_detach(s));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    raw_connect(peek, d.socket);
    json_decref(raw_call(peek, "Attach", "{'name':'p','access':'peek'}"));
    return collapse(peek->fds[0]);
}

static void drop(struct raw *peek)
{
    raw_close_fds(peek);
    raw_close(peek);
    OK(shmview_remove(conn, "p"));
}

/* The daemon frees it, unless nobody can change the size of the object. */
START_TEST(a_huge_page_across_the_end)
{
    struct raw peek;
    char done_by[80];
    daemon_start(&d);
    conn = client_connect(&d);
    if (peek_and_collapse(&peek, SHMVIEW_BACKING_SEALED))
        OK(shmview_detach(client_attach(conn, "p", SHMVIEW_WRITE)));
    ck_assert_int_eq(repairs(), 0);
    drop(&peek);
    if (peek_and_collapse(&peek, SHMVIEW_BACKING_FILE)) {
        AWAIT(has_size(peek.fds[0], BYTES));
        ck_assert_int_eq(repairs(), 1);
        snprintf(done_by, sizeof done_by, "this can have been done by pid %d", getpid());
        ck_assert(daemon_said(&d, done_by));
    }
    drop(&peek);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

/* The next daemon does not take over what was added. */
START_TEST(objects_that_grow_while_no_daemon_runs)
{
    begin();
    daemon_kill(&d);
    ck_assert_int_eq(posix_fallocate(reader.fds[1], 0, 1 << 20), 0);
    ck_assert_int_eq(posix_fallocate(writer.fds[0], 0, 1 << 20), 0);
    daemon_restart(&d);
    AWAIT(has_size(reader.fds[1], 4096) && has_size(writer.fds[0], BYTES));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    raw_close(&reader);
    raw_connect(&reader, d.socket);
    raw_close(&writer);
    raw_connect(&writer, d.socket);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_lock_is_damaged),
        SUITE_TEST(a_lock_is_damaged_while_no_daemon_runs),
        SUITE_TEST(an_owner_stays_inside),
        SUITE_TEST(a_count_of_readers_is_overwritten),
        SUITE_TEST(data_are_truncated),
        SUITE_TEST(objects_that_grow),
        SUITE_TEST(a_huge_page_across_the_end),
        SUITE_TEST(objects_that_grow_while_no_daemon_runs),
        SUITE_END,
    };
    return suite_main("repair", tests);
}
