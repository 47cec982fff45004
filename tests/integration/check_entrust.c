/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of lifetime creator that a worker entrusts to a process above it. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/access.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    AWAIT(daemon_objects(&d) == 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static bool exists(const char *name)
{
    struct shmview_segment *seg;
    int r = shmview_attach(conn, name, SHMVIEW_PEEK, 0, &seg);
    if (r == 0)
        OK(shmview_detach(seg));
    else
        REFUSED(r, NOT_FOUND, name);
    return r == 0;
}

/* How many processes the daemon watches. */
static unsigned watched(void)
{
    char path[40], link[300], target[100];
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        n += strstr(target, "pidfd") != NULL;
    }
    closedir(dir);
    return n;
}

/* --- Those who work ------------------------------------------------------ */

/* Creates the segment called name, entrusts it to the parent process, and ends. */
static void work(struct child *me, void *name)
{
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_create_with(c, name, 10, SHMVIEW_CREATOR, 0);
    OK(shmview_entrust(s, (uint32_t)getppid()));
    REFUSED(shmview_entrust(s, (uint32_t)getppid()), DENIED, name);
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
    (void)me;
}

static void have_it_made(const char *name)
{
    struct child worker;
    child_start(&worker, work, (void *)(uintptr_t)name);
    child_wait(&worker);
}

/* The first of a family, which knows nothing of shmview itself. */
static void lead(struct child *me, void *arg)
{
    (void)arg;
    have_it_made("a");
    have_it_made("b");
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(outlives_its_creator)
{
    struct child first;
    begin();
    child_start(&first, lead, NULL);
    child_hear(&first, 1);
    ck_assert(exists("a") && exists("b"));
    OK(shmview_remove(conn, "b"));
    child_kill(&first);
    AWAIT(!exists("a"));
    child_start(&first, lead, NULL);
    child_hear(&first, 1);
    child_cue(&first);
    child_wait(&first);
    AWAIT(!exists("a") && !exists("b"));
    end();
}
END_TEST

START_TEST(survives_the_daemon)
{
    struct child first;
    begin();
    for (int i = 0; i < 3;
         i++) { /* dies: while there is no daemon, under the next, the one after */
        child_start(&first, lead, NULL);
        child_hear(&first, 1);
        daemon_kill(&d);
        if (i == 0)
            child_kill(&first);
        daemon_restart(&d);
        ck_assert(exists("a") == (i > 0));
        if (i == 2) {
            daemon_kill(&d);
            daemon_restart(&d);
        }
        if (i > 0)
            child_kill(&first);
        AWAIT(!exists("a") && !exists("b"));
    }
    end();
}
END_TEST

/* A daemon has a descriptor for each family, not for each segment, and gives it back. */
START_TEST(costs_one_descriptor)
{
    struct child first;
    char name[20];
    begin();
    unsigned before = watched();
    have_it_made("kept");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "s%d", i);
        have_it_made(name);
    }
    AWAIT(watched() <= before + 1);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "s%d", i);
        OK(shmview_remove(conn, name));
    }
    OK(shmview_remove(conn, "kept"));
    child_start(&first, lead, NULL);
    child_hear(&first, 1); /* ours was idle by then */
    AWAIT(watched() <= before + 1);
    child_kill(&first);
    AWAIT(watched() == before);
    end();
}
END_TEST

static void sleep_on(struct child *me, void *arg)
{
    (void)arg;
    child_pause(me);
}

START_TEST(only_to_an_ancestor)
{
    struct child other;
    begin();
    struct shmview_segment *s = client_create_with(conn, "s", 10, SHMVIEW_CREATOR, 0);
    child_start(&other, sleep_on, NULL);
    uint32_t pid = (uint32_t)other.pid;
    REFUSED(shmview_entrust(s, pid), DENIED, "no ancestor");
    child_kill(&other);
    REFUSED(shmview_entrust(s, pid), DENIED, "no ancestor");
    REFUSED(shmview_entrust(s, 1), DENIED, "no ancestor");
    REFUSED(shmview_entrust(s, INT32_MAX), DENIED, "no ancestor");
    REFUSED(shmview_entrust(s, 0), INVALID, "no process");
    REFUSED(shmview_entrust(s, UINT32_MAX), INVALID, "no process");
    struct shmview_connection *second = client_connect(&d);
    struct shmview_segment *again = client_attach(second, "s", SHMVIEW_WRITE);
    REFUSED(shmview_entrust(again, (uint32_t)getpid()), DENIED, "only the client that created 's'");
    OK(shmview_detach(again));
    struct shmview_segment *attached = client_create(conn, "attached", 10);
    REFUSED(shmview_entrust(attached, (uint32_t)getpid()), DENIED, "lifetime creator");
    OK(shmview_detach(attached));
    /* to this very process: then a connection's end is not the creator's */
    OK(shmview_entrust(s, (uint32_t)getpid()));
    OK(shmview_detach(s));
    OK(shmview_disconnect(conn));
    conn = second;
    OK(shmview_ping(conn));
    ck_assert(exists("s"));
    OK(shmview_remove(conn, "s"));
    s = client_create_with(conn, "s", 10, SHMVIEW_CREATOR, 0);
    OK(shmview_remove(conn, "s"));
    REFUSED(shmview_entrust(s, (uint32_t)getpid()), NOT_FOUND, "'s'");
    OK(shmview_detach(s));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(outlives_its_creator),
        SUITE_TEST(survives_the_daemon),
        SUITE_TEST(costs_one_descriptor),
        SUITE_TEST(only_to_an_ancestor),
        SUITE_END,
    };
    return suite_main("entrust", tests);
}
