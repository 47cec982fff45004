/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon ends at its n-th point (points.c), for every n: while it starts, serves, takes over
 * from another daemon, and exits. The keeper starts another daemon each time. Clients must lose
 * nothing but time.
 *
 * $SHMVIEW_CRASH_PART=K/N tries only the K-th of every N points; without it, every point. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/freeze.h>

#include "crash/world.h"
#include "support/await.h"
#include "support/client.h"
#include "support/suite.h"

#define POINTS_MOST 20000 /* far more than a daemon has */

static struct world w;
static struct thing *m, *big, *old_p, *new_p, *c, *v;
static struct child holder, victim;
static struct shmview_segment *peek;

/* --- Other processes ----------------------------------------------------- */

static struct shmview_connection *connect_child(void)
{
    struct shmview_connection *conn = NULL;
    AWAIT(shmview_connect(w.keeper.daemon.socket, SHMVIEW_CONNECT_NO_START, &conn) == 0);
    return conn;
}

/* A child: holds the lock of "m" until its cue, across all deaths of daemons. */
static void hold(struct child *me, void *arg)
{
    struct shmview_segment *s = NULL;
    struct shmview_connection *conn = connect_child();
    (void)arg;
    DONE(shmview_attach(conn, "m", SHMVIEW_WRITE, 0, &s));
    OK(shmview_lock(s));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_trylock(s)); /* nested: this thread still holds it */
    OK(shmview_unlock(s));
    OK(shmview_unlock(s));
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    DONE(shmview_ping(conn));
    OK(shmview_disconnect(conn));
}

/* A child: creates "c", and holds the lock of "v" until it is killed. */
static void fall(struct child *me, void *arg)
{
    struct shmview_create_options o = {
        .struct_bytes = sizeof o, .lifetime = SHMVIEW_CREATOR, .backing = world_backing()};
    struct shmview_segment *s = NULL, *mine = NULL;
    struct shmview_connection *conn = connect_child();
    (void)arg;
    int r = AGAIN(shmview_create(conn, "c", 100, &o, &mine));
    if (r == -SHMVIEW_ERR_EXISTS) /* the request whose reply was lost created it */
        r = AGAIN(shmview_attach(conn, "c", SHMVIEW_WRITE, 0, &mine));
    OK(r);
    DONE(shmview_attach(conn, "v", SHMVIEW_WRITE, 0, &s));
    OK(shmview_lock(s));
    for (int i = 0; i < 100; i++) /* as world.c fills it */
        ((char *)shmview_data(mine))[i] = (char)('c' + 100 + i);
    child_tell(me, 1);
    child_pause(me);
}

/* --- The script ---------------------------------------------------------- */

static void build(void)
{
    int fd;
    m = world_create(&w, "m", 4096, SHMVIEW_MANUAL);
    world_define(&w, m, "float");
    world_define(&w, m, "other");
    world_set_mode(&w, m, 0640);
    big = world_create(&w, "big", 1 << 20, SHMVIEW_ATTACHED);
    if (world_backing() == SHMVIEW_BACKING_SEALED)
        world_freeze(&w, big, 0);
    child_start(&holder, hold, NULL);
    child_hear(&holder, 1);
    m->slots++;
    m->is_locked = true;
    world_check(&w, false);
    old_p = world_create(&w, "p", 100, SHMVIEW_MANUAL);
    world_define(&w, old_p, "l");
    OK(shmview_lock(old_p->handle));
    DONE(shmview_switch(old_p->handle, "l"));
    OK(shmview_unlock(old_p->handle));
    world_remove(&w, old_p);
    new_p = world_create(&w, "p", 200, SHMVIEW_MANUAL);
    if (world_backing() == SHMVIEW_BACKING_SEALED)
        world_freeze(&w, new_p, SHMVIEW_FREEZE_FUTURE);
    v = world_create(&w, "v", 300, SHMVIEW_MANUAL);
    child_start(&victim, fall, NULL);
    child_hear(&victim, 1);
    c = &w.things[w.n_things++];
    *c = (struct thing){.name = "c",
                        .size = 100,
                        .lifetime = SHMVIEW_CREATOR,
                        .exists = true,
                        .named = true,
                        .slots = 1};
    v->slots++;
    v->is_locked = true;
    world_check(&w, false);
    DONE(shmview_attach(w.conn, "m", SHMVIEW_PEEK, 0, &peek));
    m->peeks++;
    world_check(&w, false);
    DONE(shmview_change_fd(m->handle, &fd));
    world_check(&w, false);
}

static bool is_gone(const char *name)
{
    struct shmview_segment *s = NULL;
    int r = AGAIN(shmview_attach(w.conn, name, SHMVIEW_PEEK, 0, &s));
    if (r != -SHMVIEW_ERR_NOT_FOUND)
        OK(r);
    OK(shmview_detach(s));
    return r;
}

/* After the victim's death: the next owner of its lock gets SHMVIEW_OWNER_DIED, and the segment
 * that it created is removed. */
static void mourn(void)
{
    v->slots--;
    v->is_locked = false;
    c->exists = false;
    ck_assert_int_eq(shmview_lock_until(v->handle, shmview_deadline(AWAIT_NS)), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(v->handle));
    AWAIT(is_gone("c"));
    world_check(&w, false);
}

static void take_down(void)
{
    int fd;
    struct shmview_phase phase;
    struct shmview_segment *s = NULL;
    DONE(shmview_phase_get(old_p->handle, &phase));
    ck_assert_str_eq(phase.name, "l");
    DONE(shmview_change_fd(m->handle, &fd));
    DONE(shmview_attach(w.conn, "m", SHMVIEW_READ, 0, &s));
    m->slots++;
    world_check(&w, false);
    OK(shmview_detach(s));
    m->slots--;
    OK(shmview_detach(peek));
    m->peeks--;
    DONE(shmview_ping(w.conn));
    world_check(&w, false);
    world_detach(&w, big);
    world_detach(&w, old_p);
    child_cue(&holder);
    child_wait(&holder);
    m->slots--;
    m->is_locked = false;
    world_check(&w, false);
    world_remove(&w, m);
    world_detach(&w, m);
    world_detach(&w, v);
}

static void begin(unsigned trial, unsigned ends_at)
{
    char name[32];
    w = (struct world){0};
    snprintf(name, sizeof name, "s%u", trial);
    keeper_start(&w.keeper, name, ends_at);
    w.conn = connect_child();
    DONE(shmview_ping(w.conn));
    keeper_find_instance(&w.keeper);
}

/* Stops the daemon while new_p is still attached. Returns whether a daemon ended at a point. */
static bool end(void)
{
    bool ended = keeper_stop(&w.keeper);
    OK(shmview_detach(new_p->handle));
    OK(shmview_disconnect(w.conn));
    if (world_backing() == SHMVIEW_BACKING_SEALED)
        process_await_none(); /* the process that keeps the memory ends, too */
    return ended;
}

/* --- Trials -------------------------------------------------------------- */

/* One trial: the first daemon ends at its point n while it starts, serves or exits. Returns false
 * if it has not reached point n. */
static bool serve(unsigned trial, unsigned n)
{
    begin(trial, n);
    build();
    child_kill(&victim);
    mourn();
    take_down();
    return end();
}

/* One trial: a daemon is killed; the next one takes over what living and dead clients have, and
 * ends at its point n. Later the daemon that runs gets SIGTERM. Returns false if no daemon has
 * reached point n. */
static bool take_over(unsigned trial, unsigned n)
{
    begin(trial, 0);
    build();
    world_check(&w, true);
    keeper_kill(&w.keeper);
    child_kill(&victim);
    w.keeper.is_armed = true;
    keeper_go_on(&w.keeper, n);
    mourn();
    DONE(shmview_ping(w.conn));
    keeper_replace(&w.keeper);
    w.keeper.is_armed = false;
    world_check(&w, true);
    take_down();
    return end();
}

/* Tries every point of this part until a trial reports that its point does not exist. */
static void try_all(const char *what, bool (*trial)(unsigned, unsigned))
{
    unsigned part = 1, parts = 1, trials = 0, n;
    const char *text = getenv("SHMVIEW_CRASH_PART");
    ck_assert(!text || sscanf(text, "%u/%u", &part, &parts) == 2);
    for (n = part; n < POINTS_MOST; n += parts) {
        if (getenv("SHMVIEW_CRASH_VERBOSE"))
            fprintf(stderr, "%s: point %u\n", what, n);
        if (!trial(trials++, n))
            break;
    }
    ck_assert_uint_gt(n, 50);
    printf("%s: %u trials, no point %u\n", what, trials, n);
}

START_TEST(while_it_serves)
{
    try_all("while it serves", serve);
}
END_TEST

START_TEST(while_it_takes_over)
{
    try_all("while it takes over", take_over);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(while_it_serves),
        SUITE_TEST(while_it_takes_over),
        SUITE_END,
    };
    return suite_main("crash_points", tests);
}
