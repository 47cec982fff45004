/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors that read too slowly, that use an event loop, or that belong to another user. */
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "integration/monitored.h"
#include "support/bystander.h"
#include "support/child.h"
#include "support/place.h"

/* --- Who does not listen ------------------------------------------------- */

START_TEST(slow_readers_lose)
{
    struct bystander bystander;
    begin();
    struct shmview_monitor *slow = monitor_open(NULL);
    bystander_start(&bystander, &d);
    const struct shmview_event *e;
    uint64_t told = 0, lost = 0, last = 0;
    struct shmview_segment *a = client_create(conn, "a", 1);
    for (int i = 0; i < 1500; i++) {
        OK(shmview_detach(client_attach(conn, "a", SHMVIEW_PEEK)));
        while (shmview_monitor_next(monitor, 0, &e) == 0)
            last = e->serial;
    }
    ck_assert_uint_gt(last, 3000);
    bystander_await_rounds(&bystander);
    bystander_stop(&bystander);
    uint64_t serial = 0, sum = 0;
    while (serial < last) {
        OK(shmview_monitor_next(slow, shmview_deadline(AWAIT_NS), &e));
        if (e->kind == SHMVIEW_EVENT_LOST) {
            lost += e->lost;
            serial += e->lost;
            continue;
        }
        ck_assert_uint_eq(e->serial, serial ? serial + 1 : e->serial);
        serial = e->serial;
        told++;
    }
    sum = told + lost;
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_ge(told, 2048); /* what the daemon remembers */
    ck_assert_uint_ge(sum, 3000);
    OK(shmview_monitor_close(slow));
    OK(shmview_detach(a));
    end();
}
END_TEST

START_TEST(event_loops)
{
    const struct shmview_event *e;
    begin();
    struct pollfd p = {.fd = shmview_monitor_fd(monitor), .events = POLLIN};
    ck_assert_int_ge(p.fd, 0);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    REFUSED(shmview_monitor_next(monitor, 0, &e), TIMED_OUT, "");
    struct shmview_segment *a = client_create(conn, "a", 1);
    await_readable(p.fd);
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    OK(shmview_detach(a));
    end();
}
END_TEST

/* --- Who may know -------------------------------------------------------- */

static void other_user(struct child *me, void *arg)
{
    (void)arg;
    ck_assert_int_eq(setgid(65534), 0);
    ck_assert_int_eq(setuid(65534), 0);
    conn = client_connect(&d);
    const char *const names[] = {"theirs", "mine"};
    struct shmview_monitor_options o = {.struct_bytes = sizeof o, .names = names, .n_names = 2};
    struct shmview_monitor *named = monitor_open(&o), *all = monitor_open(NULL);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_detach(client_create(conn, "mine", 1)));
    struct shmview_monitor *both[] = {named, all};
    for (int i = 0; i < 2; i++) {
        const struct shmview_event *e = expect_of(both[i], SHMVIEW_EVENT_CREATED, "mine");
        ck_assert_int_eq(e->uid, 65534);
        expect_of(both[i], SHMVIEW_EVENT_ATTACHED, "mine");
        expect_of(both[i], SHMVIEW_EVENT_DETACHED, "mine");
        expect_of(both[i], SHMVIEW_EVENT_REMOVED, "mine");
        expect_nothing(both[i]);
    }
    /* nor of what is remembered: that segment has been removed */
    o = (struct shmview_monitor_options){.struct_bytes = sizeof o,
                                         .after = SHMVIEW_MONITOR_REMEMBERED};
    struct shmview_monitor *late = monitor_open(&o);
    expect_of(late, SHMVIEW_EVENT_CREATED, "mine");
    OK(shmview_monitor_close(late));
    OK(shmview_monitor_close(named));
    OK(shmview_monitor_close(all));
    OK(shmview_disconnect(conn));
}

START_TEST(another_user)
{
    struct child child;
    if (getuid() != 0)
        return; /* only root can be two users */
    begin();
    ck_assert_int_eq(chmod(place_directory(), 0755), 0);
    ck_assert_int_eq(chmod(d.socket, 0666), 0);
    child_start(&child, other_user, NULL);
    child_hear(&child, 1);
    OK(shmview_detach(client_create(conn, "theirs", 1)));
    expect(SHMVIEW_EVENT_CREATED, "theirs");
    expect(SHMVIEW_EVENT_ATTACHED, "theirs");
    expect(SHMVIEW_EVENT_DETACHED, "theirs");
    expect(SHMVIEW_EVENT_REMOVED, "theirs");
    /* only now: requests of two connections may be taken in any order */
    child_cue(&child);
    child_wait(&child);
    expect(SHMVIEW_EVENT_CREATED, "mine");
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(slow_readers_lose),
        SUITE_TEST(event_loops),
        SUITE_TEST(another_user),
        SUITE_END,
    };
    return suite_main("monitor_listeners", tests);
}
