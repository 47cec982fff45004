/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that the daemon makes ahead: clients notice nothing but the time. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define BYTES  ((uint64_t)256 << 10)
#define ROUNDS 40

static struct daemon d;

static void start(void)
{
    daemon_configure("{'pool': '16MiB'}");
    daemon_start_configured(&d, daemon_config_path());
}

/* Creates a segment, which must be all zeroes, overwrites it, and detaches it. Returns a descriptor
 * of its data, which keeps the object. */
static int use_one(struct shmview_connection *conn, const char *name, ino_t *ret_inode)
{
    char path[200];
    struct stat st;
    struct shmview_segment *seg = client_create(conn, name, BYTES);
    const char *p = shmview_data(seg);
    ck_assert(p[0] == 0 && memcmp(p, p + 1, BYTES - 1) == 0);
    OK(shmview_lock(seg));
    memset(shmview_data(seg), 0xa5, BYTES);
    OK(shmview_unlock(seg));
    snprintf(path, sizeof path, "/dev/shm/shmview.%s/%s", d.instance, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_size, BYTES);
    *ret_inode = st.st_ino;
    OK(shmview_detach(seg));
    return fd;
}

/* By turns two clients get segments of one size. No object of one becomes that of another. */
START_TEST(contents_never_pass_on)
{
    ino_t seen[ROUNDS];
    int held[ROUNDS];
    start();
    struct shmview_connection *conns[] = {client_connect(&d), client_connect(&d)};
    for (int i = 0; i < ROUNDS; i++) {
        held[i] = use_one(conns[i % 2], i % 2 ? "one" : "other", &seen[i]);
        for (int k = 0; k < i; k++)
            ck_assert_uint_ne(seen[k], seen[i]);
    }
    AWAIT(daemon_objects(&d) > 0); /* nobody has a segment: these are ready */
    for (int i = 0; i < ROUNDS; i++)
        close(held[i]);
    OK(shmview_disconnect(conns[0]));
    OK(shmview_disconnect(conns[1]));
    daemon_stop(&d);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

/* A daemon that is killed leaves ready objects, which the next one removes. */
START_TEST(a_kill_leaves_nothing)
{
    ino_t inode;
    start();
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *kept = client_create_with(conn, "kept", 4096, SHMVIEW_MANUAL, 0);
    for (int i = 0; i < 10; i++)
        close(use_one(conn, "one", &inode));
    AWAIT(daemon_objects(&d) > 3);
    OK(shmview_detach(kept));
    OK(shmview_disconnect(conn));
    daemon_kill(&d);
    ck_assert_uint_gt(daemon_objects(&d), 3);
    daemon_restart(&d);
    ck_assert_uint_eq(daemon_objects(&d), 3);
    conn = client_connect(&d);
    kept = client_attach(conn, "kept", SHMVIEW_WRITE);
    for (int i = 0; i < 10; i++)
        close(use_one(conn, "one", &inode));
    OK(shmview_detach(kept));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    ck_assert_int_eq(unlink(daemon_config_path()), 0);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(contents_never_pass_on),
                                       SUITE_TEST(a_kill_leaves_nothing), SUITE_END};
    return suite_main("made_ahead", tests);
}
