/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of one segment share its mapping, and the last mappings stay for a while. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/many.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

/* The bounds of client/segment/mappings.h. */
#define IDLE     32
#define IDLE_MIB 4

static struct daemon d;

/* How many mappings this process has whose paths have `part` in them. */
static int n_mapped(const char *part)
{
    char line[512];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, part) != NULL;
    fclose(maps);
    return n;
}

/* Creates a segment that stays. */
static void make(struct shmview_connection *conn, const char *name, uint64_t size)
{
    struct shmview_segment *seg = client_create_with(conn, name, size, SHMVIEW_MANUAL, 0);
    OK(shmview_detach(seg));
}

START_TEST(handles_of_one_access_share_a_mapping)
{
    daemon_start(&d);
    struct shmview_connection *one = client_connect(&d), *two = client_connect(&d);
    struct shmview_segment *a = client_create(one, "shared-map", 4096);
    struct shmview_segment *b = client_attach(two, "shared-map", SHMVIEW_WRITE);
    struct shmview_segment *r = client_attach(two, "shared-map", SHMVIEW_READ);
    ck_assert_ptr_eq(shmview_data(a), shmview_data(b));
    ck_assert_ptr_ne(shmview_data(a), shmview_data(r));
    ck_assert_int_eq(n_mapped("/shared-map"), 2);
    OK(shmview_lock(a));
    ck_assert_int_eq(shmview_trylock(b), -SHMVIEW_ERR_TIMED_OUT); /* each handle has its slot */
    memset(shmview_data(a), 7, 4096);
    OK(shmview_unlock(a));
    OK(shmview_detach(a));
    ck_assert_int_eq(((unsigned char *)shmview_data(b))[4095], 7);
    OK(shmview_lock(b));
    OK(shmview_unlock(b));
    OK(shmview_detach(b));
    OK(shmview_detach(r));
    ck_assert_int_eq(n_mapped("/shared-map"), 2);
    OK(shmview_disconnect(one));
    OK(shmview_disconnect(two));
    ck_assert_int_eq(n_mapped("/shared-map"), 0);
    daemon_stop(&d);
}
END_TEST

START_TEST(the_next_attachment_has_the_bytes_of_now)
{
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    make(conn, "again-map", 4096);
    struct shmview_segment *seg = client_attach(conn, "again-map", SHMVIEW_WRITE);
    char *at = shmview_data(seg);
    memcpy(at, "first", 6);
    OK(shmview_detach(seg));
    ck_assert_int_eq(n_mapped("/again-map"), 1);
    seg = client_attach(conn, "again-map", SHMVIEW_WRITE);
    ck_assert_ptr_eq(shmview_data(seg), at);
    ck_assert_str_eq(at, "first");
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    /* another segment of that name has other bytes */
    OK(shmview_remove(conn, "again-map"));
    make(conn, "again-map", 4096);
    seg = client_attach(conn, "again-map", SHMVIEW_WRITE);
    ck_assert_str_eq(shmview_data(seg), "");
    OK(shmview_detach(seg));
    OK(shmview_remove(conn, "again-map"));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

/* More than there are rows in the table of mappings, so that two of them have a row in common. */
START_TEST(each_segment_has_bytes_of_its_own)
{
    enum {
        MANY = 1100
    };
    static struct shmview_segment *seg[MANY];
    char name[32];
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many-map%d", i);
        seg[i] = client_create_with(conn, name, sizeof i, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
        *(int *)shmview_data(seg[i]) = i;
    }
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(*(int *)shmview_data(seg[i]), i);
    OK(shmview_detach_many(seg, MANY));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

START_TEST(few_mappings_stay)
{
    char name[32];
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < IDLE + 8; i++) {
        snprintf(name, sizeof name, "few-map%d", i);
        make(conn, name, 4096);
        OK(shmview_detach(client_attach(conn, name, SHMVIEW_WRITE)));
    }
    ck_assert_int_eq(n_mapped("/few-map"), IDLE);
    ck_assert_int_eq(n_mapped("/few-map7"), 0); /* the longest idle went first */
    for (int i = 0; i < IDLE_MIB + 2; i++) {
        snprintf(name, sizeof name, "mib-map%d", i);
        make(conn, name, 1 << 20);
    }
    ck_assert_int_eq(n_mapped("/mib-map"), IDLE_MIB);
    ck_assert_int_eq(n_mapped("/few-map"), 0);
    make(conn, "large-map", (IDLE_MIB << 20) + 1);
    ck_assert_int_eq(n_mapped("/large-map"), 0);
    ck_assert_int_eq(n_mapped("/mib-map"), IDLE_MIB);
    usleep(1100000); /* longer than they stay */
    struct shmview_segment *seg = client_attach(conn, "large-map", SHMVIEW_READ);
    ck_assert_int_eq(n_mapped("/mib-map"), 0);
    OK(shmview_detach(seg));
    make(conn, "trim-map", 4096);
    ck_assert_int_eq(n_mapped("/trim-map"), 1);
    shmview_trim();
    ck_assert_int_eq(n_mapped("/trim-map"), 0);
    make(conn, "end-map", 4096);
    OK(shmview_disconnect(conn));
    ck_assert_int_eq(n_mapped("/dev/shm/shmview."), 0);
    daemon_stop(&d);
}
END_TEST

/* Its memory is needed by others, and no attachment can follow. */
START_TEST(the_last_attachment_leaves_no_mapping)
{
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    OK(shmview_detach(client_create(conn, "last-map", 4096)));
    ck_assert_int_eq(n_mapped("/last-map"), 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

static void attach_in_child(struct child *me, void *arg)
{
    struct shmview_connection *conn = arg;
    struct shmview_segment *seg = client_attach(conn, "child-map", SHMVIEW_WRITE);
    OK(shmview_lock(seg));
    memcpy(shmview_data(seg), "child", 6);
    OK(shmview_unlock(seg));
    OK(shmview_detach(seg));
    child_tell(me, 'd');
}

START_TEST(a_forked_child_attaches_what_its_parent_had)
{
    struct child child;
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    make(conn, "child-map", 4096);
    child_start(&child, attach_in_child, conn);
    child_hear(&child, 'd');
    child_wait(&child);
    struct shmview_segment *seg = client_attach(conn, "child-map", SHMVIEW_READ);
    ck_assert_str_eq(shmview_data(seg), "child");
    OK(shmview_detach(seg));
    OK(shmview_remove(conn, "child-map"));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

/* A truncated object loses its pages in every mapping; the daemon gives it its size back. */
START_TEST(a_truncated_object_is_whole_again)
{
    char path[200];
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    make(conn, "cut-map", 8192);
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/cut-map", d.instance);
    ck_assert_int_eq(truncate(path, 0), 0);
    struct shmview_segment *seg = client_attach(conn, "cut-map", SHMVIEW_WRITE);
    memset(shmview_data(seg), 1, 8192);
    OK(shmview_detach(seg));
    OK(shmview_remove(conn, "cut-map"));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(handles_of_one_access_share_a_mapping),
        SUITE_TEST(the_next_attachment_has_the_bytes_of_now),
        SUITE_TEST(each_segment_has_bytes_of_its_own),
        SUITE_TEST(few_mappings_stay),
        SUITE_TEST(the_last_attachment_leaves_no_mapping),
        SUITE_TEST(a_forked_child_attaches_what_its_parent_had),
        SUITE_TEST(a_truncated_object_is_whole_again),
        SUITE_END,
    };
    return suite_main("mappings", tests);
}
