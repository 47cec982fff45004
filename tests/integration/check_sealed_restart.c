/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper holds the memory of sealed segments while no daemon runs. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define BYTES 1000000

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

static void use(struct shmview_segment *segment)
{
    volatile char *data = shmview_data(segment);
    OK(shmview_lock(segment));
    for (size_t i = 0; i < BYTES; i += 4096)
        data[i] = (char)(data[i] + 1);
    OK(shmview_unlock(segment));
}

/* The process that holds the memory while no daemon runs; 0: there is none. */
static pid_t keeper(void)
{
    char path[300], line[400], name[32], link[64], want[64] = "";
    pid_t found = 0;
    snprintf(path, sizeof path, "%s.keeper", d.socket);
    DIR *dir = opendir("/proc");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; !found && (e = readdir(dir));) {
        FILE *f;
        snprintf(line, sizeof line, "/proc/%s/comm", e->d_name);
        if (!(f = fopen(line, "re")))
            continue;
        bool is_keeper = fgets(name, sizeof name, f) && strcmp(name, "shmview-keeper\n") == 0;
        fclose(f);
        snprintf(line, sizeof line, "/proc/%s/fd/0", e->d_name);
        ssize_t n = is_keeper ? readlink(line, link, sizeof link - 1) : -1;
        if (n < 0)
            continue;
        link[n] = '\0';
        f = fopen("/proc/net/unix", "re");
        while (!found && fgets(line, sizeof line, f)) {
            unsigned long inode = 0;
            sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode);
            snprintf(want, sizeof want, "socket:[%lu]", inode);
            if (strstr(line, path) && strcmp(want, link) == 0)
                found = (pid_t)atoi(e->d_name);
        }
        fclose(f);
    }
    closedir(dir);
    return found;
}

/* Kills the keeper, and waits until it has ended. The daemon may have replaced it by then. */
static void kill_keeper(void)
{
    pid_t pid = keeper();
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    AWAIT(keeper() != pid);
}

/* How many objects the keeper holds. */
static unsigned kept(void)
{
    pid_t pid = keeper();
    return pid ? backing_objects(pid) : 0;
}

static void restart(bool kill)
{
    if (kill)
        daemon_kill(&d);
    else
        daemon_leave(&d);
    daemon_restart(&d);
}

/* Locks "s" and stays until it is killed. */
static void holder(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "s", SHMVIEW_WRITE);
    OK(shmview_lock(s));
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(they_survive_the_daemon)
{
    struct child child;
    struct shmview_segment *s, *other, *many[60];
    begin();
    ck_assert_int_eq(keeper(), 0); /* not before it is needed */
    s = make_sealed("s", BYTES);
    ck_assert_int_gt(keeper(), 0);
    OK(shmview_define(s, "layout", NULL, 0));
    strcpy(shmview_data(s), "bytes");
    for (int i = 0; i < 60; i++) /* beyond the first page of the control object */
        many[i] = client_attach(conn, "s", SHMVIEW_READ);
    for (int kill = 0; kill < 2; kill++) {
        OK(shmview_lock(s));
        restart(kill);
        other = client_attach(conn, "s", SHMVIEW_WRITE);
        ck_assert_str_eq(shmview_data(other), "bytes");
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_switch(s, "layout"));
        OK(shmview_unlock(s));
        OK(shmview_lock(other));
        OK(shmview_unlock(other));
        OK(shmview_detach(other));
        ck_assert_uint_ge(backing_objects(d.pid), 3);
    }
    child_start(&child, holder, NULL);
    child_hear(&child, 1);
    daemon_kill(&d);
    child_kill(&child); /* while nobody notices */
    daemon_restart(&d);
    ck_assert_int_eq(shmview_lock(s), 1); /* the last owner died inside */
    OK(shmview_unlock(s));
    for (int i = 0; i < 60; i++)
        OK(shmview_detach(many[i]));
    ck_assert(!daemon_said(&d, "is lost"));
    ck_assert(!daemon_said(&d, "repaired"));
    drop(s, "s");
    end();
}
END_TEST

START_TEST(a_keeper_that_is_killed_is_replaced)
{
    begin();
    struct shmview_segment *first = make_sealed("first", 10), *second;
    strcpy(shmview_data(first), "1");
    kill_keeper();
    second = make_sealed("second", 10);
    restart(true);
    struct shmview_segment *again = client_attach(conn, "first", SHMVIEW_READ);
    ck_assert_str_eq(shmview_data(again), "1");
    OK(shmview_detach(again));
    OK(shmview_detach(client_attach(conn, "second", SHMVIEW_READ)));
    drop(first, "first");
    drop(second, "second");
    end();
}
END_TEST

START_TEST(a_keeper_is_replaced_while_nothing_happens)
{
    begin();
    struct shmview_segment *s = make_sealed("s", 10);
    strcpy(shmview_data(s), "1");
    kill_keeper();
    AWAIT(kept() == 3); /* by another one */
    restart(true);
    struct shmview_segment *again = client_attach(conn, "s", SHMVIEW_READ);
    ck_assert_str_eq(shmview_data(again), "1");
    OK(shmview_detach(again));
    drop(s, "s");
    end();
}
END_TEST

#define MANY 150 /* segments, whose objects do not fit into the queue of a socket */

START_TEST(a_keeper_that_hangs_delays_nobody)
{
    struct shmview_segment *s[MANY], *gone;
    char name[16];
    begin();
    s[0] = make_sealed("0", 10);
    gone = make_sealed("gone", 10);
    AWAIT(kept() == 6);
    ck_assert_int_eq(kill(keeper(), SIGSTOP), 0);
    int64_t began = await_now_ns(), worst = 0;
    for (int i = 1; i < MANY; i++) {
        int64_t before = await_now_ns();
        snprintf(name, sizeof name, "%d", i);
        s[i] = make_sealed(name, 10);
        int64_t took = await_now_ns() - before;
        worst = took > worst ? took : worst;
    }
    drop(gone, "gone");
    ck_assert_msg(worst < 900000000, "a creation took %jd ns", (intmax_t)worst);
    ck_assert_int_lt(await_now_ns() - began, 4000000000);
    AWAIT(daemon_said(&d, "the keeper of sealed segments accepts nothing"));
    ck_assert_int_eq(kill(keeper(), SIGCONT), 0);
    AWAIT(kept() == 3 * MANY);
    AWAIT(daemon_said(&d, "accepts descriptors again"));
    restart(true);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        drop(s[i], name);
    }
    AWAIT(kept() == 0);
    end();
}
END_TEST

/* Kills the keeper and the daemon, which does not notice the first. */
static void kill_both(void)
{
    process_stop(d.pid);
    kill_keeper();
    daemon_kill(&d);
}

static unsigned own_descriptors(void)
{
    return backing_objects(getpid());
}

START_TEST(what_nobody_kept_is_lost)
{
    struct shmview_segment *s, *f, *none;
    begin();
    s = make_sealed("s", BYTES);
    f = client_create_with(conn, "f", 10, SHMVIEW_MANUAL, 0);
    OK(shmview_detach(s));
    ck_assert_uint_eq(own_descriptors(), 0);
    kill_both();
    daemon_restart(&d);
    ck_assert(daemon_said(&d, "its sealed memory was not kept"));
    REFUSED(shmview_attach(conn, "s", SHMVIEW_READ, 0, &none), NOT_FOUND, "");
    OK(shmview_detach(client_attach(conn, "f", SHMVIEW_READ)));
    s = make_sealed("s", BYTES); /* the name is free */
    use(s);
    drop(f, "f");
    drop(s, "s");
    end();
}
END_TEST

/* Attaches "s" for reading and stays until it is killed. */
static void reader(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    ck_assert_str_eq(shmview_data(client_attach(c, "s", SHMVIEW_READ)), "bytes");
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(clients_have_what_nobody_kept)
{
    struct child child;
    begin();
    struct shmview_segment *s = make_sealed("s", BYTES), *bare, *other;
    struct shmview_create_options no_lock = sealed;
    no_lock.flags = SHMVIEW_NO_LOCK;
    OK(shmview_create(conn, "bare", 10, &no_lock, &bare));
    OK(shmview_define(s, "layout", NULL, 0));
    strcpy(shmview_data(s), "bytes");
    strcpy(shmview_data(bare), "bare");
    OK(shmview_lock(s));
    kill_both();
    daemon_restart(&d);
    ck_assert(!daemon_said(&d, "is lost"));
    AWAIT(kept() == 4); /* a new keeper has them */
    other = client_attach(conn, "s", SHMVIEW_WRITE);
    ck_assert_str_eq(shmview_data(other), "bytes");
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_switch(s, "layout"));
    OK(shmview_unlock(s));
    OK(shmview_detach(other));
    drop(bare, "bare");
    child_start(&child, reader, NULL);
    child_hear(&child, 1);
    OK(shmview_detach(s));
    ck_assert_uint_eq(own_descriptors(), 0);
    kill_both(); /* a reader has the memory, too, although it cannot write all of it */
    daemon_restart(&d);
    ck_assert(!daemon_said(&d, "is lost"));
    s = client_attach(conn, "s", SHMVIEW_WRITE);
    use(s);
    child_kill(&child);
    drop(s, "s");
    end();
}
END_TEST

/* The library leaves most descriptors to the program. */
START_TEST(clients_hold_few_descriptors)
{
    struct shmview_segment *s[30];
    struct rlimit limit, all;
    char name[16];
    begin();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    limit = all;
    limit.rlim_cur = 160;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "%d", i);
        s[i] = make_sealed(name, 10);
    }
    ck_assert_uint_eq(own_descriptors(), 160 / 8 / 3 * 3);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "%d", i);
        drop(s[i], name);
    }
    ck_assert_uint_eq(own_descriptors(), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(they_survive_the_daemon),
        SUITE_TEST(a_keeper_that_is_killed_is_replaced),
        SUITE_TEST(a_keeper_is_replaced_while_nothing_happens),
        SUITE_TEST(a_keeper_that_hangs_delays_nobody),
        SUITE_TEST(what_nobody_kept_is_lost),
        SUITE_TEST(clients_have_what_nobody_kept),
        SUITE_TEST(clients_hold_few_descriptors),
        SUITE_END,
    };
    return suite_main("sealed_restart", tests);
}
