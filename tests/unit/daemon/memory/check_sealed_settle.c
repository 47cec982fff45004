/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how sealed.c gives its objects to a service manager, whose part the tests play. */
#include "daemon/memory/sealed.h"

#include "unit/unit.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/util.h"
#include "daemon/base/notify.h"
#include "daemon/memory/keeping.h"

#define OBJECTS 1000

static int manager;
static ino_t inodes[OBJECTS];

/* Opens the socket of a manager, which reads nothing yet. Returns false if this build knows no
 * manager. */
static bool begin(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager, 0);
    socklen_t n = sizeof address.sun_family; /* so the kernel chooses an abstract name */
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, n), 0);
    n = sizeof address;
    ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&address, &n), 0);
    address.sun_path[0] = '@';
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    return notify_is_managed();
}

/* Reads all messages, and thereby drops their descriptors, until the socket is shut down. */
static void *read_all(void *arg)
{
    char text[200];
    (void)arg;
    while (recv(manager, text, sizeof text, 0) > 0)
        ;
    return NULL;
}

/* Creates objects, the first of which fill the queue of the manager. */
static void create_all(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct stat st;
        int fd = sealed_create(1, false, &st);
        ck_assert_int_ge(fd, 0);
        close(fd);
        inodes[i] = st.st_ino;
    }
}

START_TEST(many_are_given_in_slices)
{
    pthread_t reader;
    unsigned n_slices = 0;
    int r;
    if (!begin()) {
        close(manager);
        return;
    }
    keeping_init("unit");
    create_all();
    ck_assert_int_eq(sealed_settle(), -EAGAIN);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_all, NULL), 0);
    for (unsigned i = 0; (r = sealed_settle()) != SEALED_SETTLED && i < 60000; i++) {
        n_slices += r == SEALED_MORE;
        if (r < 0)
            usleep(1000);
    }
    ck_assert_int_eq(r, SEALED_SETTLED);
    ck_assert_uint_gt(n_slices, 1);
    for (unsigned i = 0; i < OBJECTS; i++)
        close(sealed_take(inodes[i]));
    sealed_end();
    shutdown(manager, SHUT_RD);
    pthread_join(reader, NULL);
    close(manager);
}
END_TEST

UNIT_MAIN("sealed_settle", UNIT_TEST(many_are_given_in_slices))
