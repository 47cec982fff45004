/* SPDX-License-Identifier: Apache-2.0 */
/* Checks bell.c: which watchers a ring wakes. */
#include "daemon/clients/bell.h"

#include <poll.h>

#include "daemon/clients/connection.h"
#include "unit/faults.h"
#include "unit/house.h"

static struct house house;
static struct guest *ringer, *watcher;
static int watch;     /* the watcher's descriptor */
static uint64_t rung; /* the ringer's attachment */

/* Begins with a segment of the ringer, which the watcher watches. */
static void begin(void)
{
    char parameters[64];
    house_open(&house);
    ringer = house_admit(&house);
    watcher = house_admit(&house);
    json_t *p = house_call(ringer, "Create", "{'name':'a','size':1,'access':'write'}");
    rung = (uint64_t)house_int(p, "attachment", "id");
    p = house_call(watcher, "Attach", "{'name':'a','access':'read'}");
    snprintf(parameters, sizeof parameters, "{'attachment':%lld}",
             (long long)house_int(p, "attachment", "id"));
    house_call(watcher, "Watch", parameters);
    ck_assert_uint_eq(watcher->fds.n, 1);
    watch = dup(watcher->fds.fd[0]);
}

static void end(void)
{
    close(watch);
    house_close(&house);
}

/* Returns whether the watcher was woken since the last call. */
static bool was_woken(void)
{
    char bytes[64];
    return recv(watch, bytes, sizeof bytes, MSG_DONTWAIT) > 0;
}

static void ring(int bell, uint64_t id)
{
    ck_assert_int_eq(send(bell, &id, sizeof id, MSG_DONTWAIT), sizeof id);
}

START_TEST(a_ring_wakes)
{
    begin();
    int bell = bell_open(house.state.turns, ringer->connection, true);
    ck_assert_int_ge(bell, 0);
    house_run(&house);
    was_woken(); /* because the ringer attached before it had its bell */
    ring(bell, rung + 1000);
    house_run(&house);
    ck_assert(!was_woken());
    ring(bell, rung);
    house_run(&house);
    ck_assert(was_woken());
    close(bell);
    end();
}
END_TEST

/* The time for rings in this pass of the loop is used up. */
START_TEST(rings_take_turns)
{
    begin();
    int bell = bell_open(house.state.turns, ringer->connection, true);
    house_run(&house);
    was_woken();
    for (unsigned n = 1; n <= 100; n += 99) {
        for (unsigned i = 0; i < n; i++)
            ring(bell, rung);
        house.turns.round_ns = INT64_MAX / 2;
        uv_run(&house.loop, UV_RUN_NOWAIT);
        ck_assert(!was_woken());
        for (int i = 0; i < 4; i++) /* rings, then segments, with a rest between them */
            house_run(&house), usleep(2000);
        ck_assert(was_woken());
        house_run(&house);
        ck_assert(!was_woken());
    }
    close(bell);
    end();
}
END_TEST

/* The attachments may outlive the connection, and then nothing else would wake the watcher. */
static void close_after(unsigned n, bool is_its_own)
{
    begin();
    int bell = bell_open(house.state.turns, ringer->connection, true);
    house_run(&house);
    was_woken();
    for (unsigned i = 0; i < n; i++)
        ring(bell, is_its_own ? rung : rung + 1000);
    bell_close(STEAL(ringer->connection->bell));
    house_run(&house);
    ck_assert(was_woken());
    close(bell);
    end();
}

START_TEST(rings_that_are_queued_at_the_end_count)
{
    close_after(1, true);
    close_after(100, false); /* some rings may be missing, so all watchers are woken */
}
END_TEST

/* A claim counts as a ring for every segment of the client. */
START_TEST(a_claim_wakes_whether_or_not_there_is_a_bell)
{
    static const char *const calls[] = {"socketpair", "calloc"};
    begin();
    house_call(ringer, "Claim", "{'client':1,'held':[],'bell':true}");
    house_run(&house);
    ck_assert(was_woken());
    house_call(ringer, "Claim", "{'client':1,'held':[]}");
    house_run(&house);
    ck_assert(was_woken());
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        faults_begin_call(calls[i], 1, EMFILE, false);
        ck_assert_int_lt(bell_open(house.state.turns, ringer->connection, true), 0);
        ck_assert(faults_end());
        house_run(&house);
        ck_assert(was_woken());
    }
    end();
}
END_TEST

/* A report of a wait for a holder: whatever it names, nothing ends, and a ring after it counts. */
START_TEST(reports_of_waits_end_nobody_that_lives)
{
    begin();
    house_call(ringer, "Claim", "{'client':1,'held':[]}");
    int bell = bell_open(house.state.turns, ringer->connection, true);
    house_run(&house);
    was_woken();
    const uint64_t ids[] = {0, 1, 1u << 10, 1u << 10 | 1, SHMVIEW_LOCK_OWNER, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        for (uint64_t attachment = 0; attachment < 2; attachment++) {
            uint64_t message[2] = {attachment ? rung : rung + 1000, ids[i]};
            ck_assert_int_eq(send(bell, message, sizeof message, MSG_DONTWAIT), sizeof message);
            house_run(&house);
        }
    ck_assert_ptr_nonnull(ringer->connection->bell);
    ck_assert_ptr_nonnull(watcher->connection);
    ck_assert(!was_woken());
    ring(bell, rung);
    house_run(&house);
    ck_assert(was_woken());
    close(bell);
    end();
}
END_TEST

UNIT_MAIN("bell", UNIT_TEST(reports_of_waits_end_nobody_that_lives), UNIT_TEST(a_ring_wakes),
          UNIT_TEST(rings_take_turns), UNIT_TEST(rings_that_are_queued_at_the_end_count),
          UNIT_TEST(a_claim_wakes_whether_or_not_there_is_a_bell))
