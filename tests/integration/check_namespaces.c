/* SPDX-License-Identifier: Apache-2.0 */
/* Pid namespaces, as containers have them: a daemon, a holder and a waiter, each of them outside,
 * in a namespace that others are in as well, or in one of its own. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/parties.h"
#include "support/suite.h"

enum where {
    OUTSIDE,
    INSIDE,
    APART,
    N_PLACES
};

static struct daemon d;
static int inside = -1; /* the namespace of INSIDE */
static pid_t first;     /* its first process */

static void go(enum where where)
{
    const int namespaces[] = {PROCESS_HERE, inside, PROCESS_APART};
    process_namespace(namespaces[where]);
}

/* Returns whether there can be namespaces. */
static bool begin(void)
{
    char path[40];
    process_namespace(PROCESS_APART);
    first = process_fork();
    process_namespace(PROCESS_HERE);
    if (first < 0) {
        puts("skipped: only root can have pid namespaces");
        return false;
    }
    if (first == 0) {
        pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d/ns/pid", first);
    inside = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(inside, 0);
    return true;
}

static void end(void)
{
    close(inside);
    process_kill(first);
}

/* Has the lock from the beginning to its death. On cue it sends a request. */
static void hold(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_create_with(c, "s", 100, SHMVIEW_MANUAL, 0);
    OK(shmview_lock(s));
    child_tell(me, 1);
    for (;;) {
        child_pause(me);
        OK(shmview_ping(c));
        child_tell(me, 2);
    }
}

static void await_lock(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
    child_tell(me, 1);
    ck_assert_int_eq(shmview_lock(s), SHMVIEW_OWNER_DIED);
    child_tell(me, 3);
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
}

static void restart(enum where where, bool kills)
{
    if (kills)
        daemon_kill(&d);
    else
        daemon_leave(&d);
    go(where);
    daemon_restart(&d);
    go(OUTSIDE);
}

static void expect_held(const char *when)
{
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
    int r = shmview_trylock(s);
    ck_assert_msg(r == -SHMVIEW_ERR_TIMED_OUT, "%s: %d: %s", when, r, shmview_error_text());
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
}

static void play(enum where daemon, enum where holder, enum where waiter, bool kills)
{
    char text[80];
    struct child h, w;
    go(daemon);
    daemon_start(&d);
    go(holder);
    child_start(&h, hold, NULL);
    child_hear(&h, 1);
    go(waiter);
    child_start(&w, await_lock, NULL);
    go(OUTSIDE);
    child_hear(&w, 1);
    for (int i = 0; i < 2; i++) {
        restart(daemon, kills);
        snprintf(text, sizeof text, "daemon %d, holder %d, waiter %d, %s, time %d", daemon, holder,
                 waiter, kills ? "killed" : "left", i);
        expect_held(text);
        if (i > 0)
            continue;
        child_cue(&h); /* it claims what it has; the second time it dies before that */
        child_hear(&h, 2);
        expect_held(text);
    }
    child_kill(&h);
    child_hear(&w, 3);
    child_wait(&w);
    daemon_stop(&d);
}

static void play_all(bool kills)
{
    if (!begin())
        return;
    for (int daemon = 0; daemon < N_PLACES; daemon++)
        for (int holder = 0; holder < N_PLACES; holder++)
            for (int waiter = 0; waiter < N_PLACES; waiter++)
                play((enum where)daemon, (enum where)holder, (enum where)waiter, kills);
    end();
}

START_TEST(daemons_that_leave)
{
    play_all(false);
}
END_TEST

START_TEST(daemons_that_are_killed)
{
    play_all(true);
}
END_TEST

int main(void)
{
    /* a leak detector in the daemon would look for itself in the /proc of another namespace */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    const struct suite_test tests[] = {
        SUITE_TEST(daemons_that_leave),
        SUITE_TEST(daemons_that_are_killed),
        SUITE_END,
    };
    return suite_main("namespaces", tests);
}
