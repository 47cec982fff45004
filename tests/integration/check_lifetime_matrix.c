/* SPDX-License-Identifier: Apache-2.0 */
/* docs/LIFECYCLE.md as a table: each lifetime, each end that a client's attachment can have, and a
 * daemon that is killed before that end, during it, or never. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/await.h"
#include "support/backing.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

enum fate {
    STAYS,   /* by its name */
    UNNAMED, /* the memory does */
    GONE,
    N_FATES
};

/* What the client does that has created the segment and is attached to it. */
enum act {
    DETACHES,
    DISCONNECTS, /* after it has detached */
    HANGS_UP,    /* and lives on */
    RETURNS,     /* after it has hung up */
    EXITS,
    IS_KILLED,
    EXECS,
    FORKS_AND_EXECS,  /* its child has done nothing yet */
    CLONES_AND_EXECS, /* like that, but its child is made without handlers of fork */
    FORKS,            /* and is killed; its child has done nothing yet */
    FORKS_TO_USE,     /* and is killed; its child has used the segment */
    REMOVES,          /* and stays attached */
    HAS_REMOVED,      /* by another one, and stays attached */
    N_ACTS
};

/* When the daemon is killed. */
enum restart {
    NEVER = 1,
    BEFORE = 2,    /* and the client has spoken to the next one */
    UNHEARD = 4,   /* and the client has not */
    MEANWHILE = 8, /* there is none until it has happened */
    AFTER = 16,
};

struct row {
    unsigned restarts;
    unsigned attachments; /* that there are then, where it is there at all */
    enum fate fates[3];   /* of attached, manual, creator */
    enum fate last[3];    /* once everybody who had it has ended */
};

#define ANY (NEVER | BEFORE | UNHEARD | MEANWHILE | AFTER)
/* Asks the daemon something, so that there must be one. */
#define ASKS (NEVER | BEFORE | UNHEARD | AFTER)

/* clang-format off */
static const struct row rows[N_ACTS] = {
    [DETACHES]         = {ASKS, 0, {GONE, STAYS, STAYS},         {GONE, STAYS, GONE}},
    [DISCONNECTS]      = {ASKS, 0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [HANGS_UP]         = {ANY,  1, {STAYS, STAYS, STAYS},        {GONE, STAYS, GONE}},
    [RETURNS]          = {ASKS, 1, {STAYS, STAYS, STAYS},        {GONE, STAYS, GONE}},
    [EXITS]            = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [IS_KILLED]        = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [EXECS]            = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [FORKS_AND_EXECS]  = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [CLONES_AND_EXECS] = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [FORKS]            = {ANY,  0, {GONE, STAYS, GONE},          {GONE, STAYS, GONE}},
    [FORKS_TO_USE]     = {ANY,  1, {STAYS, STAYS, UNNAMED},      {GONE, STAYS, GONE}},
    [REMOVES]          = {ASKS, 1, {UNNAMED, UNNAMED, UNNAMED},  {GONE, GONE, GONE}},
    [HAS_REMOVED]      = {ASKS, 1, {UNNAMED, UNNAMED, UNNAMED},  {GONE, GONE, GONE}},
};
/* clang-format on */

static struct daemon d;
static struct shmview_connection *conn;

/* --- What there is ------------------------------------------------------- */

/* Asks without attaching: that would keep what is to go. */
static enum fate fate(unsigned *ret_attachments)
{
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
    const struct shmview_stats *stats;
    OK(shmview_stats_get(conn, &o, &stats));
    enum fate f = GONE;
    *ret_attachments = 0;
    if (stats->n_segments) {
        f = stats->segments[0]->is_named ? STAYS : UNNAMED;
        *ret_attachments = (unsigned)stats->segments[0]->attachments;
    }
    ck_assert_int_eq(stats->attachments, *ret_attachments);
    ck_assert_uint_le(stats->n_segments, 1);
    shmview_stats_free(stats);
    return f;
}

static void expect(const char *when, enum fate wanted, unsigned n_attachments)
{
    static const char *const names[N_FATES] = {"stays", "stays without its name", "is gone"};
    unsigned n;
    enum fate f;
    int64_t deadline = await_now_ns() + AWAIT_NS;
    do /* its end was noticed, and what it had is ended in slices */
        f = fate(&n);
    while ((f != wanted || n > n_attachments) && await_again(deadline));
    ck_assert_msg(f == wanted, "%s: it %s, but %s", when, names[wanted], names[f]);
    ck_assert_msg(n == n_attachments, "%s: %u attachments, not %u", when, n, n_attachments);
    AWAIT(daemon_objects(&d) == (f == GONE ? 0 : 3)); /* a thread may be at it */
    if (!backing_is_sealed())                         /* a sealed object has no name */
        ck_assert_int_eq(daemon_has_data(&d, "s"), f == STAYS);
}

/* --- The client ---------------------------------------------------------- */

struct client {
    enum act act;
    enum restart restart;
    uint32_t lifetime;
    struct shmview_connection *connection;
    struct shmview_segment *segment;
};

/* Goes on in a child, to be killed itself. */
static void fork_off(struct child *me, struct client *c)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid) {
        pause();
        return;
    }
    if (c->act == FORKS_TO_USE) {
        OK(shmview_lock(c->segment));
        OK(shmview_unlock(c->segment));
    }
    child_tell(me, 2);
    child_pause(me);
}

/* The library itself does not: whatever is a socket. */
static void hang_up(const struct child *me)
{
    struct stat st;
    for (int fd = 3; fd < 100; fd++)
        if (fd != me->fd && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
            close(fd);
}

/* A child that does nothing, until the test hangs up. */
static void leave_child(struct child *me, pid_t pid)
{
    ck_assert_int_ge(pid, 0);
    if (pid)
        return;
    char byte;
    _exit((int)read(me->fd, &byte, 1));
}

static void become_another(void)
{
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

static void act(struct child *me, struct client *c)
{
    switch (c->act) {
    case DETACHES:
        OK(shmview_detach(c->segment));
        break;
    case DISCONNECTS:
        OK(shmview_detach(c->segment));
        OK(shmview_disconnect(c->connection));
        break;
    case HANGS_UP:
        hang_up(me);
        break;
    case RETURNS:
        hang_up(me);
        OK(shmview_ping(c->connection));
        break;
    case REMOVES:
        OK(shmview_remove(c->connection, "s"));
        break;
    case FORKS_AND_EXECS:
        leave_child(me, fork());
        become_another();
        break;
    case CLONES_AND_EXECS:
        leave_child(me, _Fork());
        become_another();
        break;
    case EXECS:
        become_another();
        break;
    case FORKS:
    case FORKS_TO_USE:
        fork_off(me, c);
        break;
    default:
        break;
    }
}

/* Creates, acts, and stays, unless it is to exit. */
static void live(struct child *me, void *arg)
{
    struct client *c = arg;
    c->connection = client_connect(&d);
    c->segment = client_create_with(c->connection, "s", 5000, c->lifetime, 0);
    child_tell(me, 1);
    child_pause(me);
    if (c->restart == BEFORE) {
        OK(shmview_ping(c->connection));
        child_tell(me, 1);
        child_pause(me);
    }
    act(me, c);
    if (c->act == EXITS)
        return;
    child_tell(me, 2);
    child_pause(me);
}

/* --- One field of the table ---------------------------------------------- */

static void restart(void)
{
    daemon_kill(&d);
    daemon_restart(&d);
}

static bool forks(enum act a)
{
    return a == FORKS || a == FORKS_TO_USE;
}

/* Until it has happened. */
static void happen(struct child *child, const struct client *c)
{
    if (forks(c->act)) {
        child_cue(child);
        child_hear(child, 2);
    }
    if (c->restart == MEANWHILE)
        daemon_kill(&d);
    if (c->act == IS_KILLED || forks(c->act))
        process_kill(child->pid);
    else if (c->act == HAS_REMOVED)
        OK(shmview_remove(conn, "s"));
    else
        child_cue(child);
    if (c->act == EXITS)
        ck_assert_int_eq(process_wait(child->pid), 0);
    else if (c->act == DETACHES || c->act == DISCONNECTS || c->act == HANGS_UP ||
             c->act == RETURNS || c->act == REMOVES)
        child_hear(child, 2);
    if (c->restart == MEANWHILE)
        daemon_restart(&d);
}

/* Until nobody is left of it; its child notices that its socket has ended. */
static void end_all(struct child *child, enum act a)
{
    if (a != IS_KILLED && a != EXITS && !forks(a))
        process_kill(child->pid);
    close(child->fd);
}

static void run_field(enum act a, int lifetime, enum restart when)
{
    static const char *const names[] = {"attached", "manual", "creator"};
    static const uint32_t lifetimes[] = {SHMVIEW_ATTACHED, SHMVIEW_MANUAL, SHMVIEW_CREATOR};
    const struct row *row = &rows[a];
    struct client client = {.act = a, .restart = when, .lifetime = lifetimes[lifetime]};
    struct child child;
    char text[64];
    enum fate f = row->fates[lifetime], last = row->last[lifetime];
    unsigned n = f == GONE ? 0 : row->attachments;
    child_start(&child, live, &client);
    child_hear(&child, 1);
    if (when == BEFORE || when == UNHEARD)
        restart();
    if (when == BEFORE) {
        child_cue(&child);
        child_hear(&child, 1);
    }
    happen(&child, &client);
    snprintf(text, sizeof text, "%s, killed %d", names[lifetime], when);
    expect(text, f, n);
    if (when == AFTER) {
        restart();
        expect(text, f, n);
    }
    end_all(&child, a);
    snprintf(text, sizeof text, "%s, killed %d, at last", names[lifetime], when);
    if (f != last || n)
        expect(text, last, 0);
    if (last == STAYS)
        OK(shmview_remove(conn, "s"));
    expect(text, GONE, 0);
}

static void run_row(enum act a)
{
    daemon_start(&d);
    conn = client_connect(&d);
    for (int lifetime = 0; lifetime < 3; lifetime++)
        for (unsigned when = NEVER; when <= AFTER; when *= 2)
            if (rows[a].restarts & when)
                run_field(a, lifetime, (enum restart)when);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

#define ROW(name, act)                                                                             \
    START_TEST(name)                                                                               \
    {                                                                                              \
        run_row(act);                                                                              \
    }                                                                                              \
    END_TEST

ROW(detaches, DETACHES)
ROW(disconnects, DISCONNECTS)
ROW(hangs_up, HANGS_UP)
ROW(returns, RETURNS)
ROW(exits, EXITS)
ROW(is_killed, IS_KILLED)
ROW(execs, EXECS)
ROW(forks_and_execs, FORKS_AND_EXECS)
ROW(clones_and_execs, CLONES_AND_EXECS)
ROW(forks_and_is_killed, FORKS)
ROW(forks_to_use_it_and_is_killed, FORKS_TO_USE)
ROW(removes_it, REMOVES)
ROW(has_it_removed, HAS_REMOVED)

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(detaches),
        SUITE_TEST(disconnects),
        SUITE_TEST(hangs_up),
        SUITE_TEST(returns),
        SUITE_TEST(exits),
        SUITE_TEST(is_killed),
        SUITE_TEST(execs),
        SUITE_TEST(forks_and_execs),
        SUITE_TEST(clones_and_execs),
        SUITE_TEST(forks_and_is_killed),
        SUITE_TEST(forks_to_use_it_and_is_killed),
        SUITE_TEST(removes_it),
        SUITE_TEST(has_it_removed),
        SUITE_END,
    };
    return suite_main("lifetime_matrix", tests);
}
