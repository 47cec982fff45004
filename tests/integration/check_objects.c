/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment is made of in /dev/shm, and what the descriptors allow that the
 * daemon passes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/layout.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;

START_TEST(objects_are_private_to_the_daemon)
{
    const struct shmview_description *described;
    char path[300], names[3][60] = {"private"};
    struct stat st;
    umask(0);
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "private", 5000);
    OK(shmview_describe(conn, "private", &described));
    snprintf(names[1], sizeof names[1], "+%lld.control", (long long)described->id);
    snprintf(names[2], sizeof names[2], "+%lld.liveness", (long long)described->id);
    shmview_description_free(described);
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

/* Writes a byte in a child. Returns the signal that ended the child, or 0. */
static int signal_of_write(unsigned char *at)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        *(volatile unsigned char *)at = 1;
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* How many mappings of data objects there are whose names begin with "guarded". */
static int n_guarded(void)
{
    char line[512];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, "/guarded") != NULL;
    fclose(maps);
    return n;
}

/* The segments are attached one after the other, so that without the guard the objects of one begin
 * where the data of the next one ends. */
START_TEST(a_write_past_the_end_is_trapped)
{
    static const uint64_t sizes[] = {1, 4096, 5000, 1 << 20};
    struct shmview_segment *seg[sizeof sizes / sizeof *sizes];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char name[16];
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(name, sizeof name, "guarded%zu", i);
        seg[i] = client_create(conn, name, sizes[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *end =
            (unsigned char *)shmview_data(seg[i]) + (sizes[i] + page - 1) / page * page;
        ck_assert_int_eq(signal_of_write(end - 1), 0);
        ck_assert_int_eq(signal_of_write(end), SIGBUS);
        ck_assert_int_eq(signal_of_write(end + page - 1), SIGBUS);
    }
    ck_assert_int_eq(n_guarded(), sizeof sizes / sizeof *sizes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        OK(shmview_detach(seg[i]));
    ck_assert_int_eq(n_guarded(), 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_write_past_the_end_is_trapped),
        SUITE_TEST(objects_are_private_to_the_daemon),
        SUITE_TEST(descriptors_allow_what_the_access_says),
        SUITE_TEST(lock_objects_are_as_laid_out),
        SUITE_END,
    };
    return suite_main("objects", tests);
}
