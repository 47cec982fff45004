/* SPDX-License-Identifier: Apache-2.0 */
/* A program without standard input, output and error, as some that go to the background are:
 * nothing that the library keeps open gets one of their numbers. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/monitor.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

static struct daemon d;

static bool are_closed(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            return false;
    return true;
}

/* Without words: there is no standard error. */
static int use_everything(const char *name)
{
    struct shmview_connection *conn;
    struct shmview_segment *seg;
    struct shmview_monitor *monitor;
    int fd;
    if (shmview_connect(d.socket, 0, &conn) || !are_closed())
        return 2;
    if (shmview_create(conn, name, 4096, NULL, &seg) || !are_closed())
        return 3;
    if (shmview_change_fd(seg, &fd) || fd < 3 || !are_closed())
        return 4;
    if (shmview_notify(seg) || !are_closed())
        return 5;
    if (shmview_monitor_open(conn, NULL, &monitor) || !are_closed())
        return 6;
    shmview_monitor_close(monitor);
    if (shmview_detach(seg) || shmview_disconnect(conn))
        return 7;
    return 0;
}

static void run_without_any(struct child *me, void *arg)
{
    (void)me;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    int r = use_everything(arg);
    if (r)
        _exit(r);
}

START_TEST(none_is_taken)
{
    struct child child;
    char name[] = "s";
    daemon_start(&d);
    child_start(&child, run_without_any, name);
    child_wait(&child);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(none_is_taken),
        SUITE_END,
    };
    return suite_main("standard", tests);
}
