/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments: no client can harm another one by the size of their memory, the size of /dev/shm
 * is no limit, and requests and configurations choose them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/describe.h>
#include <shmview/layout.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/person.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

#define BYTES 1000000
#define MIB   ((uint64_t)1 << 20)

static struct daemon d;
static struct shmview_connection *conn;

static const struct shmview_create_options sealed = {
    .struct_bytes = sizeof sealed,
    .lifetime = SHMVIEW_MANUAL,
    .backing = SHMVIEW_BACKING_SEALED,
};

static struct shmview_segment *make_sealed(const char *name, uint64_t size)
{
    struct shmview_segment *s;
    OK(shmview_create(conn, name, size, &sealed, &s));
    return s;
}

static void drop(struct shmview_segment *segment, const char *name)
{
    OK(shmview_detach(segment));
    OK(shmview_remove(conn, name));
}

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    AWAIT(backing_objects(d.pid) == 0); /* the memory of every segment was given back */
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* --- A hostile client ----------------------------------------------------- */

static void try_sizes(int fd, off_t size)
{
    struct stat st;
    static const off_t sizes[] = {0, 1, 4096, (off_t)BYTES * 2};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(ftruncate(fd, sizes[i]), -1);
        ck_assert_int_eq(errno, EPERM);
    }
    /* memory beyond the end, which would be charged to nobody */
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, size, 1 << 20), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -1);
    ck_assert_int_eq(pwrite(fd, "x", 1, size), -1);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_size, size);
}

/* What another user tries with the descriptor; as for one with the daemon's own uid. */
static void try_rights(int fd, bool is_other)
{
    char path[64];
    int r = fchmod(fd, 0), writable;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    writable = open(path, O_RDWR);
    ck_assert_int_eq(open(path, O_RDWR | O_TRUNC), -1);
    if (is_other) {
        ck_assert_int_eq(r, -1);
        ck_assert_int_eq(writable, -1);
        ck_assert_int_eq(errno, EACCES);
    }
    if (writable >= 0)
        close(writable);
}

/* Attaches "s" for writing and tries everything with its descriptors. `other` is not NULL if this
 * runs as another user than the daemon. */
static void hostile(struct child *me, void *other)
{
    struct raw raw;
    struct stat st;
    (void)me;
    raw_connect(&raw, d.socket);
    json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'write'}");
    int data = raw.fds[raw_int(a, "attachment.data")];
    int control = raw.fds[raw_int(a, "attachment.control")];
    int liveness = raw.fds[raw_int(a, "attachment.liveness")];
    ck_assert_int_eq(fstat(control, &st), 0);
    try_sizes(data, BYTES);
    try_sizes(control, st.st_size);
    ck_assert_int_eq(ftruncate(liveness, 0), -1);
    for (int i = 0; i < 3; i++)
        try_rights(raw.fds[i], other != NULL);
    /* the daemon could not write a control object with such a seal, and no client could map it */
    ck_assert_int_eq(fcntl(control, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fcntl(liveness, F_ADD_SEALS, F_SEAL_WRITE), -1);
    ck_assert_int_eq(fcntl(data, F_ADD_SEALS, F_SEAL_WRITE), -1);
    ck_assert_int_eq(errno, EBUSY); /* while somebody has it mapped for writing */
    /* the daemon writes to the control object at an offset; O_APPEND would move that */
    ck_assert_int_eq(fcntl(control, F_SETFL, O_APPEND), 0);
    /* holes, as a truncation that grows again would leave them */
    ck_assert_int_eq(fallocate(data, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES), 0);
    json_decref(a);
    raw_close_fds(&raw);
    raw_close(&raw);
}

static void use(struct shmview_segment *segment)
{
    volatile char *data = shmview_data(segment);
    OK(shmview_lock(segment));
    for (size_t i = 0; i < BYTES; i += 4096)
        data[i] = (char)(data[i] + 1);
    OK(shmview_unlock(segment));
}

START_TEST(a_hostile_client_cannot_change_sizes)
{
    struct child child;
    static const struct person person = {.uid = 65531, .gid = 65531};
    struct shmview_access_change open_to_all = {
        .struct_bytes = sizeof open_to_all, .set = SHMVIEW_SET_MODE, .mode = 0666};
    begin();
    struct shmview_segment *s = make_sealed("s", BYTES);
    OK(shmview_define(s, "before", NULL, 0));
    use(s);
    if (person_possible()) {
        person_open_door(&d);
        OK(shmview_set_access(conn, "s", &open_to_all));
        person_start(&child, &person, hostile, &d);
    } else {
        child_start(&child, hostile, NULL);
    }
    child_wait(&child);
    use(s);
    OK(shmview_define(s, "after", NULL, 0)); /* the daemon writes to the control object */
    OK(shmview_lock(s));
    OK(shmview_switch(s, "after")); /* finds its hash there */
    OK(shmview_unlock(s));
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock(other));
    ck_assert_int_eq(*(const char *)shmview_data(other), 1); /* counted from the hole */
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    ck_assert(!daemon_said(&d, "repaired"));
    drop(s, "s");
    end();
}
END_TEST

/* --- Objects -------------------------------------------------------------- */

START_TEST(objects_are_sealed_and_committed)
{
    struct raw raw;
    struct stat st;
    begin();
    raw_connect(&raw, d.socket);
    json_t *a =
        raw_call(&raw, "Create", "{'name':'s','size':1000000,'access':'write','backing':'sealed'}");
    const int size = F_SEAL_SHRINK | F_SEAL_GROW;
    int seals[3];
    for (int i = 0; i < 3; i++) {
        seals[i] = fcntl(raw.fds[i], F_GET_SEALS);
        ck_assert_int_eq(seals[i] & size, size);
        ck_assert_int_eq(fstat(raw.fds[i], &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0600);
        ck_assert_uint_eq(st.st_uid, geteuid());
    }
    ck_assert_int_eq(seals[raw_int(a, "attachment.data")] & F_SEAL_SEAL, 0);
    ck_assert_int_eq(seals[raw_int(a, "attachment.control")] & F_SEAL_SEAL, F_SEAL_SEAL);
    ck_assert_int_eq(seals[raw_int(a, "attachment.liveness")] & F_SEAL_SEAL, F_SEAL_SEAL);
    ck_assert_int_eq(fstat(raw.fds[raw_int(a, "attachment.data")], &st), 0);
    ck_assert_int_eq(st.st_size, BYTES);
    ck_assert_int_ge(st.st_blocks * 512, BYTES);
    ck_assert_uint_eq(place_objects(d.instance, NULL, 0), 1); /* nothing in /dev/shm */
    ck_assert_int_eq(fcntl(raw.fds[raw_int(a, "attachment.liveness")], F_GETFL) & O_ACCMODE,
                     O_RDONLY);
    json_decref(a);
    raw_close_fds(&raw);
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(slots_beyond_the_first_page_are_committed)
{
    struct shmview_segment *s, *rest[200];
    struct raw raw;
    struct stat st;
    begin();
    s = make_sealed("s", 10);
    for (int i = 0; i < 200; i++)
        rest[i] = client_attach(conn, "s", SHMVIEW_READ);
    raw_connect(&raw, d.socket);
    json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'read'}");
    ck_assert_int_eq(fstat(raw.fds[raw_int(a, "attachment.control")], &st), 0);
    ck_assert_uint_ge((uint64_t)st.st_blocks * 512,
                      sizeof(struct shmview_control) + 202 * sizeof(struct shmview_slot));
    ck_assert_int_gt(st.st_size, st.st_blocks * 512); /* the other slots are not committed */
    json_decref(a);
    OK(shmview_lock(s));
    REFUSED(shmview_trylock(rest[199]), TIMED_OUT, "");
    OK(shmview_unlock(s));
    OK(shmview_lock_shared(rest[199]));
    REFUSED(shmview_trylock(s), TIMED_OUT, "");
    OK(shmview_unlock(rest[199]));
    for (int i = 0; i < 200; i++)
        OK(shmview_detach(rest[i]));
    raw_close_fds(&raw);
    raw_close(&raw);
    ck_assert(!daemon_said(&d, "repaired"));
    drop(s, "s");
    end();
}
END_TEST

/* A segment that others still use after its removal, and without a lock. */
START_TEST(removed_while_attached)
{
    struct shmview_create_options bare = sealed;
    struct shmview_segment *s, *again;
    bare.flags = SHMVIEW_NO_LOCK;
    begin();
    OK(shmview_create(conn, "s", BYTES, &bare, &s));
    ck_assert_uint_ge(backing_objects(d.pid), 1);
    OK(shmview_remove(conn, "s"));
    again = make_sealed("s", 2 * MIB);
    strcpy(shmview_data(s), "old");
    ck_assert_str_eq(shmview_data(again), "");
    OK(shmview_detach(s));
    drop(again, "s");
    end();
}
END_TEST

START_TEST(backing_is_told)
{
    const struct shmview_description *told;
    begin();
    struct shmview_segment *s = make_sealed("s", 10), *f = client_create(conn, "f", 10);
    OK(shmview_describe(conn, "s", &told));
    ck_assert_uint_eq(told->backing, SHMVIEW_BACKING_SEALED);
    shmview_description_free(told);
    OK(shmview_describe(conn, "f", &told));
    ck_assert_uint_eq(told->backing, SHMVIEW_BACKING_FILE);
    shmview_description_free(told);
    OK(shmview_detach(f));
    drop(s, "s");
    end();
}
END_TEST

/* --- Limits --------------------------------------------------------------- */

/* A service manager that stores the descriptors shows their links to all users. */
START_TEST(links_do_not_have_the_name)
{
    char path[64], link[300];
    unsigned n = 0;
    struct shmview_segment *own, *s;
    struct shmview_create_options options = sealed;
    begin();
    s = make_sealed("unheard", BYTES);
    options.flags = SHMVIEW_OWN_MEMORY;
    OK(shmview_create(conn, "unheard-own", BYTES, &options, &own));
    snprintf(path, sizeof path, "/proc/%d/fd", d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        ssize_t got = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        link[got > 0 ? got : 0] = '\0';
        n += strncmp(link, "/memfd:shmview:", 15) == 0;
        ck_assert_msg(!strstr(link, "unheard"), "%s", link);
    }
    closedir(dir);
    ck_assert_uint_ge(n, 6); /* three for each segment */
    drop(own, "unheard-own");
    drop(s, "unheard");
    end();
}
END_TEST

/* As in a container: docker gives it 64 MiB in /dev/shm. */
START_TEST(larger_than_dev_shm)
{
    struct shmview_segment *s;
    const uint64_t size = 1024 * MIB;
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m,nr_inodes=8")) {
        puts("skipped: only root can mount");
        return;
    }
    begin();
    REFUSED(shmview_create(conn, "f", size, NULL, &s), NO_SPACE, "/dev/shm holds");
    int r = shmview_create(conn, "s", size, &sealed, &s);
    if (r == -SHMVIEW_ERR_NO_SPACE) {
        puts("skipped: this machine has no GiB to spare");
    } else {
        OK(r);
        char *data = shmview_data(s);
        struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
        data[0] = 1;
        data[size - 1] = 2;
        ck_assert_int_eq(((char *)shmview_data(other))[0], 1);
        ck_assert_int_eq(((char *)shmview_data(other))[size - 1], 2);
        OK(shmview_detach(other));
        drop(s, "s");
    }
    end();
}
END_TEST

START_TEST(memory_that_is_not_there_is_refused)
{
    struct shmview_segment *s;
    begin();
    REFUSED(shmview_create(conn, "s", (uint64_t)1 << 50, &sealed, &s), NO_SPACE,
            "asks for 1125899906842624 bytes");
    REFUSED(shmview_create(conn, "s", (uint64_t)1 << 50, &sealed, &s), NO_SPACE,
            "memory and swap hold");
    drop(make_sealed("s", 10), "s"); /* the name is free */
    end();
}
END_TEST

START_TEST(descriptors_that_run_out_are_named)
{
    struct shmview_segment *s[200], *more;
    char name[16];
    int n = 0, r = 0;
    daemon_start_limited(&d, 512);
    conn = client_connect(&d);
    for (; n < 200 && r == 0; n += r == 0) {
        snprintf(name, sizeof name, "s%d", n);
        r = shmview_create(conn, name, 10, &sealed, &s[n]);
    }
    client_expect(r, -SHMVIEW_ERR_LIMIT, "needs 3 descriptors of the daemon", "shmview_create");
    ck_assert_int_gt(n, 10);
    REFUSED(shmview_create(conn, "more", 10, &sealed, &more), LIMIT, "RLIMIT_NOFILE");
    OK(shmview_detach(client_create(conn, "file", 10))); /* others need none */
    struct shmview_connection *second = client_connect(&d);
    OK(shmview_disconnect(second));
    drop(s[0], "s0");
    drop(make_sealed("more", 10), "more");
    for (int i = 1; i < n; i++) {
        snprintf(name, sizeof name, "s%d", i);
        drop(s[i], name);
    }
    end();
}
END_TEST

/* --- Requests and configuration ------------------------------------------- */

START_TEST(unknown_backings_are_refused)
{
    struct raw raw;
    struct shmview_segment *s;
    struct shmview_create_options wrong = sealed;
    begin();
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", "{'name':'s','size':1,'backing':'iron'}",
                "org.varlink.service.InvalidParameter", "backing");
    raw_close(&raw);
    wrong.backing = 3;
    REFUSED(shmview_create(conn, "s", 1, &wrong, &s), INVALID, "backing 3");
    end();
}
END_TEST

static uint32_t backing_of(const char *name)
{
    const struct shmview_description *told;
    OK(shmview_describe(conn, name, &told));
    uint32_t backing = told->backing;
    shmview_description_free(told);
    return backing;
}

START_TEST(configured_backings)
{
    daemon_configure("{'defaults':{'backing':'sealed'},'segments':["
                     "{'name':'a','size':100},{'name':'b','size':100,'backing':'file'}]}");
    daemon_start_configured(&d, daemon_config_path());
    conn = client_connect(&d);
    struct shmview_create_options file = sealed;
    struct shmview_segment *s = client_create(conn, "c", 10), *f;
    file.backing = SHMVIEW_BACKING_FILE;
    OK(shmview_create(conn, "d", 10, &file, &f));
    ck_assert_uint_eq(backing_of("a"), SHMVIEW_BACKING_SEALED);
    ck_assert_uint_eq(backing_of("b"), SHMVIEW_BACKING_FILE);
    ck_assert_uint_eq(backing_of("c"), SHMVIEW_BACKING_SEALED);
    ck_assert_uint_eq(backing_of("d"), SHMVIEW_BACKING_FILE);
    daemon_configure("{'segments':[{'name':'a','size':100,'backing':'file'}]}");
    daemon_reload(&d);
    ck_assert(daemon_said(&d, "backing file, not sealed"));
    OK(shmview_detach(s));
    drop(f, "d");
    OK(shmview_remove(conn, "a"));
    OK(shmview_remove(conn, "b"));
    unlink(daemon_config_path());
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_hostile_client_cannot_change_sizes),
        SUITE_TEST(objects_are_sealed_and_committed),
        SUITE_TEST(slots_beyond_the_first_page_are_committed),
        SUITE_TEST(removed_while_attached),
        SUITE_TEST(backing_is_told),
        SUITE_TEST(links_do_not_have_the_name),
        SUITE_TEST(larger_than_dev_shm),
        SUITE_TEST(memory_that_is_not_there_is_refused),
        SUITE_TEST(descriptors_that_run_out_are_named),
        SUITE_TEST(unknown_backings_are_refused),
        SUITE_TEST(configured_backings),
        SUITE_END,
    };
    return suite_main("sealed", tests);
}
