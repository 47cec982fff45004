/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment is made of in /dev/shm, and what the descriptors allow that the
 * daemon passes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;

START_TEST(objects_are_private_to_the_daemon)
{
    const char *const names[] = {"private", "+1.control", "+1.liveness"};
    char path[200];
    struct stat st;
    umask(0);
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "private", 5000);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/dev/shm/shmview.%s/%s", d.instance, names[i]);
        ck_assert_msg(stat(path, &st) == 0, "%s: %s", path, strerror(errno));
        ck_assert_int_eq(st.st_mode & 07777, 0600);
        ck_assert_uint_eq(st.st_uid, geteuid());
    }
    ck_assert_int_eq(stat(d.socket, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    AWAIT(daemon_objects(&d) == 0);
    daemon_stop(&d);
}
END_TEST

/* Whether the descriptor can be mapped so that writing reaches the object. */
static bool maps_writable(int fd)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        ck_assert_int_eq(errno, EACCES);
    else
        munmap(p, 4096);
    return p != MAP_FAILED;
}

static bool can_truncate(int fd)
{
    return ftruncate(fd, 0) == 0;
}

START_TEST(descriptors_allow_what_the_access_says)
{
    struct raw raw;
    struct stat st;
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", "{'name': 'fds', 'size': 5000}");
    json_t *peek = raw_call(&raw, "Attach", "{'name': 'fds', 'access': 'peek'}");
    ck_assert_uint_eq(raw.n_fds, 1);
    ck_assert_int_eq(raw_int(peek, "attachment.descriptors"), 1);
    ck_assert_int_eq(raw_int(peek, "attachment.data"), 0);
    ck_assert_ptr_null(json_object_get(json_object_get(peek, "attachment"), "control"));
    ck_assert_ptr_null(json_object_get(json_object_get(peek, "attachment"), "slot"));
    ck_assert(!maps_writable(raw.fds[0]));
    ck_assert(!can_truncate(raw.fds[0]));
    ck_assert_int_eq(fstat(raw.fds[0], &st), 0);
    ck_assert_int_eq(st.st_size, 5000);
    ck_assert_uint_ge((uint64_t)st.st_blocks * 512, 5000);
    raw_close_fds(&raw);
    json_decref(peek);

    for (int write = 0; write < 2; write++) {
        json_t *a = raw_call(&raw, "Attach",
                             write ? "{'name': 'fds', 'access': 'write'}"
                                   : "{'name': 'fds', 'access': 'read'}");
        ck_assert_uint_eq(raw.n_fds, 3);
        ck_assert_int_eq(maps_writable(raw.fds[raw_int(a, "attachment.data")]), write);
        ck_assert(maps_writable(raw.fds[raw_int(a, "attachment.control")]));
        ck_assert(!maps_writable(raw.fds[raw_int(a, "attachment.liveness")]));
        ck_assert(!can_truncate(raw.fds[raw_int(a, "attachment.liveness")]));
        raw_close_fds(&raw);
        json_decref(a);
    }
    raw_do(&raw, "Remove", "{'name': 'fds'}");
    raw_close(&raw);
    daemon_stop(&d);
}
END_TEST

START_TEST(lock_objects_are_as_laid_out)
{
    struct raw raw;
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    json_t *a = raw_call(&raw, "Create", "{'name': 'lay', 'size': 1, 'access': 'write'}");
    int control = raw.fds[raw_int(a, "attachment.control")];
    int liveness = raw.fds[raw_int(a, "attachment.liveness")];
    struct shmview_control c;
    struct shmview_liveness l;
    ck_assert_int_eq(pread(control, &c, sizeof c, 0), sizeof c);
    ck_assert_int_eq(pread(liveness, &l, sizeof l, 0), sizeof l);
    ck_assert_uint_eq(c.header.magic, SHMVIEW_CONTROL_MAGIC);
    ck_assert_uint_eq(l.header.magic, SHMVIEW_LIVENESS_MAGIC);
    ck_assert_uint_eq(c.header.version, 3);
    ck_assert_uint_eq(l.header.version, 3);
    ck_assert_uint_eq(c.header.features | l.header.features, 0);
    ck_assert_uint_eq(c.header.segment_id, (uint64_t)raw_int(a, "segment.id"));
    ck_assert_uint_eq(l.header.segment_id, (uint64_t)raw_int(a, "segment.id"));
    ck_assert_uint_eq(c.header.header_bytes, sizeof c);
    ck_assert_uint_eq(c.slots_offset, sizeof c);
    ck_assert_uint_eq(c.slot_bytes, sizeof(struct shmview_slot));
    ck_assert_uint_eq(c.lock | c.inside | c.reader_groups, 0);
    ck_assert_uint_eq(l.generation[raw_int(a, "attachment.slot")],
                      (uint64_t)raw_int(a, "attachment.generation"));
    ck_assert_uint_gt(l.high, (uint64_t)raw_int(a, "attachment.slot"));
    json_decref(a);
    raw_close(&raw);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(objects_are_private_to_the_daemon),
        SUITE_TEST(descriptors_allow_what_the_access_says),
        SUITE_TEST(lock_objects_are_as_laid_out),
        SUITE_END,
    };
    return suite_main("objects", tests);
}
